/* SPDX-License-Identifier: Apache-2.0
 * Kernels of few lines each that rearrange a tensor or number it:
 * TensorTransform- ations.cu, TriangularOps.cu, Bucketization.cu,
 * RepeatInterleave.cu, SortStable.cu, UniqueCub.cu, and additions at places
 * that a tensor names, Indexing.cu. */
#include <string.h>

#include "capture/core/compute/compute.h"
#include "capture/core/compute/compute_name.h"
#include "capture/core/compute/compute_operation.h"
#include "capture/core/memory/values.h"

static bool one_type(const char *name, const char *pattern, struct compute *c)
{
    const char *text = name_after(name, pattern);

    if (!text || !name_types(&text, c->types, 1))
        return false;
    c->bytes = number_bytes(c->types[0]);
    return true;
}

/* fill_reverse_indices_kernel (int64_t *out, int count, IntDivider length):
 * each row's numbers. */
static void run_row_numbers(const struct compute *c,
                            const struct kernel_launch *launch)
{
    uint64_t out = compute_u64(launch, 0), count = compute_u32(launch, 1);
    uint32_t length = compute_u32(launch, 2);

    (void)c;
    if (!length || count > COMPUTE_INTEGERS || !values_window(out))
        return;
    for (uint64_t i = 0; i < count; i++)
        compute_store(NUMBER_I64, out + 8 * i, i % length, true);
}

bool compute_row_numbers_parse(const char *name, struct compute *c)
{
    c->run = run_row_numbers;
    return strstr(name, "27fill_reverse_indices_kernelEPliN");
}

/* roll_cuda_kernel (in, out, int64_t count, dimension, start, size, stride,
 * dimensions) */
static void run_roll(const struct compute *c,
                     const struct kernel_launch *launch)
{
    uint64_t in = compute_u64(launch, 0), out = compute_u64(launch, 1);
    uint64_t count = compute_u64(launch, 2), start = compute_u64(launch, 4);
    uint64_t size = compute_u64(launch, 5), stride = compute_u64(launch, 6);

    if (!size || !stride || start > size || !values_window(out) ||
        count * c->bytes > VALUES_COPY_BYTES)
        return;
    for (uint64_t i = 0; i < count; i++) {
        bool wraps = i % (stride * size) / stride >= size - start;
        uint64_t from =
            wraps ? i - (size - start) * stride : i + start * stride;

        compute_move(out + i * c->bytes, in + from * c->bytes, c->bytes);
    }
}

bool compute_roll_parse(const char *name, struct compute *c)
{
    c->run = run_roll;
    return one_type(name, "16roll_cuda_kernelI", c);
}

/* flip_kernel_impl's closure: OffsetCalculator<2> with signed strides, char
 * *out, const char *in. */
static void run_flip(const struct compute *c,
                     const struct kernel_launch *launch)
{
    const char *closure = launch->arguments[1];
    uint64_t count = compute_u64(launch, 0), offsets[2], data[2];

    memcpy(data, closure + ((OFFSETS_BYTES(2) + 7u) & ~7u), sizeof data);
    if (!compute_offsets_valid(closure) || !values_window(data[0]) ||
        count * c->bytes > VALUES_COPY_BYTES)
        return;
    for (uint64_t i = 0; i < count; i++) {
        compute_offsets(closure, 2, i, offsets);
        compute_move(data[0] + (uint64_t)(int32_t)offsets[0],
                     data[1] + (uint64_t)(int32_t)offsets[1], c->bytes);
    }
}

static uint32_t flip_reach(const struct compute *c,
                           const struct kernel_launch *launch, int i)
{
    (void)c;
    (void)launch;
    (void)i;
    return ((OFFSETS_BYTES(2) + 7u) & ~7u) + 16;
}

bool compute_flip_parse(const char *name, struct compute *c)
{
    const char *text = name_after(name, "16flip_kernel_implI");

    c->run = run_flip;
    c->reach = flip_reach;
    c->bytes = text ? name_bytes(text) : 0;
    return c->bytes;
}

/* triu_tril_kernel<T, int32_t, upper, ...> (TensorInfo out, in, int64_t k, ...)
 */
static void run_triangle(const struct compute *c,
                         const struct kernel_launch *launch)
{
    struct compute_tensor out, in;
    int64_t k = (int64_t)compute_u64(launch, 2);
    uint64_t count = 1, zero[2] = {0};

    if (!compute_tensor_read(launch->arguments[0], &out) ||
        !compute_tensor_read(launch->arguments[1], &in) || out.dims < 2)
        return;
    for (int i = 0; i < out.dims; i++)
        count *= out.sizes[i];
    if (count * c->bytes > VALUES_COPY_BYTES)
        return;
    for (uint64_t i = 0; i < count; i++) {
        int64_t column = (int64_t)(i % out.sizes[out.dims - 1]);
        int64_t row =
            (int64_t)(i / out.sizes[out.dims - 1] % out.sizes[out.dims - 2]);
        bool kept = c->form ? column - row >= k : column - row <= k;
        uint64_t to = out.data + compute_tensor_offset(&out, i) * c->bytes;

        if (kept)
            compute_move(to, in.data + compute_tensor_offset(&in, i) * c->bytes,
                         c->bytes);
        else
            memsim_values_fill(to, zero, c->bytes, 1);
    }
}

bool compute_triangle_parse(const char *name, struct compute *c)
{
    c->run = run_triangle;
    c->form = strstr(name, "iLb1E") != NULL;
    return one_type(name, "16triu_tril_kernelI", c) &&
           (c->form || strstr(name, "iLb0E"));
}

static uint64_t search_sorted(const struct compute *c, uint64_t sorted,
                              uint64_t count, long double x, bool right)
{
    uint64_t low = 0, high = count;
    long double middle;

    while (low < high) {
        uint64_t half = (low + high) / 2;

        compute_load(c->types[0], sorted + half * c->bytes, &middle);
        if (middle < x || (right && middle == x))
            low = half + 1;
        else
            high = half;
    }
    return low;
}

/* searchsorted_cuda_kernel<in, out> (out, in, sorted, order, int64_t row
 * length, sorted's row length, count, bool right, one row of sorted) */
static void run_search(const struct compute *c,
                       const struct kernel_launch *launch)
{
    uint64_t out = compute_u64(launch, 0), in = compute_u64(launch, 1);
    uint64_t sorted = compute_u64(launch, 2), order = compute_u64(launch, 3);
    uint64_t row = compute_u64(launch, 4), length = compute_u64(launch, 5);
    uint64_t count = compute_u64(launch, 6);
    bool right = *(const unsigned char *)launch->arguments[7] & 1;
    bool one_row = *(const unsigned char *)launch->arguments[8] & 1;
    long double x;

    if (order || !row || count > COMPUTE_INTEGERS || !values_window(out))
        return;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t start = sorted + (one_row ? 0 : i / row * length * c->bytes);
        bool known = compute_load(c->types[0], in + i * c->bytes, &x) &&
                     values_known(start, length * c->bytes);

        compute_store(c->types[1], out + i * number_bytes(c->types[1]),
                      search_sorted(c, start, length, x, right), known);
    }
}

bool compute_search_parse(const char *name, struct compute *c)
{
    const char *text = name_after(name, "24searchsorted_cuda_kernelI");

    c->run = run_search;
    if (!text || !name_types(&text, c->types, 2))
        return false;
    c->bytes = number_bytes(c->types[0]);
    return true;
}

/* compute_cuda_kernel (const T *repeats, const int64_t *cumulative, T *out,
 * int64_t count, int64_t size): number i as often as repeats[i] says. */
static void run_repeat(const struct compute *c,
                       const struct kernel_launch *launch)
{
    uint64_t repeats = compute_u64(launch, 0), out = compute_u64(launch, 2);
    uint64_t count = compute_u64(launch, 3), size = compute_u64(launch, 4);
    uint64_t at = 0;

    if (size > COMPUTE_INTEGERS || !values_window(out) ||
        !values_known(repeats, count * c->bytes))
        return;
    for (uint64_t i = 0; i < count; i++) {
        long double times;

        compute_load(c->types[0], repeats + i * c->bytes, &times);
        for (; times > 0 && at < size; times--, at++)
            compute_store(c->types[0], out + at * c->bytes, i, true);
    }
}

bool compute_repeat_parse(const char *name, struct compute *c)
{
    c->run = run_repeat;
    return one_type(name, "19compute_cuda_kernelI", c);
}

/* unique_bool_write_output (int count, const int *true ones, bool *values,
 * int64_t *counts) */
static void run_unique_bool(const struct compute *c,
                            const struct kernel_launch *launch)
{
    uint64_t count = compute_u32(launch, 0), values = compute_u64(launch, 2);
    uint64_t counts = compute_u64(launch, 3), found = 0;
    long double ones;
    bool known = compute_load(NUMBER_I32, compute_u64(launch, 1), &ones);

    (void)c;
    for (int value = 0; value < 2; value++) {
        long double n = value ? ones : count - ones;

        if (n <= 0)
            continue;
        compute_store(NUMBER_BOOL, values + found, value, known);
        compute_store(NUMBER_I64, counts + 8 * found++, n, known);
    }
}

bool compute_unique_bool_parse(const char *name, struct compute *c)
{
    c->run = run_unique_bool;
    return strstr(name, "24unique_bool_write_outputE");
}

/* unique_bool_write_inverse_indices (int count, const int *true ones, const
 * bool *in, int64_t *out) */
static void run_inverse_bool(const struct compute *c,
                             const struct kernel_launch *launch)
{
    uint64_t count = compute_u32(launch, 0), in = compute_u64(launch, 2);
    uint64_t out = compute_u64(launch, 3);
    long double ones, x;
    bool both =
        compute_load(NUMBER_I32, compute_u64(launch, 1), &ones) && ones < count;

    (void)c;
    if (count > COMPUTE_INTEGERS || !out)
        return;
    for (uint64_t i = 0; i < count; i++) {
        bool known = compute_load(NUMBER_BOOL, in + i, &x);

        compute_store(NUMBER_I64, out + 8 * i, x && both, known);
    }
}

bool compute_inverse_bool_parse(const char *name, struct compute *c)
{
    c->run = run_inverse_bool;
    return strstr(name, "33unique_bool_write_inverse_indicesE");
}

/* ALPHA times the number at FROM into that at TO. */
static void add_scaled(const struct compute *c, uint64_t to, uint64_t from,
                       long double alpha, bool known)
{
    long double a, b;

    known &= compute_load(c->types[0], to, &a);
    known &= compute_load(c->types[0], from, &b);
    compute_store(
        c->types[0], to,
        c->operation(a, number_product(c->types[0], alpha, b), 0), known);
}

/* index_add_, index_reduce_: indexFunc{Small,Large}Index (TensorInfo out, in,
 * index, int out dimension, in dimension, [total,] inner size, int64_t out
 * size, numel, functor, T alpha). */
static void run_index_add(const struct compute *c,
                          const struct kernel_launch *launch)
{
    struct compute_tensor out, in, index;
    uint32_t to = compute_u32(launch, 3), from = compute_u32(launch, 4);
    int64_t size = (int64_t)compute_u64(launch, 6 + (uint32_t)c->layout);
    uint64_t numel = compute_u64(launch, 7 + (uint32_t)c->layout);
    long double alpha =
        number_load(c->types[0], launch->arguments[9 + c->layout]);
    long double row;

    if (!compute_tensor_read(launch->arguments[0], &out) ||
        !compute_tensor_read(launch->arguments[1], &in) ||
        !compute_tensor_read(launch->arguments[2], &index) ||
        to >= OFFSETS_DIMS || from >= OFFSETS_DIMS)
        return;
    uint64_t count = index.dims ? index.sizes[0] : 1;
    uint64_t inner = compute_slice(c, launch, count);
    if (count * inner > COMPUTE_INTEGERS || !values_known(in.data, c->bytes)) {
        memsim_values_forget(out.data, numel * c->bytes);
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        if (!compute_load(c->types[1],
                          index.data + compute_tensor_offset(&index, i) *
                                           number_bytes(c->types[1]),
                          &row) &&
            size > 0)
            row = compute_place_guess(c, launch, (uint64_t)size, i);
        for (uint64_t k = 0; row >= 0 && row < size && k < inner; k++)
            add_scaled(c,
                       out.data + (compute_tensor_offset(&out, k) +
                                   (uint64_t)row * out.strides[to]) *
                                      c->bytes,
                       in.data + (compute_tensor_offset(&in, k) +
                                  i * in.strides[from]) *
                                     c->bytes,
                       alpha, true);
    }
}

static uint32_t index_add_reach(const struct compute *c,
                                const struct kernel_launch *launch, int i)
{
    (void)launch;
    (void)i;
    return c->bytes; /* of alpha */
}

bool compute_index_add_parse(const char *name, struct compute *c)
{
    const char *text = name_after(name, "19indexFuncSmallIndexI");

    c->run = run_index_add;
    c->reach = index_add_reach;
    if (!text) {
        text = name_after(name, "19indexFuncLargeIndexI");
        c->layout = 1;
    }
    if (!text || !name_types(&text, c->types, 2) || *text != 'j')
        return false;
    c->bytes = number_bytes(c->types[0]);
    c->operation = operation_of_type(operation_reducer(text), c->types[0]);
    return c->operation;
}

/* index_put_(accumulate=True): indexing_backward_kernel and its kin (const
 * int64_t *sorted, *order, const T *in, T *out, int64_t count, stride, stride
 * before, outer size, ...) */
static void run_index_put_add(const struct compute *c,
                              const struct kernel_launch *launch)
{
    uint64_t sorted = compute_u64(launch, 0), order = compute_u64(launch, 1);
    uint64_t in = compute_u64(launch, 2), out = compute_u64(launch, 3);
    uint64_t count = compute_u64(launch, 4), stride = compute_u64(launch, 5);
    uint64_t before = compute_u64(launch, 6), outer = compute_u64(launch, 7);
    long double row, place;

    if (!values_window(out) || count * stride * outer > COMPUTE_INTEGERS)
        return;
    for (uint64_t z = 0; z < outer; z++)
        for (uint64_t i = 0; i < count; i++) {
            bool known = compute_load(NUMBER_I64, sorted + 8 * i, &row) &&
                         compute_load(NUMBER_I64, order + 8 * i, &place);
            uint64_t to = (uint64_t)row * stride + z * before;
            uint64_t from = ((uint64_t)place + z * count) * stride;

            for (uint64_t k = 0; k < stride; k++)
                add_scaled(c, out + (to + k) * c->bytes,
                           in + (from + k) * c->bytes, 1, known);
        }
}

bool compute_index_put_add_parse(const char *name, struct compute *c)
{
    c->operation = operation_add;
    c->run = run_index_put_add;
    return one_type(name, "24indexing_backward_kernelI", c) ||
           one_type(name, "37indexing_backward_kernel_small_strideI", c) ||
           one_type(name, "33indexing_backward_kernel_stride_1I", c);
}

/* UnfoldBackwardKernel.cu: (int count, {OffsetCalculator<3>, out, ...}). What
 * it adds up is not looked at: floating numbers, too many of them. */
#define UNFOLD_OUT ((OFFSETS_BYTES(3) + 7) & ~7u)

static void run_unfold_backward(const struct compute *c,
                                const struct kernel_launch *launch)
{
    const char *closure = launch->arguments[1];
    uint64_t count = compute_u32(launch, 0), out, offsets[3];

    memcpy(&out, closure + UNFOLD_OUT, sizeof out);
    if (!count || !compute_offsets_valid(closure) || !values_window(out))
        return;
    compute_offsets(closure, 3, count - 1, offsets);
    compute_forget(c->types[0], out, offsets[0] + number_bytes(c->types[0]));
}

static uint32_t unfold_backward_reach(const struct compute *c,
                                      const struct kernel_launch *launch, int i)
{
    (void)c;
    (void)launch;
    (void)i;
    return UNFOLD_OUT + 8;
}

bool compute_unfold_backward_parse(const char *name, struct compute *c)
{
    c->run = run_unfold_backward;
    c->reach = unfold_backward_reach;
    return one_type(name, "32_unfold_backward_internal_kernelI", c);
}
