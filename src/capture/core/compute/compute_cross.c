/* SPDX-License-Identifier: Apache-2.0
 * Products of vectors of three numbers: CrossKernel.cu. */
#include <string.h>

#include "capture/core/compute/compute.h"
#include "capture/core/compute/compute_name.h"
#include "capture/core/compute/compute_operation.h"
#include "capture/core/memory/values.h"

struct cross {
    enum number_type type;
    uint64_t addresses[3]; /* of a vector's first numbers: out, a, b */
    uint64_t steps[3];     /* from one to the next, in bytes */
};

/* Number K of the input I. */
static long double cross_load(const struct cross *v, int i, uint64_t k,
                              bool *known)
{
    long double x;

    *known &= compute_load(v->type, v->addresses[i] + k % 3 * v->steps[i], &x);
    return x;
}

static void write_cross_product(const struct cross *v)
{
    long double out[3];
    bool known[3] = {true, true, true};

    for (uint64_t k = 0; k < 3; k++)
        out[k] = number_sum(
            v->type,
            number_product(v->type, cross_load(v, 1, k + 1, &known[k]),
                           cross_load(v, 2, k + 2, &known[k])),
            number_product(v->type, -1,
                           number_product(v->type,
                                          cross_load(v, 1, k + 2, &known[k]),
                                          cross_load(v, 2, k + 1, &known[k]))));
    for (uint64_t k = 0; k < 3; k++)
        compute_store(v->type, v->addresses[0] + k * v->steps[0], out[k],
                      known[k]);
}

/* cross_kernel (int vectors, T *out, const T *a, const T *b,
 * OffsetCalculator<3> in elements, strides of out, a and b) */
static void run_cross(const struct compute *c,
                      const struct kernel_launch *launch)
{
    const char *calculator = launch->arguments[4];
    uint64_t count = compute_u32(launch, 0), offsets[3];
    uint32_t bytes = number_bytes(c->types[0]);
    bool fits = count <= (number_is_float(c->types[0]) ? COMPUTE_FLOATS
                                                       : COMPUTE_INTEGERS);
    struct cross v = {.type = c->types[0]};

    if (!count || !compute_offsets_valid(calculator))
        return;
    for (uint32_t i = 0; i < 3; i++) {
        if (!values_window(compute_u64(launch, 1 + i)))
            return;
        v.steps[i] = c->bytes == 4 ? compute_u32(launch, 5 + i)
                                   : compute_u64(launch, 5 + i);
        v.steps[i] *= bytes;
    }
    if (!fits) {
        compute_offsets(calculator, 3, count - 1, offsets);
        compute_forget(v.type, compute_u64(launch, 1),
                       offsets[0] * bytes + 2 * v.steps[0] + bytes);
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        compute_offsets(calculator, 3, i, offsets);
        for (uint32_t k = 0; k < 3; k++)
            v.addresses[k] = compute_u64(launch, 1 + k) + offsets[k] * bytes;
        write_cross_product(&v);
    }
}

static uint32_t cross_reach(const struct compute *c,
                            const struct kernel_launch *launch, int i)
{
    (void)launch;
    (void)i;
    return c->bytes;
}

/* <T, OffsetCalculator<3, unsigned>, int or int64_t>: BYTES of the last. */
bool compute_cross_parse(const char *name, struct compute *c)
{
    const char *text = name_after(name, "12cross_kernelI");
    const char *stride;
    enum number_type type;

    if (!text || !name_types(&text, c->types, 1))
        return false;
    stride = name_after(text, "16OffsetCalculatorILi3EjLb0EE");
    c->run = run_cross;
    c->reach = cross_reach;
    if (!stride || !name_types(&stride, &type, 1))
        return false;
    c->bytes = number_bytes(type);
    return c->bytes >= 4;
}
