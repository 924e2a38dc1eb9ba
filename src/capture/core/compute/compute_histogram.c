/* SPDX-License-Identifier: Apache-2.0
 * Histograms: SummaryOps.cu. */
#include <string.h>

#include "capture/core/compute/compute.h"
#include "capture/core/compute/compute_name.h"
#include "capture/core/memory/values.h"

/* Of values that are not known each bin gets as many. */
static void histogram_guess(const struct compute *c,
                            const struct kernel_launch *launch, uint64_t out,
                            uint64_t bins, uint64_t count)
{
    if (bins > COMPUTE_INTEGERS)
        return;
    compute_assume();
    for (uint64_t i = 0; i < bins; i++)
        compute_store(c->types[0], out + i * number_bytes(c->types[0]),
                      count / bins + (i < count % bins), true);
    compute_guess_note(c, launch, count, bins,
                       "a histogram (bincount, histc) of values computed on "
                       "the GPU: taken to be even");
}

/* TensorInfo<T, int64_t> of a vector: T *data; int64_t sizes[25], strides[25];
 * int dims. The steps from one element to the next, in elements. */
#define INFO_STRIDE (8 + 8 * OFFSETS_DIMS)

static uint64_t stride_of(const struct kernel_launch *launch, uint32_t i)
{
    uint64_t stride;

    memcpy(&stride, (const char *)launch->arguments[i] + INFO_STRIDE,
           sizeof stride);
    return stride;
}

/* Whether COUNT elements, STRIDE bytes apart, are known. */
static bool are_known(enum number_type type, uint64_t first, uint64_t count,
                      uint64_t stride)
{
    uint32_t bytes = number_bytes(type);

    if (stride == bytes)
        return values_known(first, count * bytes);
    for (uint64_t i = 0; i < count; i++)
        if (!values_known(first + i * stride, bytes))
            return false;
    return true;
}

/* kernelHistogram1D (TensorInfo<output> a, p, TensorInfo<const input> b,
 * int64_t bins, lowest, highest, count, ...): counts are added. */
static void run_histogram(const struct compute *c,
                          const struct kernel_launch *launch)
{
    uint64_t out = compute_u64(launch, 0), in = compute_u64(launch, 2);
    int64_t bins = (int64_t)compute_u64(launch, 3);
    long double low = number_load(c->scalar, launch->arguments[4]);
    long double high = number_load(c->scalar, launch->arguments[5]);
    uint64_t count = compute_u64(launch, 6);
    uint32_t bytes = number_bytes(c->types[0]);
    uint64_t step = stride_of(launch, 2) * number_bytes(c->types[1]);
    long double x, old;

    if (bins <= 0 || !(low < high) || !values_window(out) || !values_window(in))
        return;
    if (count > COMPUTE_INTEGERS ||
        !are_known(c->types[1], in, count, step)) {
        histogram_guess(c, launch, out, (uint64_t)bins, count);
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        compute_load(c->types[1], in + i * step, &x);
        if (x < low || x > high)
            continue;
        uint64_t bin = (uint64_t)((x - low) * bins / (high - low));
        if (bin == (uint64_t)bins)
            bin--;
        bool known = compute_load(c->types[0], out + bin * bytes, &old);
        compute_store(c->types[0], out + bin * bytes, old + 1, known);
    }
}

/* The lambda holds the TensorInfo<T, int64_t> of the weights, which are of the
 * output's type. */
#define WEIGHTS_BYTES (INFO_STRIDE + 8)

static void weight_add(const struct compute *c, uint64_t out, uint64_t weight)
{
    long double x, old;
    bool known = compute_load(c->types[0], weight, &x);

    known &= compute_load(c->types[0], out, &old);
    compute_store(c->types[0], out, old + x, known);
}

/* bincount with weights: of integers, bins are one wide. */
static void run_histogram_weighted(const struct compute *c,
                                   const struct kernel_launch *launch)
{
    uint64_t out = compute_u64(launch, 0), in = compute_u64(launch, 2);
    uint64_t bins = compute_u64(launch, 3), count = compute_u64(launch, 6);
    int64_t low = (int64_t)number_load(c->scalar, launch->arguments[4]);
    uint32_t bytes = number_bytes(c->types[0]);
    uint64_t weights = compute_u64(launch, 7), stride = stride_of(launch, 7);
    uint64_t step = stride_of(launch, 2) * number_bytes(c->types[1]);
    long double x;

    if (bins > VALUES_COPY_BYTES)
        return;
    if (count > COMPUTE_CHECKED || number_is_float(c->types[1]) ||
        !values_window(weights) || !values_window(in) ||
        !are_known(c->types[1], in, count, step)) {
        compute_forget(c->types[0], out, bins * bytes);
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        compute_load(c->types[1], in + i * step, &x);
        if (x >= low && x < low + (int64_t)bins)
            weight_add(c, out + (uint64_t)((int64_t)x - low) * bytes,
                       weights + i * stride * bytes);
    }
}

static uint32_t histogram_reach(const struct compute *c,
                                const struct kernel_launch *launch, int i)
{
    (void)launch;
    if (i == 7)
        return c->form ? WEIGHTS_BYTES : 0;
    return number_bytes(c->scalar);
}

bool compute_histogram_parse(const char *name, struct compute *c)
{
    const char *text = name_after(name, "17kernelHistogram1DI");

    c->run = run_histogram;
    c->reach = histogram_reach;
    /* <output_t, input_t, int64_t, ...>; the second lambda counts, the first
     * adds weights. */
    if (!text || !name_types(&text, c->types, 2) || *text != 'l')
        return false;
    c->form = !strstr(text, "EUllE0_");
    if (c->form)
        c->run = run_histogram_weighted;
    c->scalar =
        number_is_float(c->types[1]) ? number_opmath(c->types[1]) : NUMBER_I64;
    return true;
}
