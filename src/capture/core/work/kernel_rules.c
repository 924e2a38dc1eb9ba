/* SPDX-License-Identifier: Apache-2.0
 * What a launch's arguments tell, by the kernel's name. Each rule mirrors a
 * kernel of PyTorch's; the layouts read here are those of 2.5 to 2.15. */
#include "capture/core/work/kernel.h"

#include <string.h>

#include "capture/core/base/pages.h"
#include "capture/core/work/foreach.h"
#include "kernels/work.h"

struct kernel_rule {
    const char *patterns[3]; /* all in the mangled name; NULL: no more */
    enum trace_rule rule;
    uint32_t count; /* arguments to read, or the depth of the lists */
    /* False where the arguments are not as expected. */
    bool (*read)(const struct kernel_rule *rule, const struct kernel *kernel,
                 const struct kernel_launch *launch,
                 uint64_t words[TRACE_LAUNCH_WORDS]);
};

static uint32_t argument_u32(const struct kernel_launch *launch, uint32_t i)
{
    uint32_t value;

    memcpy(&value, launch->arguments[i], sizeof value);
    return value;
}

/* aten/src/ATen/native/cuda/CUDALoops.cuh: vectorized_elementwise_kernel and
 * its kin take (int N, functor, std::array<char*, n>, ...). */
static bool read_elementwise(const struct kernel_rule *rule,
                             const struct kernel *kernel,
                             const struct kernel_launch *launch,
                             uint64_t words[TRACE_LAUNCH_WORDS])
{
    (void)kernel;
    words[0] = argument_u32(launch, 0);
    words[1] = rule->count;
    return true;
}

/* MemoryAccess.cuh: LoadWithCast<n> and StoreWithCast<n> are {ScalarType
 * types[n]; uint32_t sizes[n];}, n at least 1. */
static uint64_t cast_sizes(const void *argument, uint32_t count)
{
    const char *sizes = (const char *)argument + ((count + 3) & ~3u);
    uint64_t packed = 0;
    uint32_t bytes;

    for (uint32_t i = 0; i < count; i++) {
        memcpy(&bytes, sizes + 4 * i, sizeof bytes);
        packed |= (uint64_t)(bytes & 255) << 8 * i;
    }
    return packed;
}

/* unrolled_elementwise_kernel(int N, functor, std::array<char*, n>, two
 * calculators of offsets, LoadWithCast<n - 1>, StoreWithCast<1>). */
static bool read_casts(const struct kernel_rule *rule,
                       const struct kernel *kernel,
                       const struct kernel_launch *launch,
                       uint64_t words[TRACE_LAUNCH_WORDS])
{
    uint64_t inputs = 0;

    read_elementwise(rule, kernel, launch, words);
    if (rule->count > 1)
        inputs = cast_sizes(launch->arguments[5], rule->count - 1);
    words[2] = cast_sizes(launch->arguments[6], 1) | inputs << 8;
    return true;
}

static bool read_strided(const struct kernel_rule *rule,
                         const struct kernel *kernel,
                         const struct kernel_launch *launch,
                         uint64_t words[TRACE_LAUNCH_WORDS])
{
    (void)rule;
    kernel_strided_read(launch, kernel->work->operands, words);
    return true; /* the number of elements at least */
}

#define READ(name, function)                                                   \
    static bool name(const struct kernel_rule *rule,                           \
                     const struct kernel *kernel,                              \
                     const struct kernel_launch *launch,                       \
                     uint64_t words[TRACE_LAUNCH_WORDS])                       \
    {                                                                          \
        (void)rule, (void)kernel;                                              \
        return function(launch, words);                                        \
    }
READ(read_reduction, kernel_reduction_read)
READ(read_flash, kernel_flash_read)
READ(read_efficient_forward, kernel_efficient_forward_read)
READ(read_efficient_backward, kernel_efficient_backward_read)

/* The elements of a tensor of DIMENSIONS sizes of BYTES each at SIZES. */
static uint64_t sizes_product(const char *sizes, uint32_t dimensions,
                              uint32_t bytes)
{
    uint64_t product = 1;

    for (uint32_t i = 0; i < dimensions; i++) {
        uint64_t size = 0;

        memcpy(&size, sizes + (size_t)bytes * i, bytes);
        product *= size;
    }
    return product;
}

#define INFO_DIMENSIONS_MAX 25 /* MAX_TENSORINFO_DIMS */

/* cuda/detail/TensorInfo.cuh: {T *data; I sizes[25]; I strides[25]; int dims;}
 */
static uint64_t info_elements(const char *info, uint32_t bytes)
{
    uint32_t dimensions;

    memcpy(&dimensions, info + 8 + (size_t)2 * INFO_DIMENSIONS_MAX * bytes, 4);
    return dimensions <= INFO_DIMENSIONS_MAX
               ? sizes_product(info + 8, dimensions, bytes)
               : 0;
}

static uint64_t size_read(const struct work_size *size, const char *argument)
{
    int64_t wide;
    int32_t narrow;

    switch ((enum work_size_kind)size->kind) {
    case WORK_SIZE_INT:
        memcpy(&narrow, argument, sizeof narrow);
        return (uint64_t)(int64_t)narrow;
    case WORK_SIZE_LONG:
        memcpy(&wide, argument, sizeof wide);
        return (uint64_t)wide;
    case WORK_SIZE_INFO:
        return info_elements(argument, 4);
    case WORK_SIZE_INFO_LONG:
        return info_elements(argument, 8);
    case WORK_SIZE_ACCESSOR: /* core/TensorAccessor.h: {T *data; I sizes[n];} */
        return sizes_product(argument + 8, size->dimensions, 4);
    case WORK_SIZE_ACCESSOR_LONG:
        return sizes_product(argument + 8, size->dimensions, 8);
    }
    return 0;
}

static bool read_sizes(const struct kernel_rule *rule,
                       const struct kernel *kernel,
                       const struct kernel_launch *launch,
                       uint64_t words[TRACE_LAUNCH_WORDS])
{
    const struct work_kernel *work = kernel->work;

    (void)rule;
    for (uint32_t i = 0; i < work->size_count; i++)
        words[i] = size_read(&work->sizes[i],
                             launch->arguments[work->sizes[i].argument]);
    return true;
}

/* Shape.cu: the second argument of CatArrayBatchedCopy<T, I, dims, n, ...> and
 * its kin is {const T *input[n]; I offset[n]; I dimSize[n]; I nElements[n];
 * ...}, where the grid's y counts the inputs. n is the rule's count. */
static bool read_cat(const struct kernel_rule *rule,
                     const struct kernel *kernel,
                     const struct kernel_launch *launch,
                     uint64_t words[TRACE_LAUNCH_WORDS])
{
    const char *inputs = launch->arguments[1];
    const char *counts = inputs + (size_t)rule->count * (8 + 4 + 4);
    uint32_t elements;

    (void)kernel;
    if (launch->grid[1] > rule->count)
        return false;
    for (uint32_t i = 0; i < launch->grid[1]; i++) {
        memcpy(&elements, counts + 4 * (size_t)i, sizeof elements);
        words[0] += elements;
    }
    words[1] = launch->grid[1];
    return true;
}

static void lists_read(const struct foreach_kind *kind,
                       const struct kernel_launch *launch,
                       uint64_t words[TRACE_LAUNCH_WORDS])
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

static bool read_foreach(const struct kernel_rule *rule,
                         const struct kernel *kernel,
                         const struct kernel_launch *launch,
                         uint64_t words[TRACE_LAUNCH_WORDS])
{
    (void)kernel;
    lists_read(&(struct foreach_kind){.depth = rule->count}, launch, words);
    return true;
}

static bool read_foreign(const struct kernel_rule *rule,
                         const struct kernel *kernel,
                         const struct kernel_launch *launch,
                         uint64_t words[TRACE_LAUNCH_WORDS])
{
    (void)kernel;
    words[2] = launch->grid[0];
    words[3] = rule->count;
    return true;
}

static bool read_fused(const struct kernel_rule *rule,
                       const struct kernel *kernel,
                       const struct kernel_launch *launch,
                       uint64_t words[TRACE_LAUNCH_WORDS])
{
    (void)kernel;
    lists_read(&(struct foreach_kind){.depth = rule->count, .has_steps = true},
               launch, words);
    return true;
}

static bool read_scalars(const struct kernel_rule *rule,
                         const struct kernel *kernel,
                         const struct kernel_launch *launch,
                         uint64_t words[TRACE_LAUNCH_WORDS])
{
    (void)kernel;
    lists_read(&(struct foreach_kind){.depth = rule->count, .scalar_bytes = 4},
               launch, words);
    return true;
}

/* First match wins: the special before the general. */
/* std::array<char*, n>; at::detail::Array<char*, n> before 2.6 */
#define ARRAY(kernel, array, count)                                            \
    {                                                                          \
        {kernel, array #count "E"}, TRACE_RULE_ELEMENTWISE, count,             \
            read_elementwise                                                   \
    }
#define ELEMENTWISE(kernel, count)                                             \
    ARRAY(kernel, "5arrayIPcLm", count), ARRAY(kernel, "5ArrayIPcLi", count)
#define ELEMENTWISES(kernel)                                                   \
    ELEMENTWISE(kernel, 1), ELEMENTWISE(kernel, 2), ELEMENTWISE(kernel, 3),    \
        ELEMENTWISE(kernel, 4), ELEMENTWISE(kernel, 5), ELEMENTWISE(kernel, 6)
#define CAST(array, count)                                                     \
    {                                                                          \
        {"27unrolled_elementwise_kernel", array #count "E", "12LoadWithCast"}, \
            TRACE_RULE_ELEMENTWISE, count, read_casts                          \
    }
#define CASTS(count) CAST("5arrayIPcLm", count), CAST("5ArrayIPcLi", count)
#define LISTS(mark, depth, read)                                               \
    {                                                                          \
        {"25multi_tensor_apply_kernel", mark #depth "E", "N2at6native"},       \
            TRACE_RULE_FOREACH, depth, read                                    \
    }
#define FOREACH(depth) LISTS("18TensorListMetadataILi", depth, read_foreach)
#define FUSED(depth)                                                           \
    LISTS("32FusedOptimizerTensorListMetadataILi", depth, read_fused)
#define SCALARS(depth)                                                         \
    LISTS("28TensorListScalarListMetadataIfLi", depth, read_scalars)
/* Those of Apex and Transformer Engine, whose lists are another argument. */
#define FOREIGN(depth)                                                         \
    {                                                                          \
        {"25multi_tensor_apply_kernel", "18TensorListMetadataILi" #depth "E"}, \
            TRACE_RULE_FOREACH, depth, read_foreign                            \
    }
#define CAT(batch, mark)                                                       \
    {                                                                          \
        {"CatArrayBatchedCopy", mark}, TRACE_RULE_CAT, batch, read_cat         \
    }

static const struct kernel_rule rules[] = {
    ELEMENTWISES("29vectorized_elementwise_kernel"),
    CASTS(1),
    CASTS(2),
    CASTS(3),
    CASTS(4),
    ELEMENTWISES("27unrolled_elementwise_kernel"),
    {{"18elementwise_kernelI", "gpu_kernel_impl"},
     TRACE_RULE_STRIDED,
     0,
     read_strided},
    FOREACH(1),
    FOREACH(2),
    FOREACH(3),
    FOREACH(4),
    FOREACH(5),
    FUSED(2),
    FUSED(3),
    FUSED(4),
    FUSED(5),
    SCALARS(1),
    SCALARS(2),
    SCALARS(3),
    SCALARS(4),
    FOREIGN(1),
    FOREIGN(2),
    FOREIGN(3),
    FOREIGN(4),
    FOREIGN(5),
    {{"13reduce_kernelI"}, TRACE_RULE_REDUCTION, 1, read_reduction},
    CAT(64, "Li64ELi64E"),
    CAT(128, "Li128ELi1E"),
    {{"16flash_fwd_kernelI"}, TRACE_RULE_ATTENTION, 0, read_flash},
    {{"flash_fwd_splitkv_"}, TRACE_RULE_ATTENTION, 0, read_flash},
    {{"flash_bwd_", "Flash_bwd_kernel_traits"},
     TRACE_RULE_ATTENTION,
     0,
     read_flash},
    {{"fmha_cutlassF_", "AttentionKernel"},
     TRACE_RULE_ATTENTION,
     0,
     read_efficient_forward},
    {{"fmha_cutlassB_", "AttentionBackwardKernel"},
     TRACE_RULE_ATTENTION,
     0,
     read_efficient_backward},
};

/* Where no row matches: integers and tensors' sizes among the arguments. */
static const struct kernel_rule sizes_rule = {.rule = TRACE_RULE_SIZES,
                                              .read = read_sizes};

static bool read_blocks(const struct kernel_rule *rule,
                        const struct kernel *kernel,
                        const struct kernel_launch *launch,
                        uint64_t words[TRACE_LAUNCH_WORDS])
{
    (void)rule;
    return kernel_blocks_read(kernel, launch, words);
}

/* Where nothing else is known. */
static const struct kernel_rule blocks_rule = {.rule = TRACE_RULE_BLOCKS,
                                               .read = read_blocks};

void kernel_rule_blocks(struct kernel *kernel)
{
    if (!kernel->rule)
        kernel->rule = &blocks_rule;
}

static bool rule_matches(const struct kernel_rule *rule, const char *name)
{
    for (size_t i = 0; i < sizeof rule->patterns / sizeof *rule->patterns; i++)
        if (rule->patterns[i] && !strstr(name, rule->patterns[i]))
            return false;
    return true;
}

static const struct kernel_rule *rule_find(const char *name)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rule_matches(&rules[i], name))
            return &rules[i];
    return NULL;
}

static const struct work_kernel *work_keep(const struct work_kernel *work)
{
    struct work_kernel *kept = memsim_pages_keep(sizeof *kept);

    if (kept)
        *kept = *work;
    return kept;
}

void kernel_rule_choose(struct kernel *kernel, const char *name)
{
    struct work_kernel work;

    work_kernel_read(name, &work);
    kernel->rule = rule_find(name);
    if (!kernel->rule && work.rule && work.size_count)
        kernel->rule = &sizes_rule;
    if (kernel->rule && !(kernel->work = work_keep(&work)))
        kernel->rule = NULL;
}

enum trace_rule kernel_rule_apply(const struct kernel *kernel,
                                  const struct kernel_launch *launch,
                                  uint64_t words[TRACE_LAUNCH_WORDS])
{
    if (!launch->arguments ||
        !kernel->rule->read(kernel->rule, kernel, launch, words))
        return TRACE_RULE_NONE;
    return kernel->rule->rule;
}
