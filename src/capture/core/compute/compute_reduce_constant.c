/* SPDX-License-Identifier: Apache-2.0
 * Reductions of tensors that are the same number all over. */
#include "capture/core/compute/compute_math.h"
#include "capture/core/compute/compute_operation.h"
#include "capture/core/compute/compute_reduce.h"
#include "capture/core/memory/values.h"

/* The number that is all over R's input; false where none is. */
static bool source_constant(const struct compute *c, const struct reduction *r,
                            long double *x)
{
    uint32_t unit = number_bytes(c->types[1]);
    uint64_t outer[2], inner;
    unsigned char value[16];

    compute_offsets(r->output_offsets, 2, (uint64_t)r->config.outputs - 1,
                    outer);
    compute_offsets(r->input_offsets, 1, (uint64_t)r->config.inputs - 1,
                    &inner);
    unsigned char mark =
        values_constant(r->source, outer[1] + inner + unit, unit, value);
    if (!mark)
        return false;
    if (mark == VALUES_ASSUMED)
        compute_assume();
    *x = number_load(c->types[1], value);
    return true;
}

/* What COUNT times X comes to. */
static long double result_of(const struct compute *c, uint64_t count,
                             long double x)
{
    switch (c->form) {
    case FORM_SUM:
        return number_product(c->types[0], count, x);
    case FORM_PRODUCT:
        return number_is_float(c->types[0])
                   ? math_power(x, (long double)count, 0)
                   : operation_power(x, (long double)count, 0);
    case FORM_ANY:
    case FORM_ALL:
        return x != 0;
    default:
        return x;
    }
}

/* All of R's outputs at once, where they lie in one piece. */
static bool outputs_fill(const struct compute *c, const struct reduction *r,
                         long double result)
{
    uint64_t outputs = (uint64_t)r->config.outputs, offsets[2];
    uint32_t unit = number_bytes(c->types[0]);
    unsigned char value[16];

    compute_offsets(r->output_offsets, 2, outputs - 1, offsets);
    if ((c->layout != LAYOUT_VALUE && c->layout != LAYOUT_JITTED) ||
        offsets[0] + unit != outputs * unit)
        return false;
    number_store(c->types[0], value, result);
    values_fill_as(r->destination[0], value, unit, outputs, compute_mark());
    return true;
}

bool reduce_constant(const struct compute *c, const struct reduction *r)
{
    uint64_t outputs = (uint64_t)r->config.outputs, offsets[2];
    long double x;

    if (!source_constant(c, r, &x))
        return false;
    long double result = result_of(c, (uint64_t)r->config.inputs, x);
    if (outputs_fill(c, r, result))
        return true;
    if (outputs > COMPUTE_INTEGERS)
        return false;
    for (uint64_t o = 0; o < outputs; o++) {
        compute_offsets(r->output_offsets, 2, o, offsets);
        reduce_store(c, r, offsets[0], result, 0, true);
        if (c->layout == LAYOUT_BOTH)
            compute_store(c->types[0], r->destination[1] + offsets[0], x, true);
    }
    return true;
}
