/* SPDX-License-Identifier: Apache-2.0
 * Kernels that sort, scan and select: cub's, and PyTorch's SortUtils.cuh,
 * SortStable.cu and TensorTopK.cu. Each element counts as moved once, though a
 * block that sorts or selects goes over its row several times: the later passes
 * find it in the cache. */
#include "kernels/kernel_row.h"

#define INDEX_BYTES 8 /* of an int64 index */

#define ELEMENTS(word) .rows = {WORK_WORD_##word}
#define ALL_THREADS    .rows = {WORK_ALL_THREADS}

static uint32_t type_or_opaque_bytes(struct cxx_text type)
{
    enum work_type ignored;
    uint32_t bytes = work_type_read(type, &ignored);

    return bytes ? bytes : work_opaque_bytes(type);
}

/* cub's radix sorts: <policy, order, key, value, ...>, the value NullType where
 * there is none. One element is a key and its value. */
static void read_radix(const struct cxx_name *name, struct work_kernel *kernel)
{
    const struct cxx_parts *list = &name->arguments;
    uint32_t key = list->count > 2 ? type_or_opaque_bytes(list->part[2]) : 0;
    uint32_t value = list->count > 3 ? type_or_opaque_bytes(list->part[3]) : 0;
    bool keys_alone = cxx_is(name->base, "DeviceRadixSortHistogramKernel");

    kernel->type_bytes[0] =
        (uint8_t)((key ? key : 8) + (keys_alone ? 0 : value));
}

/* DeviceSegmentedRadixSortKernel<policy, other bits, order, key, value, ...> */
static void read_segments(const struct cxx_name *name,
                          struct work_kernel *kernel)
{
    const struct cxx_parts *list = &name->arguments;
    uint32_t key = list->count > 3 ? type_or_opaque_bytes(list->part[3]) : 0;
    uint32_t value = list->count > 4 ? type_or_opaque_bytes(list->part[4]) : 0;

    kernel->type_bytes[0] = (uint8_t)((key ? key : 8) + value);
}

static bool set_moved(struct work *work, uint64_t elements, double read,
                      double written)
{
    work->elements = elements;
    work->flops = (double)elements;
    work->read_bytes = read;
    work->written_bytes = written;
    return elements > 0;
}

static bool has_sizes(const struct work_launch *launch, uint64_t a, uint64_t b)
{
    const uint64_t limit = UINT64_C(1) << 40;

    return launch->rule == TRACE_RULE_SIZES && a && b && a < limit && b < limit;
}

/* bitonicSortKVInPlace, warpMergeSortKVInPlace, radixSortKVInPlace(keys, rows,
 * columns, ...): keys, and values of any size behind their type. */
static bool in_place(const struct work_kernel *kernel,
                     const struct work_launch *launch, struct work *work)
{
    const uint64_t *w = launch->words;
    double pair = kernel->type_bytes[0] + kernel->type_bytes[1];

    if (!has_sizes(launch, w[1], w[2]))
        return false;
    uint64_t elements = w[1] * w[2];
    return set_moved(work, elements, pair * (double)elements,
                     pair * (double)elements);
}

/* sort_postprocess_kernel(in, out, index, pairs, rows, columns): gathers the
 * values by pairs of segment and index. */
static bool work_of_postprocess(const struct work_kernel *kernel,
                                const struct work_launch *launch,
                                struct work *work)
{
    const uint64_t *w = launch->words;
    double bytes = kernel->type_bytes[0] + INDEX_BYTES;

    if (!has_sizes(launch, w[0], w[1]))
        return false;
    uint64_t elements = w[0] * w[1];
    return set_moved(work, elements, bytes * (double)elements,
                     bytes * (double)elements);
}

/* gatherTopK(input, columns, k, largest, rows, ...), of one block a row and of
 * several: values and indices. */
static bool work_of_gather(const struct work_kernel *kernel,
                           const struct work_launch *launch, struct work *work)
{
    const uint64_t *w = launch->words;
    double bytes = kernel->type_bytes[0];

    if (!has_sizes(launch, w[1], w[3]) || w[2] > w[1])
        return false;
    return set_moved(work, w[1] * w[3], bytes * (double)w[1] * (double)w[3],
                     (bytes + INDEX_BYTES) * (double)w[2] * (double)w[3]);
}

/* A digit has 8 bits; blocks count in 16 bits, rows in 32. */
#define DIGITS 256

/* mbtopk::computeDigitCumSum(counts, sums, blocks of a row): a block a row. */
static bool sum_digits(const struct work_kernel *kernel,
                       const struct work_launch *launch, struct work *work)
{
    uint64_t rows = launch->grid[0], blocks = launch->words[0];

    (void)kernel;
    return has_sizes(launch, rows, blocks) &&
           set_moved(work, DIGITS * rows * blocks,
                     2.0 * DIGITS * (double)rows * (double)blocks,
                     4.0 * DIGITS * (double)rows);
}

#define PASSES .family = WORK_SORT, .sort = WORK_SORT_PASSES
#define BLOCKS .family = WORK_SORT, .sort = WORK_SORT_BLOCKS
#define SELECT .family = WORK_SORT, .sort = WORK_SORT_SELECT

const struct kernel_row kernel_rows_sort[] = {
    /* cub */
    {.base = "DeviceRadixSortOnesweepKernel",
     PASSES,
     .rate = WORK_RATE_SORT_PASS,
     .host = KERNEL_HOST_SORT_PASS,
     .words = "sort",
     .read = read_radix,
     .form = {ELEMENTS(0), .columns = WORK_ONE, .read = 1, .written = 1}},
    {.base = "DeviceRadixSortSingleTileKernel",
     PASSES,
     .rate = WORK_RATE_SORT_PASS,
     .host = KERNEL_HOST_SORT_TILE,
     .words = "sort",
     .read = read_radix,
     .form = {ELEMENTS(0), .columns = WORK_ONE, .read = 1, .written = 1}},
    {.base = "DeviceRadixSortHistogramKernel",
     PASSES,
     .rate = WORK_RATE_SORT_SMALL,
     .words = "sort",
     .read = read_radix,
     .form = {ELEMENTS(0), .columns = WORK_ONE, .read = 1}},
    {.base = "DeviceRadixSortExclusiveSumKernel",
     PASSES,
     .rate = WORK_RATE_ONE,
     .words = "sort",
     .form = {ALL_THREADS, .columns = WORK_ONE, .bytes = 8, .read = 1,
              .written = 1}},
    {.base = "DeviceScanKernel",
     PASSES,
     .rate = WORK_RATE_SCAN,
     .host = KERNEL_HOST_SCAN,
     .words = "cumsum",
     .form = {ELEMENTS(1), .columns = WORK_ONE, .bytes = 8, .read = 1,
              .written = 1}},
    {.base = "DeviceScanInitKernel",
     PASSES,
     .rate = WORK_RATE_ONE,
     .words = "cumsum",
     .form = {ALL_THREADS, .columns = WORK_ONE, .bytes = 8, .written = 1}},
    {.base = "DeviceCompactInitKernel",
     PASSES,
     .rate = WORK_RATE_ONE,
     .form = {ALL_THREADS, .columns = WORK_ONE, .bytes = 8, .written = 1}},
    {.base = "DeviceUniqueByKeySweepKernel",
     PASSES,
     .host = KERNEL_HOST_UNIQUE_BY_KEY,
     .words = "unique",
     .form = {ALL_THREADS, .columns = WORK_ONE, .bytes = 8, .read = 1,
              .written = 2}},
    {.base = "DeviceSegmentedRadixSortKernel", /* a block a segment */
     BLOCKS,
     .words = "sort",
     .read = read_segments,
     .form = {.rows = {WORK_WORD_0},
              .columns = WORK_GRID_X,
              .read = 1,
              .written = 1}},

    /* SortUtils.cuh */
    {.base = "bitonicSortKVInPlace",
     BLOCKS,
     .host = KERNEL_HOST_SORT_ROWS,
     .describe = in_place},
    {.base = "warpMergeSortKVInPlace",
     BLOCKS,
     .host = KERNEL_HOST_SORT_ROWS,
     .describe = in_place},
    {.base = "radixSortKVInPlace",
     BLOCKS,
     .host = KERNEL_HOST_SORT_ROWS,
     .describe = in_place},
    /* SortStable.cu */
    {.base = "fill_reverse_indices_kernel",
     .family = WORK_ELEMENTWISE,
     .host = KERNEL_HOST_ROW_NUMBERS,
     .form = {ELEMENTS(0), .columns = WORK_ONE, .bytes = INDEX_BYTES,
              .written = 1}},
    {.base = "fill_index_and_segment_kernel", /* two ints */
     .family = WORK_ELEMENTWISE,
     .form = {ELEMENTS(0), .columns = WORK_ONE, .bytes = 8, .written = 1}},
    {.base = "sort_postprocess_kernel",
     .family = WORK_INDEX,
     .describe = work_of_postprocess},

    /* TensorTopK.cu: sbtopk, mbtopk */
    {.base = "gatherTopK",
     SELECT,
     .host = KERNEL_HOST_TOPK,
     .describe = work_of_gather},
    {.base = "computeBlockDigitCounts", /* input, columns, ks, rows, ... */
     SELECT,
     .form = {.rows = {WORK_WORD_2}, .columns = WORK_WORD_1, .read = 1}},
    {.base = "computeDigitCumSum", SELECT, .describe = sum_digits},
    {.base = "computeBlockwiseWithinKCounts",
     SELECT,
     .form = {ALL_THREADS, .columns = WORK_ONE, .bytes = 4, .read = 2}},
    {.base = "computeBlockwiseKthCounts",
     SELECT,
     .form = {ELEMENTS(0), .columns = WORK_ONE, .bytes = 4, .read = 2,
              .written = 1}},
    {.base = "fill",
     .contains = "mbtopk::fill",
     SELECT,
     .form = {ELEMENTS(1), .columns = WORK_ONE, .bytes = 4, .written = 1}},
    {.base = "DeviceScanByKeyKernel", /* of counts; the keys are computed */
     SELECT,
     .words = "cumsum",
     .form = {ELEMENTS(1), .columns = WORK_ONE, .bytes = 4, .read = 1,
              .written = 1}},
    {.base = "DeviceScanByKeyInitKernel",
     SELECT,
     .words = "cumsum",
     .form = {ALL_THREADS, .columns = WORK_ONE, .bytes = 8, .written = 1}},
    {.base = NULL},
};
