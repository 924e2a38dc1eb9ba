/* SPDX-License-Identifier: Apache-2.0
 * Elementwise kernels of tensors that are the same number all over, as a fill
 * makes them, of any size. */
#include "capture/core/compute/compute_loop.h"
#include "capture/core/memory/values.h"

/* The number that is all over the input I of L; false where none is. */
static bool input_constant(const struct loop *l, int i, long double *x)
{
    enum number_type type = l->types[i + 1];
    uint32_t unit = number_bytes(type);
    unsigned char value[16];
    unsigned char mark = values_constant(
        l->data[i + 1], loop_last_offset(l, i + 1) + unit, unit, value);

    *x = 0;
    if (!mark)
        return false;
    if (mark == VALUES_ASSUMED)
        compute_assume();
    *x = loop_input(l, i, number_load(type, value));
    return true;
}

bool loop_constant(const struct loop *l)
{
    uint32_t unit = number_bytes(l->types[0]);
    long double x[INPUTS] = {0};
    bool known[INPUTS] = {true, true, true};
    unsigned char value[16];

    if (l->compute->form == FORM_TAKE ||
        loop_last_offset(l, 0) + unit != l->count * unit)
        return false;
    for (int i = 0; i < l->inputs; i++)
        known[i] = input_constant(l, i, &x[i]);
    if (!(known[0] && known[1] && known[2]) && !loop_is_decided(l, x, known))
        return false;
    number_store(l->types[0], value, loop_evaluate(l, x));
    values_fill_as(l->data[0], value, unit, l->count, compute_mark());
    return true;
}
