/* SPDX-License-Identifier: Apache-2.0
 * What a launch's arguments tell, by the kernel's name. Each rule mirrors a
 * kernel of PyTorch's; the layouts read here are those of 2.5 to 2.15. */
#include "capture/core/kernel.h"

#include <string.h>

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

#define CHUNK_ELEMENTS 65536 /* MultiTensorApply.cuh: kChunkSize */

/* MultiTensorApply.cuh: depth_to_max_tensors, depth_to_max_blocks, for kernels
 * of at most 4 KiB of arguments. */
static const struct list_shape {
    uint32_t tensors, blocks;
} list_shapes[] = {{0, 0},    {110, 320}, {64, 320},
                   {48, 320}, {36, 320},  {30, 320}};

/* TensorListMetadata<depth>: void *addresses[depth][tensors]; int64_t
 * numel_for_tensor[tensors]; unsigned char block_to_tensor[blocks]; int
 * block_to_chunk[blocks]; ... Blocks take the tensors in order, chunk by chunk:
 * the first tensor may have been begun, the last one left, by other launches.
 */
static void read_foreach(const struct kernel_rule *rule,
                         const struct kernel_launch *launch, uint64_t words[4])
{
    const struct list_shape *shape = &list_shapes[rule->count];
    const char *list = launch->arguments[0];
    const int64_t *numel =
        (const int64_t *)(list + 8ul * rule->count * shape->tensors);
    const unsigned char *tensor =
        (const unsigned char *)(numel + shape->tensors);
    const int *chunk = (const int *)(tensor + shape->blocks);
    uint32_t blocks = launch->grid[0];

    words[2] = blocks;
    words[3] = rule->count;
    if (!blocks || blocks > shape->blocks ||
        tensor[blocks - 1] >= shape->tensors)
        return;
    uint32_t last = tensor[blocks - 1];
    int64_t rest =
        numel[last] - (chunk[blocks - 1] + INT64_C(1)) * CHUNK_ELEMENTS;
    int64_t elements = -(int64_t)chunk[0] * CHUNK_ELEMENTS;
    for (uint32_t i = tensor[0]; i <= last; i++)
        elements += numel[i];
    words[0] = (uint64_t)(rest > 0 ? elements - rest : elements);
    words[1] = last + 1u;
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
