/* SPDX-License-Identifier: Apache-2.0
 * Indices of sparse tensors: SparseCsrTensorMath.cu, FlattenIndicesKernel.cu,
 * SparseCUDATensor.cu; and those of a triangle, TensorFactories.cu. */
#include <string.h>

#include "capture/core/compute/compute.h"
#include "capture/core/compute/compute_name.h"
#include "capture/core/memory/values.h"
#include "common/base/text_begins.h"

static bool some_known(enum number_type type, uint64_t address, uint64_t count)
{
    return count <= COMPUTE_INTEGERS && values_window(address) &&
           (!count || values_known(address, count * number_bytes(type)));
}

static uint64_t index_at(enum number_type type, uint64_t address, uint64_t i)
{
    long double x;

    compute_load(type, address + i * number_bytes(type), &x);
    return x > 0 ? (uint64_t)x : 0;
}

static void index_put(enum number_type type, uint64_t address, uint64_t i,
                      uint64_t index)
{
    compute_store(type, address + i * number_bytes(type), (long double)index,
                  true);
}

/* (out, rows in, int64_t rows, count): where each row begins. */
static void run_coo_to_csr(const struct compute *c,
                           const struct kernel_launch *launch)
{
    uint64_t out = compute_u64(launch, 0), in = compute_u64(launch, 1);
    uint64_t rows = compute_u64(launch, 2), count = compute_u64(launch, 3);

    if (!values_window(out) || rows >= COMPUTE_INTEGERS)
        return;
    if (!some_known(c->types[0], in, count)) {
        compute_forget(c->types[1], out,
                       (rows + 1) * number_bytes(c->types[1]));
        return;
    }
    for (uint64_t row = 0, i = 0; row <= rows; row++) {
        while (i < count && index_at(c->types[0], in, i) < row)
            i++;
        index_put(c->types[1], out, row, i);
    }
}

/* (out, starts in, int64_t rows, count, batches): the row of each element. */
static void run_csr_to_coo(const struct compute *c,
                           const struct kernel_launch *launch)
{
    uint64_t out = compute_u64(launch, 0), in = compute_u64(launch, 1);
    uint64_t rows = compute_u64(launch, 2), count = compute_u64(launch, 3);
    uint64_t batches = compute_u64(launch, 4);

    if (!values_window(out) || batches > COMPUTE_INTEGERS)
        return;
    if (count > COMPUTE_INTEGERS || batches * count > COMPUTE_INTEGERS ||
        !some_known(c->types[0], in, batches * (rows + 1))) {
        compute_forget(c->types[1], out,
                       batches * count * number_bytes(c->types[1]));
        return;
    }
    for (uint64_t b = 0; b < batches; b++)
        for (uint64_t row = 0; row < rows; row++) {
            uint64_t at = b * (rows + 1) + row;
            uint64_t end = index_at(c->types[0], in, at + 1);

            for (uint64_t i = index_at(c->types[0], in, at);
                 i < end && i < count; i++)
                index_put(c->types[1], out, b * count + i, row);
        }
}

/* <input_t, output_t> */
bool compute_compressed_parse(const char *name, struct compute *c)
{
    const char *text = name_after(name, "coo_to_csr_cuda_kernelI");

    c->run = text ? run_coo_to_csr : run_csr_to_coo;
    if (!text)
        text = name_after(name, "csr_to_coo_cuda_kernelI");
    return text && name_types(&text, c->types, 2);
}

/* flatten_indices_impl's lambda: {const index_t *indices; int64_t stride of an
 * element; int64_t dimensions; int64_t coefficients[8]; int64_t stride of a
 * dimension}. */
#define FLATTEN_DIMS 8
struct flatten {
    uint64_t indices, element_stride, dims, coefficients[FLATTEN_DIMS],
        dim_stride;
};

/* (int count, lambda, {out, in}): one number for each element's place. */
static void run_flatten(const struct compute *c,
                        const struct kernel_launch *launch)
{
    uint64_t count = compute_u32(launch, 0), out, places;
    struct flatten f;

    memcpy(&f, launch->arguments[1], sizeof f);
    memcpy(&out, launch->arguments[2], sizeof out);
    memcpy(&places, (const char *)launch->arguments[2] + 8, sizeof places);
    if (!values_window(out) || f.dims > FLATTEN_DIMS)
        return;
    if (!some_known(NUMBER_I64, places, count) || !values_window(f.indices)) {
        memsim_values_forget(out, 8 * count);
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        uint64_t at = index_at(NUMBER_I64, places, i) * f.element_stride;
        long double sum = 0, x;
        bool known = true;

        for (uint64_t d = 0; d < f.dims; d++) {
            known &= compute_load(c->types[0],
                                  f.indices + (at + d * f.dim_stride) *
                                                  number_bytes(c->types[0]),
                                  &x);
            sum += x * (long double)f.coefficients[d];
        }
        compute_store(NUMBER_I64, out + 8 * i, sum, known);
    }
}

/* <kernel, index_t, 8> */
bool compute_flatten_parse(const char *name, struct compute *c)
{
    const char *text = name_after(name, "21_flatten_indices_impl");

    text = text ? name_after(text, "CUDAKernelLauncherE") : NULL;
    c->run = run_flatten;
    return text && name_types(&text, c->types, 1) && text_begins(text, "Ll8E");
}

/* coalesceValuesKernel (const int64_t *starts, *order, const T *in, T *out,
 * int64_t count in, out, values each): sums of those at one place. */
static void run_coalesce(const struct compute *c,
                         const struct kernel_launch *launch)
{
    uint64_t starts = compute_u64(launch, 0), order = compute_u64(launch, 1);
    uint64_t in = compute_u64(launch, 2), out = compute_u64(launch, 3);
    uint64_t count = compute_u64(launch, 4), found = compute_u64(launch, 5);
    uint64_t each = compute_u64(launch, 6);
    uint32_t bytes = number_bytes(c->types[0]);

    if (!values_window(out) || !each || found > count)
        return;
    if (count > COMPUTE_INTEGERS / each ||
        !some_known(NUMBER_I64, starts, found) ||
        !some_known(NUMBER_I64, order, count) || !values_known(in, bytes)) {
        compute_forget(c->types[0], out, found * each * bytes);
        return;
    }
    for (uint64_t i = 0; i < found * each; i++) {
        uint64_t row = i / each;
        uint64_t end =
            row + 1 < found ? index_at(NUMBER_I64, starts, row + 1) : count;
        long double sum = 0, x;
        bool known = true;

        for (uint64_t k = index_at(NUMBER_I64, starts, row);
             k < end && k < count; k++) {
            uint64_t from = index_at(NUMBER_I64, order, k) * each + i % each;

            known &= compute_load(c->types[0], in + from * bytes, &x);
            sum += x;
        }
        compute_store(c->types[0], out + i * bytes, sum, known);
    }
}

bool compute_coalesce_parse(const char *name, struct compute *c)
{
    const char *text = name_after(name, "20coalesceValuesKernelI");

    c->run = run_coalesce;
    return text && name_types(&text, c->types, 1);
}

/* (operation, TensorInfo<T, uint64_t> dense, ...): a sparse tensor added in
 * place. */
static void run_sparse_add(const struct compute *c,
                           const struct kernel_launch *launch)
{
    struct {
        uint64_t data, sizes[OFFSETS_DIMS], strides[OFFSETS_DIMS];
        int32_t dims;
    } dense;
    uint64_t last = 0;

    memcpy(&dense, launch->arguments[1], sizeof dense);
    if (dense.dims < 0 || dense.dims > OFFSETS_DIMS ||
        !values_window(dense.data))
        return;
    for (int i = 0; i < dense.dims; i++)
        last += (dense.sizes[i] - 1) * dense.strides[i];
    compute_forget(c->types[0], dense.data,
                   (last + 1) * number_bytes(c->types[0]));
}

/* <operation<T>, index type, ...> */
bool compute_sparse_add_parse(const char *name, struct compute *c)
{
    const char *text = name_after(name, "12TensorCAddOpI");

    c->run = run_sparse_add;
    return text && name_types(&text, c->types, 1) && text_begins(text, "EEm");
}

/* How many of COUNT sorted numbers at ADDRESS are less than X. */
static uint64_t less_than(enum number_type type, uint64_t address,
                          uint64_t count, uint64_t x)
{
    uint64_t low = 0, high = count;

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;

        if (index_at(type, address, middle) < x)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* index_select of a sparse tensor, SparseCUDATensor.cu: (int count, lambda
 * {index_t *counts; const index_t *sorted; int64_t elements}, {out, numbers,
 * places of counts}): where each number is found first, and how often. */
static void run_matches(const struct compute *c,
                        const struct kernel_launch *launch)
{
    enum number_type type = c->types[0];
    uint64_t count = compute_u32(launch, 0), holds[3], data[3], bytes;

    memcpy(holds, launch->arguments[1], sizeof holds);
    memcpy(data, launch->arguments[2], sizeof data);
    bytes = count * number_bytes(type);
    if (!values_window(holds[0]) || !values_window(data[0]))
        return;
    if (!some_known(type, holds[1], holds[2]) ||
        !some_known(type, data[1], count) ||
        !some_known(type, data[2], count)) {
        compute_forget(type, holds[0], bytes);
        compute_forget(type, data[0], bytes);
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        uint64_t x = index_at(type, data[1], i);
        uint64_t first = less_than(type, holds[1], holds[2], x);
        uint64_t past = less_than(type, holds[1], holds[2], x + 1);
        uint64_t place = index_at(type, data[2], i);

        index_put(type, data[0], i, first);
        if (place < count)
            index_put(type, holds[0], place, past - first);
    }
}

/* Its numbers before: (int count, lambda {int64_t size}, {out, in}), those
 * below 0 counted from the end. */
static void run_wrapped(const struct compute *c,
                        const struct kernel_launch *launch)
{
    enum number_type type = c->types[0];
    uint64_t count = compute_u32(launch, 0), data[2];
    int64_t size = (int64_t)compute_u64(launch, 1);
    long double x;

    memcpy(data, launch->arguments[2], sizeof data);
    if (!values_window(data[0]) || !values_window(data[1]))
        return;
    for (uint64_t i = 0; i < count && count <= COMPUTE_INTEGERS; i++) {
        uint64_t at = i * number_bytes(type);
        bool known = compute_load(type, data[1] + at, &x);

        compute_store(type, data[0] + at, x < 0 ? x + (long double)size : x,
                      known);
    }
}

static uint32_t matches_reach(const struct compute *c,
                              const struct kernel_launch *launch, int i)
{
    (void)launch;
    if (i == 1)
        return c->count == 1 ? 8 : 24;
    return (uint32_t)(c->count + 1) * 8;
}

bool compute_matches_parse(const char *name, struct compute *c)
{
    enum number_type types[4];
    int inputs;

    if (!strstr(name, "24index_select_sparse_cuda") ||
        !strstr(name, "rrayIPcL"))
        return false;
    inputs = name_lambda(name, types, 4);
    c->run = inputs == 1 ? run_wrapped : run_matches;
    c->reach = matches_reach;
    c->count = inputs;
    c->types[0] = inputs > 0 ? types[0] : NUMBER_NONE;
    return inputs == 1 || inputs == 2;
}

/* triu_indices_kernel (T *out, int64_t first column, columns of the first
 * row of the lower part, columns, elements of the upper part, count) and
 * tril_indices_kernel (T *out, int64_t first row, columns of the first row of
 * the upper part, columns, -, count). */
struct triangle {
    bool is_upper;
    int64_t start, narrow, columns, full_rows;
};

/* The columns of row I, from *FIRST on. */
static int64_t triangle_row(const struct triangle *t, int64_t i, int64_t *first)
{
    int64_t lower = i - t->full_rows;

    *first = t->is_upper ? t->start + (lower > 0 ? lower : 0) : 0;
    if (t->is_upper)
        return lower < 0 ? t->columns : t->narrow - lower;
    return t->narrow + i < t->columns ? t->narrow + i : t->columns;
}

static void run_triangle(const struct compute *c,
                         const struct kernel_launch *launch)
{
    uint64_t out = compute_u64(launch, 0), count = compute_u64(launch, 5);
    struct triangle t = {.is_upper = c->form,
                         .start = (int64_t)compute_u64(launch, 1),
                         .narrow = (int64_t)compute_u64(launch, 2),
                         .columns = (int64_t)compute_u64(launch, 3)};
    int64_t first, width;

    if (!values_window(out) || t.columns < 1)
        return;
    if (count > COMPUTE_INTEGERS) {
        memsim_values_forget(out, 2 * count * number_bytes(c->types[0]));
        return;
    }
    if (t.is_upper)
        t.full_rows = (int64_t)compute_u64(launch, 4) / t.columns;
    int64_t row = t.is_upper ? 0 : t.start;
    for (uint64_t i = 0, r = 0; i < count; r++) {
        width = triangle_row(&t, (int64_t)r, &first);
        if (width < 1)
            return;
        for (int64_t k = 0; k < width && i < count; k++, i++) {
            index_put(c->types[0], out, i, (uint64_t)row + r);
            index_put(c->types[0], out, count + i, (uint64_t)(first + k));
        }
    }
}

bool compute_triangle_indices_parse(const char *name, struct compute *c)
{
    const char *text = name_after(name, "19triu_indices_kernelI");

    c->form = text != NULL;
    c->run = run_triangle;
    if (!text)
        text = name_after(name, "19tril_indices_kernelI");
    return text && name_types(&text, c->types, 1) &&
           strstr(text, "EEvPT_lllll");
}
