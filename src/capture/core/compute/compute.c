/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/compute/compute.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "capture/core/compute/compute_bounds.h"
#include "capture/core/compute/compute_few.h"
#include "capture/core/base/pages.h"
#include "capture/core/diagnose/assumed.h"
#include "capture/core/diagnose/assumption.h"
#include "capture/core/run/process.h"
#include "capture/core/run/record.h"
#include "capture/core/work/stream.h"
#include "capture/core/memory/values.h"

#define TENSOR sizeof(struct compute_tensor)
#define INFO   416 /* TensorInfo<T, int64_t> */
#define VARIES 0xffff /* its kernel's reach() says */

/* The functions of each computation: the first that can read the name. */
static const struct kind {
    enum kernel_host host;
    bool (*parse)(const char *name, struct compute *compute);
    uint16_t argument_bytes[CARRY_ARGUMENTS]; /* that RUN reads */
} kinds[] = {
    {KERNEL_HOST_LOOP, compute_flatten_parse, {4, 96, 16}},
    {KERNEL_HOST_LOOP, compute_matches_parse, {4, VARIES, VARIES}},
    {KERNEL_HOST_LOOP, compute_loop_parse, {4, VARIES, VARIES}},
    {KERNEL_HOST_LOOP, compute_in_place_parse, {0, 0, 16}},
    {KERNEL_HOST_UNROLLED, compute_flatten_parse, {4, 96, 16}},
    {KERNEL_HOST_UNROLLED, compute_matches_parse, {4, VARIES, VARIES}},
    {KERNEL_HOST_UNROLLED,
     compute_loop_parse,
     {4, VARIES, VARIES, 0, 0, VARIES, VARIES}},
    {KERNEL_HOST_UNROLLED, compute_in_place_parse, {0, 0, 16}},
    {KERNEL_HOST_STRIDED, compute_flatten_parse, {4, 96, 16}},
    {KERNEL_HOST_STRIDED, compute_loop_parse, {4, VARIES}},
    {KERNEL_HOST_OUTPUTS, compute_outputs_parse, {4, 0, VARIES}},
    {KERNEL_HOST_RANGE, compute_arange_parse, {4, VARIES, 8}},
    {KERNEL_HOST_RANGE, compute_linspace_parse, {4, VARIES, 8}},
    {KERNEL_HOST_REDUCE, compute_reduce_parse, {VARIES}},
    {KERNEL_HOST_REDUCE_JITTED, compute_reduce_jitted_parse, {VARIES}},
    {KERNEL_HOST_CHANGES, compute_changes_parse, {16, 8, 4}},
    {KERNEL_HOST_COUNT, compute_count_parse, {VARIES, 8, 4}},
    {KERNEL_HOST_TOTAL, compute_count_parse, {VARIES, 8, 4}},
    {KERNEL_HOST_TOTAL, compute_total_parse, {8, 8, 4}},
    {KERNEL_HOST_SELECT, compute_select_parse, {8, VARIES, 8, 8, 0, 0, 0, 4}},
    {KERNEL_HOST_SELECT, compute_unique_parse, {VARIES, 0, 8, 8, 0, 0, 0, 4}},
    {KERNEL_HOST_SELECT, compute_unique_rows_parse, {8, 0, 8, 8, 0, 0, 16, 4}},
    {KERNEL_HOST_PLACES, compute_places_parse, {8, VARIES, 4, VARIES, VARIES}},
    {KERNEL_HOST_FLAG, compute_flag_parse, {8, 8, 8, 8, 8}},
    {KERNEL_HOST_FILL_REST, compute_fill_rest_parse, {8, 8, 8, 8}},
    {KERNEL_HOST_RUNS, compute_runs_parse, {VARIES, 8, 0, 8, 8, 0, 0, 0, 0, 4}},
    {KERNEL_HOST_DIFFERENCE, compute_difference_parse, {8, 8, 8}},
    {KERNEL_HOST_INVERSE, compute_inverse_parse, {8, 8, 8, 8}},
    {KERNEL_HOST_GATHER_ROWS,
     compute_gather_rows_parse,
     {8, 8, 8, 4, 8, 8, 8, 8, 1}},
    {KERNEL_HOST_INDEX, compute_take_parse, {8, VARIES}},
    {KERNEL_HOST_INDEX, compute_index_parse, {8, VARIES}},
    {KERNEL_HOST_INDEX, compute_flip_parse, {8, VARIES}},
    {KERNEL_HOST_SCATTER, compute_scatter_parse, {4, VARIES}},
    {KERNEL_HOST_SELECT_SMALL,
     compute_index_select_parse,
     {TENSOR, TENSOR, TENSOR, 4, 4, 4, 8}},
    {KERNEL_HOST_SELECT_LARGE,
     compute_index_select_parse,
     {TENSOR, TENSOR, TENSOR, 4, 4, 4, 0, 8}},
    {KERNEL_HOST_INDEX_ADD_SMALL,
     compute_index_add_parse,
     {TENSOR, TENSOR, TENSOR, 4, 4, 4, 8, 8, 0, VARIES}},
    {KERNEL_HOST_INDEX_ADD_LARGE,
     compute_index_add_parse,
     {TENSOR, TENSOR, TENSOR, 4, 4, 4, 0, 8, 8, 0, VARIES}},
    {KERNEL_HOST_INDEX_PUT,
     compute_index_put_add_parse,
     {8, 8, 8, 8, 8, 8, 8, 8}},
    {KERNEL_HOST_CAT, compute_cat_parse, {8, VARIES, 32, 4, 4}},
    {KERNEL_HOST_LOSS, compute_loss_parse, {8, 0, 8, 0, 0, 8, 8}},
    {KERNEL_HOST_LOSS_1D, compute_loss_parse, {0, 0, 0, 8, 0, 0, 8, 8}},
    {KERNEL_HOST_LOSS_2D, compute_loss_parse, {0, 0, 0, 8, 0, 0, 8, 0, 8, 8}},
    {KERNEL_HOST_LOSS_IMAGE, compute_loss_parse, {0, 0, 0, 8, 0, 4, 4, 4, 8}},
    {KERNEL_HOST_SCAN, compute_scan_parse, {8, 8, 0, 0, 0, 0, 4}},
    {KERNEL_HOST_SCAN, compute_scan_mask_parse, {VARIES, 8, 0, 0, 0, 0, 4}},
    {KERNEL_HOST_SCAN, compute_scan_other_parse, {0, 8}},
    {KERNEL_HOST_SCAN_ROWS, compute_scan_rows_parse, {8, 8, 4, 4}},
    {KERNEL_HOST_SCAN_COLUMNS, compute_scan_columns_parse, {8, 8, 4, 4, 4}},
    {KERNEL_HOST_EXTREMES_ROWS, compute_extremes_rows_parse, {8, 8, 8, 4, 4}},
    {KERNEL_HOST_EXTREMES_COLUMNS,
     compute_extremes_columns_parse,
     {8, 8, 8, 4, 4, 4}},
    {KERNEL_HOST_HISTOGRAM,
     compute_histogram_parse,
     {8, 0, INFO, 8, VARIES, VARIES, 8, VARIES}},
    {KERNEL_HOST_SORT_TILE, compute_sort_tile_parse, {8, 8, 8, 8, 4, 4, 4}},
    {KERNEL_HOST_SORT_PASS,
     compute_sort_pass_parse,
     {0, 0, 0, 0, 8, 8, 8, 8, 4, 4, 4}},
    {KERNEL_HOST_SORT_ROWS,
     compute_sort_rows_parse,
     {TENSOR, 4, 4, 4, TENSOR, 4, 1}},
    {KERNEL_HOST_TOPK,
     compute_topk_parse,
     {TENSOR, 4, 4, 1, 4, 4, TENSOR, 4, TENSOR, 4}},
    {KERNEL_HOST_KTH, compute_kth_parse, {TENSOR, 4, 4, 4, 4, TENSOR, TENSOR}},
    {KERNEL_HOST_MEDIAN,
     compute_median_parse,
     {TENSOR, TENSOR, TENSOR, 4, 4, 4, 1}},
    {KERNEL_HOST_MODE, compute_mode_parse, {8, TENSOR, TENSOR, 8, 8}},
    {KERNEL_HOST_RANDOM, compute_random_parse, {4, 24, 0, VARIES}},
    {KERNEL_HOST_SAMPLE, compute_sample_parse, {0, 4, 8, 8, 4}},
    {KERNEL_HOST_ROW_NUMBERS, compute_row_numbers_parse, {8, 4, 4}},
    {KERNEL_HOST_UNFOLD_BACKWARD, compute_unfold_backward_parse, {4, VARIES}},
    {KERNEL_HOST_ROLL, compute_roll_parse, {8, 8, 8, 0, 8, 8, 8}},
    {KERNEL_HOST_TRIANGLE, compute_triangle_parse, {TENSOR, TENSOR, 8}},
    {KERNEL_HOST_SEARCH, compute_search_parse, {8, 8, 8, 8, 8, 8, 8, 1, 1}},
    {KERNEL_HOST_REPEAT, compute_repeat_parse, {8, 0, 8, 8, 8}},
    {KERNEL_HOST_UNIQUE_BOOL, compute_unique_bool_parse, {4, 8, 8, 8}},
    {KERNEL_HOST_INVERSE_BOOL, compute_inverse_bool_parse, {4, 8, 8, 8}},
    {KERNEL_HOST_FOREACH, compute_foreach_scalar_parse, {VARIES, 0, 0, VARIES}},
    {KERNEL_HOST_FOREACH,
     compute_foreach_tensor_parse,
     {VARIES, 0, 0, 8, VARIES}},
    {KERNEL_HOST_FOREACH, compute_foreach_parse, {VARIES}},
    {KERNEL_HOST_MERGE_SORT,
     compute_merge_sort_parse,
     {0, 8, 8, 8, 8, VARIES, 8, 8, VARIES}},
    {KERNEL_HOST_UNIQUE_BY_KEY,
     compute_unique_by_key_parse,
     {8, 8, 8, 8, VARIES, VARIES, VARIES, VARIES}},
    {KERNEL_HOST_ADJACENT, compute_adjacent_parse, {8, 0, 8, VARIES, 4}},
    {KERNEL_HOST_UNIQUE_AGENT, compute_unique_agent_parse, {8, 8, 16, 8, 4}},
    {KERNEL_HOST_TRANSFORM,
     compute_transform_parse,
     {4, 0, 0, VARIES, VARIES, VARIES, VARIES}},
    {KERNEL_HOST_FOR_EACH, compute_for_each_parse, {VARIES, VARIES}},
    {KERNEL_HOST_TO_COMPRESSED, compute_compressed_parse, {8, 8, 8, 8}},
    {KERNEL_HOST_FROM_COMPRESSED, compute_compressed_parse, {8, 8, 8, 8, 8}},
    {KERNEL_HOST_COALESCE, compute_coalesce_parse, {8, 8, 8, 8, 8, 8, 8}},
    {KERNEL_HOST_SPARSE_ADD, compute_sparse_add_parse, {0, 416}},
    {KERNEL_HOST_DIVISOR,
     compute_divisor_parse,
     {4, 24, VARIES, VARIES, VARIES, VARIES}},
    {KERNEL_HOST_DIVISOR, compute_jitted_parse, {0, 8}},
    {KERNEL_HOST_JITTED, compute_jitted_parse, {0, 8}},
    {KERNEL_HOST_COUNTS, compute_counts_parse, {8, 0, 8, 8, 8, 0, 0, 0, 4}},
    {KERNEL_HOST_MOST, compute_most_parse, {8, 8, 4}},
    {KERNEL_HOST_FIND, compute_find_parse, {8, 8}},
    {KERNEL_HOST_FOUND_COPY, compute_found_copy_parse, {16, 8}},
    {KERNEL_HOST_POINTWISE, compute_pointwise_parse, {8}},
    {KERNEL_HOST_CROSS,
     compute_cross_parse,
     {4, 8, 8, 8, OFFSETS_BYTES(3), VARIES, VARIES, VARIES}},
    {KERNEL_HOST_COLLECTIVE, compute_collective_parse, {8, 8, 8, 8, 8}},
    {KERNEL_HOST_AMP_UPDATE, compute_amp_update_parse, {8, 8, 8, 8, 8, 4}},
    {KERNEL_HOST_TRIANGLE_INDICES,
     compute_triangle_indices_parse,
     {8, 8, 8, 8, 8, 8}},
};

bool compute_find(const char *name, enum kernel_host host,
                  struct compute *compute)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        *compute = (struct compute){0};
        if (kinds[i].host == host && kinds[i].parse(name, compute)) {
            compute->name = memsim_name(name);
            compute->argument_bytes = kinds[i].argument_bytes;
            return true;
        }
    }
    return false;
}

uint64_t compute_u64(const struct kernel_launch *launch, uint32_t i)
{
    uint64_t value;

    memcpy(&value, launch->arguments[i], sizeof value);
    return value;
}

uint32_t compute_u32(const struct kernel_launch *launch, uint32_t i)
{
    uint32_t value;

    memcpy(&value, launch->arguments[i], sizeof value);
    return value;
}

/* The launch of this thread that an assumed value went into: what comes of it
 * is assumed too. */
static _Thread_local uint64_t assumed_launch;

void compute_assume(void)
{
    assumed_launch = carry_launches;
}

unsigned char compute_mark(void)
{
    return assumed_launch == carry_launches ? VALUES_ASSUMED : 1;
}

bool compute_load(enum number_type type, uint64_t address, long double *value)
{
    const struct values_window *w = values_window(address);
    uint64_t at = w ? address - w->base : 0;

    *value = 0;
    if (!w || at + 16 > w->bytes)
        return false;
    if (values_some(w, at, 16)) /* else it is 0, and need not be kept as such */
        *value = number_load(type, values_at(w, at, 16));
    unsigned char mark = values_known_at(w, at);
    if (mark == VALUES_ASSUMED)
        compute_assume();
    return values_is_known(mark) || values_are_diverted();
}

void compute_store(enum number_type type, uint64_t address, long double value,
                   bool known)
{
    char *to = values_write_as(address, number_bytes(type),
                               known ? compute_mark() : 0);

    if (!to)
        return;
    number_store(type, to, known || isfinite(value) ? value : 0);
    if (!known && !number_is_float(type))
        values_mark_counts(address, number_bytes(type));
}

void compute_forget(enum number_type type, uint64_t address, uint64_t bytes)
{
    memsim_values_forget(address, bytes);
    if (!number_is_float(type) && bytes <= VALUES_WRITE_BYTES)
        values_mark_counts(address, bytes);
}

void compute_move(uint64_t destination, uint64_t source, uint32_t bytes)
{
    if (bytes <= VALUES_WRITE_BYTES && values_window(source))
        memsim_values_copy(destination, source, bytes);
}

bool compute_offsets_valid(const char *at)
{
    uint32_t dims, size;

    memcpy(&dims, at, sizeof dims);
    if (dims > OFFSETS_DIMS)
        return false;
    for (uint32_t i = 0; i < dims; i++) {
        memcpy(&size, at + 4 + 12 * i, sizeof size);
        if (!size)
            return false;
    }
    return true;
}

void compute_offsets(const char *at, int args, uint64_t index,
                     uint64_t *offsets)
{
    uint32_t dims, size, stride;

    memcpy(&dims, at, sizeof dims);
    for (int a = 0; a < args; a++)
        offsets[a] = 0;
    for (uint32_t i = 0; i < dims; i++) {
        const char *strides =
            at + 4 + 12 * OFFSETS_DIMS + 4u * (uint32_t)args * i;

        memcpy(&size, at + 4 + 12 * i, sizeof size);
        for (int a = 0; a < args; a++) {
            memcpy(&stride, strides + 4 * a, sizeof stride);
            offsets[a] += index % size * stride;
        }
        index /= size;
    }
}

bool compute_tensor_read(const void *argument, struct compute_tensor *tensor)
{
    memcpy(tensor, argument, sizeof *tensor);
    if (tensor->dims < 0 || tensor->dims > OFFSETS_DIMS)
        return false;
    for (int i = 0; i < tensor->dims; i++)
        if (!tensor->sizes[i])
            return false;
    return values_window(tensor->data);
}

uint64_t compute_slice(const struct compute *c,
                       const struct kernel_launch *launch, uint64_t count)
{
    uint64_t elements = compute_u32(launch, 5);

    return c->layout && count ? elements / count : elements;
}

uint64_t compute_tensor_offset(const struct compute_tensor *tensor,
                               uint64_t index)
{
    uint64_t offset = 0;

    for (int i = tensor->dims; i-- > 0;) {
        offset += index % tensor->sizes[i] * tensor->strides[i];
        index /= tensor->sizes[i];
    }
    return offset;
}

/* What the policy says of the mask at hand: asked at its first element. */
static _Thread_local double fraction;

static double fraction_here(void)
{
    double value;

    return few_share() < 0 || assumed_here(&value) ? assumed_fraction()
                                                   : few_share();
}

/* Element i is taken where the running total of the fraction passes an
 * integer: the first N elements have N times the fraction of them. */
bool compute_guess_takes(uint64_t index)
{
    if (!index)
        fraction = fraction_here();
    return (uint64_t)((double)(index + 1) * fraction) >
           (uint64_t)((double)index * fraction);
}

bool compute_takes(enum number_type type, uint64_t address, uint64_t count,
                   uint64_t *unknown)
{
    long double x;

    if (compute_load(type, address, &x))
        return x != 0;
    compute_assume();
    bool taken = compute_guess_takes((*unknown)++);
    return count == 1 ? x != 0 : taken;
}

#define VOCABULARY 1024

bool compute_is_vocabulary(uint64_t count)
{
    return count > VOCABULARY;
}

uint64_t compute_any_place(uint64_t count, uint64_t k, uint64_t row,
                           uint64_t index)
{
    return (count * 382 / 1000 + row * k + index) % count;
}

uint64_t compute_place_guess(const struct compute *compute,
                             const struct kernel_launch *launch, uint64_t size,
                             uint64_t i)
{
    static _Thread_local uint64_t noted; /* the last launch that was */

    if (noted != carry_launches && size > 1)
        compute_guess_note(compute, launch, size, 1,
                           "places to write to (one_hot, scatter, index_put) "
                           "follow from values computed on the GPU: taken to "
                           "be each in turn");
    noted = carry_launches;
    compute_assume();
    return compute_any_place(size, 1, i, 0);
}

uint64_t compute_mask_decide(uint64_t mask, uint64_t count)
{
    uint64_t unknown = 0;

    if (count > VALUES_WRITE_BYTES)
        return count;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t before = unknown;
        bool taken = compute_takes(NUMBER_BOOL, mask + i, count, &unknown);

        if (unknown > before)
            compute_store(NUMBER_BOOL, mask + i, taken, true);
    }
    return unknown;
}

void compute_guess_note(const struct compute *compute,
                        const struct kernel_launch *launch, uint64_t count,
                        uint64_t chosen, const char *what)
{
    int device = 0;

    if (values_are_diverted())
        return;
    compute_assume();
    memsim_stream_device(launch->stream, &device);
    const struct guess guess = {.name = compute->name,
                                .device = (uint64_t)device,
                                .stream = launch->stream,
                                .elements = count,
                                .chosen = chosen};
    memsim_assumption(&guess, what);
}

uint64_t compute_guess(const struct compute *compute,
                       const struct kernel_launch *launch, uint64_t count,
                       const char *what)
{
    char text[SESSION_TEXT_BYTES];
    double value;
    bool is_assumed = assumed_here(&value);

    fraction = fraction_here();
    uint64_t chosen = (uint64_t)((double)count * fraction);
    if (!is_assumed && few_share() >= 0) {
        compute_guess_note(compute, launch, count, chosen,
                           "a mask selects as many elements as it has at most, "
                           "by how it was made; sizes after it are guesses");
        return chosen;
    }
    snprintf(text, sizeof text,
             "%s follows from values computed on the GPU: taken to be %g of "
             "the elements (%s); sizes after it are guesses",
             what, fraction, is_assumed ? "--assume" : "--selected-fraction");
    compute_guess_note(compute, launch, count, chosen, text);
    return chosen;
}

static const struct compute *carry_find(const char *name, enum kernel_host host,
                                        compute_run **run)
{
    struct compute found, *kept;

    if (!compute_find(name, host, &found))
        return NULL;
    kept = memsim_pages_keep(sizeof *kept);
    if (!kept)
        return NULL;
    *kept = found;
    *run = kept->run;
    return kept;
}

static uint32_t carry_argument_bytes(const struct compute *compute,
                                     const struct kernel_launch *launch, int i)
{
    return compute->argument_bytes[i] == VARIES
               ? compute->reach(compute, launch, i)
               : compute->argument_bytes[i];
}

static const struct carry carried = {
    .find = carry_find,
    .argument_bytes = carry_argument_bytes,
    .meet = compute_bounds_doubt,
};

__attribute__((constructor)) static void compute_start(void)
{
    carry = &carried;
}
