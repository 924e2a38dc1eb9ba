/* SPDX-License-Identifier: Apache-2.0
 * What a launch's arguments tell: a function for each enum kernel_arguments,
 * which mirrors kernels of PyTorch's; the layouts read here are those of 2.5 to
 * 2.15. */
#include "capture/core/work/kernel.h"

#include <string.h>

#include "capture/core/base/pages.h"
#include "capture/core/work/foreach.h"
#include "kernels/kernel.h"

/* Fills the words of a launch of KERNEL; false where the arguments are not as
 * expected. */
typedef bool read_arguments(const struct kernel *kernel,
                            const struct kernel_launch *launch,
                            uint64_t words[TRACE_LAUNCH_WORDS]);

struct kernel_rule {
    enum trace_rule rule;
    read_arguments *read;
};

static uint32_t argument_u32(const struct kernel_launch *launch, uint32_t i)
{
    uint32_t value;

    memcpy(&value, launch->arguments[i], sizeof value);
    return value;
}

/* aten/src/ATen/native/cuda/CUDALoops.cuh: vectorized_elementwise_kernel and
 * its kin take (int N, functor, std::array<char*, n>, ...). */
static bool read_elementwise(const struct kernel *kernel,
                             const struct kernel_launch *launch,
                             uint64_t words[TRACE_LAUNCH_WORDS])
{
    words[0] = argument_u32(launch, 0);
    words[1] = kernel->work->count;
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
static bool read_casts(const struct kernel *kernel,
                       const struct kernel_launch *launch,
                       uint64_t words[TRACE_LAUNCH_WORDS])
{
    uint64_t inputs = 0;

    read_elementwise(kernel, launch, words);
    if (kernel->work->count > 1)
        inputs = cast_sizes(launch->arguments[5], kernel->work->count - 1);
    words[2] = cast_sizes(launch->arguments[6], 1) | inputs << 8;
    return true;
}

static bool read_strided(const struct kernel *kernel,
                         const struct kernel_launch *launch,
                         uint64_t words[TRACE_LAUNCH_WORDS])
{
    kernel_strided_read(launch, kernel->work->operands, words);
    return true; /* the number of elements at least */
}

#define READ(name, function)                                                   \
    static bool name(const struct kernel *kernel,                              \
                     const struct kernel_launch *launch,                       \
                     uint64_t words[TRACE_LAUNCH_WORDS])                       \
    {                                                                          \
        (void)kernel;                                                          \
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

static bool read_sizes(const struct kernel *kernel,
                       const struct kernel_launch *launch,
                       uint64_t words[TRACE_LAUNCH_WORDS])
{
    const struct work_kernel *work = kernel->work;

    for (uint32_t i = 0; i < work->size_count; i++)
        words[i] = size_read(&work->sizes[i],
                             launch->arguments[work->sizes[i].argument]);
    return true;
}

/* Shape.cu: the second argument of CatArrayBatchedCopy<T, I, dims, n, ...> and
 * its kin is {const T *input[n]; I offset[n]; I dimSize[n]; I nElements[n];
 * ...}, where the grid's y counts the inputs. n is the kernel's count. */
static bool read_cat(const struct kernel *kernel,
                     const struct kernel_launch *launch,
                     uint64_t words[TRACE_LAUNCH_WORDS])
{
    const char *inputs = launch->arguments[1];
    const char *counts = inputs + (size_t)kernel->work->count * (8 + 4 + 4);
    uint32_t elements;

    if (launch->grid[1] > kernel->work->count)
        return false;
    for (uint32_t i = 0; i < launch->grid[1]; i++) {
        memcpy(&elements, counts + 4 * (size_t)i, sizeof elements);
        words[0] += elements;
    }
    words[1] = launch->grid[1];
    return true;
}

/* How many of the DEPTH lists L are an earlier one again, as Adam's gradient is
 * both factors of its square: it is read once. */
static uint32_t lists_repeated(const struct foreach_lists *l, uint32_t depth)
{
    uint32_t repeated = 0;

    for (uint32_t i = 1; i < depth; i++)
        for (uint32_t j = 0; j < i; j++)
            if (l->addresses[i * l->room] == l->addresses[j * l->room]) {
                repeated++;
                break;
            }
    return repeated;
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
    words[4] = lists_repeated(&l, kind->depth);
}

static bool read_foreach(const struct kernel *kernel,
                         const struct kernel_launch *launch,
                         uint64_t words[TRACE_LAUNCH_WORDS])
{
    lists_read(&(struct foreach_kind){.depth = kernel->work->count}, launch,
               words);
    return true;
}

static bool read_foreign(const struct kernel *kernel,
                         const struct kernel_launch *launch,
                         uint64_t words[TRACE_LAUNCH_WORDS])
{
    words[2] = launch->grid[0];
    words[3] = kernel->work->count;
    return true;
}

static bool read_fused(const struct kernel *kernel,
                       const struct kernel_launch *launch,
                       uint64_t words[TRACE_LAUNCH_WORDS])
{
    lists_read(&(struct foreach_kind){.depth = kernel->work->count,
                                      .has_steps = true},
               launch, words);
    return true;
}

static bool read_scalars(const struct kernel *kernel,
                         const struct kernel_launch *launch,
                         uint64_t words[TRACE_LAUNCH_WORDS])
{
    lists_read(&(struct foreach_kind){.depth = kernel->work->count,
                                      .scalar_bytes = 4},
               launch, words);
    return true;
}

static const struct kernel_rule rules[KERNEL_ARGUMENTS] = {
    [KERNEL_ARGUMENTS_SIZES] = {TRACE_RULE_SIZES, read_sizes},
    [KERNEL_ARGUMENTS_LOOP] = {TRACE_RULE_ELEMENTWISE, read_elementwise},
    [KERNEL_ARGUMENTS_CASTS] = {TRACE_RULE_ELEMENTWISE, read_casts},
    [KERNEL_ARGUMENTS_STRIDED] = {TRACE_RULE_STRIDED, read_strided},
    [KERNEL_ARGUMENTS_REDUCTION] = {TRACE_RULE_REDUCTION, read_reduction},
    [KERNEL_ARGUMENTS_LISTS] = {TRACE_RULE_FOREACH, read_foreach},
    [KERNEL_ARGUMENTS_LISTS_STEPS] = {TRACE_RULE_FOREACH, read_fused},
    [KERNEL_ARGUMENTS_LISTS_SCALARS] = {TRACE_RULE_FOREACH, read_scalars},
    [KERNEL_ARGUMENTS_LISTS_FOREIGN] = {TRACE_RULE_FOREACH, read_foreign},
    [KERNEL_ARGUMENTS_CAT] = {TRACE_RULE_CAT, read_cat},
    [KERNEL_ARGUMENTS_FLASH] = {TRACE_RULE_ATTENTION, read_flash},
    [KERNEL_ARGUMENTS_EFFICIENT_FORWARD] = {TRACE_RULE_ATTENTION,
                                            read_efficient_forward},
    [KERNEL_ARGUMENTS_EFFICIENT_BACKWARD] = {TRACE_RULE_ATTENTION,
                                             read_efficient_backward},
};

static bool read_blocks(const struct kernel *kernel,
                        const struct kernel_launch *launch,
                        uint64_t words[TRACE_LAUNCH_WORDS])
{
    return kernel_blocks_read(kernel, launch, words);
}

/* Where nothing else is known. */
static const struct kernel_rule blocks_rule = {TRACE_RULE_BLOCKS, read_blocks};

void kernel_rule_blocks(struct kernel *kernel)
{
    if (!kernel->rule)
        kernel->rule = &blocks_rule;
}

static const struct work_kernel *work_keep(const struct work_kernel *work)
{
    struct work_kernel *kept = memsim_pages_keep(sizeof *kept);

    if (kept)
        *kept = *work;
    return kept;
}

void kernel_rule_choose(struct kernel *kernel, const struct work_kernel *work)
{
    if (work->arguments && (kernel->work = work_keep(work)))
        kernel->rule = &rules[work->arguments];
}

enum trace_rule kernel_rule_apply(const struct kernel *kernel,
                                  const struct kernel_launch *launch,
                                  uint64_t words[TRACE_LAUNCH_WORDS])
{
    if (!launch->arguments ||
        !kernel->rule->read(kernel, launch, words))
        return TRACE_RULE_NONE;
    return kernel->rule->rule;
}
