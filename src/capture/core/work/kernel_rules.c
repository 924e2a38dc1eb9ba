/* SPDX-License-Identifier: Apache-2.0
 * What a launch's arguments tell, by the kernel's name. Each rule mirrors a
 * kernel of PyTorch's; the layouts read here are those of 2.5 to 2.15. */
#include "capture/core/work/kernel.h"

#include <string.h>

#include "capture/core/work/foreach.h"

struct kernel_rule {
    const char *pattern;       /* in the mangled name */
    const char *and_pattern;   /* likewise; NULL: none */
    enum trace_rule rule;
    uint32_t count; /* arguments to read, or the depth of the lists */
    void (*read)(const struct kernel_rule *rule,
                 const struct kernel_launch *launch, uint64_t words[4]);
};

static uint64_t argument_u64(const struct kernel_launch *launch, uint32_t i)
{
    uint64_t value;

    memcpy(&value, launch->arguments[i], sizeof value);
    return value;
}

static uint32_t argument_u32(const struct kernel_launch *launch, uint32_t i)
{
    uint32_t value;

    memcpy(&value, launch->arguments[i], sizeof value);
    return value;
}

/* aten/src/ATen/native/cuda/CUDALoops.cuh: vectorized_elementwise_kernel and
 * its kin take (int N, functor, std::array<char*, n>, ...). */
static void read_elementwise(const struct kernel_rule *rule,
                             const struct kernel_launch *launch,
                             uint64_t words[4])
{
    words[0] = argument_u32(launch, 0);
    words[1] = rule->count;
}

static void read_words(const struct kernel_rule *rule,
                       const struct kernel_launch *launch, uint64_t words[4])
{
    for (uint32_t i = 0; i < rule->count; i++)
        words[i] = argument_u64(launch, i);
}

/* Reduce.cuh: argument 0 is ReduceOp<...>, whose ReduceConfig config comes
 * after the functor, identity...: its place depends on both, so the first
 * words are kept raw. */
static void read_reduce(const struct kernel_rule *rule,
                        const struct kernel_launch *launch, uint64_t words[4])
{
    (void)rule;
    memcpy(words, launch->arguments[0], 4 * sizeof *words);
}

static void lists_read(const struct foreach_kind *kind,
                       const struct kernel_launch *launch, uint64_t words[4])
{
    struct foreach_lists l;

    words[2] = launch->grid[0];
    words[3] = kind->depth;
    if (!foreach_read(kind, launch, &l))
        return;
    int64_t rest = l.numel[l.tensors - 1] -
                   (l.last_chunk + INT64_C(1)) * FOREACH_CHUNK_ELEMENTS;
    int64_t elements = -(int64_t)l.first_chunk * FOREACH_CHUNK_ELEMENTS;
    for (uint32_t i = 0; i < l.tensors; i++)
        elements += l.numel[i];
    words[0] = (uint64_t)(rest > 0 ? elements - rest : elements);
    words[1] = l.tensors;
}

static void read_foreach(const struct kernel_rule *rule,
                         const struct kernel_launch *launch, uint64_t words[4])
{
    lists_read(&(struct foreach_kind){.depth = rule->count}, launch, words);
}

static void read_fused(const struct kernel_rule *rule,
                       const struct kernel_launch *launch, uint64_t words[4])
{
    lists_read(&(struct foreach_kind){.depth = rule->count, .has_steps = true},
               launch, words);
}

static void read_scalars(const struct kernel_rule *rule,
                         const struct kernel_launch *launch, uint64_t words[4])
{
    lists_read(&(struct foreach_kind){.depth = rule->count, .scalar_bytes = 4},
               launch, words);
}

/* First match wins: the special before the general. */
#define ELEMENTWISE(kernel, count)                                             \
    {kernel, "arrayIPcLm" #count "E", TRACE_RULE_ELEMENTWISE, count,           \
     read_elementwise}
#define ELEMENTWISES(kernel)                                                   \
    ELEMENTWISE(kernel, 1), ELEMENTWISE(kernel, 2), ELEMENTWISE(kernel, 3),    \
        ELEMENTWISE(kernel, 4), ELEMENTWISE(kernel, 5), ELEMENTWISE(kernel, 6)
#define FOREACH(depth)                                                         \
    {"25multi_tensor_apply_kernel", "18TensorListMetadataILi" #depth "E",      \
     TRACE_RULE_FOREACH, depth, read_foreach}
#define FUSED(depth)                                                           \
    {"25multi_tensor_apply_kernel",                                            \
     "32FusedOptimizerTensorListMetadataILi" #depth "E",                       \
     TRACE_RULE_FOREACH, depth, read_fused}
#define SCALARS(depth)                                                         \
    {"25multi_tensor_apply_kernel",                                            \
     "28TensorListScalarListMetadataIfLi" #depth "E", TRACE_RULE_FOREACH,      \
     depth, read_scalars}
#define WORDS(kernel, count)                                                   \
    {kernel, NULL, TRACE_RULE_WORDS, count, read_words}

static const struct kernel_rule rules[] = {
    ELEMENTWISES("29vectorized_elementwise_kernel"),
    ELEMENTWISES("27unrolled_elementwise_kernel"),
    {"18elementwise_kernelI", NULL, TRACE_RULE_ELEMENTWISE, 0,
     read_elementwise},
    FOREACH(1),
    FOREACH(2),
    FOREACH(3),
    FOREACH(4),
    FOREACH(5),
    FUSED(3),
    FUSED(4),
    FUSED(5),
    SCALARS(1),
    SCALARS(2),
    SCALARS(3),
    SCALARS(4),
    {"13reduce_kernelI", NULL, TRACE_RULE_REDUCE, 1, read_reduce},
    WORDS("28vectorized_layer_norm_kernel", 1),
    WORDS("18cunn_SoftMaxForward", 3),
    WORDS("19cunn_SoftMaxBackward", 4),
    WORDS("22softmax_warp_forward", 4),
    WORDS("23softmax_warp_backward", 4),
};

static int rule_matches(const struct kernel_rule *rule, const char *name)
{
    return strstr(name, rule->pattern) &&
           (!rule->and_pattern || strstr(name, rule->and_pattern));
}

const struct kernel_rule *kernel_rule_find(const char *name)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rule_matches(&rules[i], name))
            return &rules[i];
    return NULL;
}

enum trace_rule kernel_rule_apply(const struct kernel_rule *rule,
                                  const struct kernel_launch *launch,
                                  uint64_t words[4])
{
    if (!launch->arguments)
        return TRACE_RULE_NONE;
    rule->read(rule, launch, words);
    return rule->rule;
}
