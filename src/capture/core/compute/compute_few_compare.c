/* SPDX-License-Identifier: Apache-2.0
 * How many elements a comparison of floating numbers that are not known
 * selects, where the comparison itself says so. */
#include "capture/core/compute/compute_few.h"
#include "capture/core/compute/compute_loop.h"
#include "capture/core/compute/compute_operation.h"
#include "capture/core/memory/values.h"

/* "scores >= 0", "width >= 0.001": a threshold that small is there for what is
 * degenerate. Measured of torchvision's detectors: 98.8 to 100%. */
#define SMALL 0.01L
#define KEPT  0.99

/* Whether nothing is known of the floating numbers of input I. */
static bool is_unknown_float(const struct loop *l, int i)
{
    uint64_t unit = number_bytes(l->types[i + 1]), first = l->data[i + 1];
    uint64_t bytes = loop_last_offset(l, i + 1) + unit;
    const struct values_window *w = values_window(first);

    if (!number_is_float(l->types[i + 1]) || !w || values_known(first, unit))
        return false;
    if (bytes > VALUES_COPY_BYTES || !values_some(w, first - w->base, bytes))
        return true;
    for (uint64_t at = 0; at < bytes; at += unit)
        if (values_known(first + at, unit))
            return false;
    return true;
}

/* CompareKernels.cu: OpType{GE, GT, LE, LT}. "> 0" asks for a sign, and keeps
 * no more than the policy says. */
static bool few_of_filter(const struct loop *l, struct few *few)
{
    bool keeps = (l->variant == 0 && l->s[0] >= 0) ||
                 (l->variant == 1 && l->s[0] > 0);

    if (!keeps || l->s[0] > SMALL || l->compute->form != FORM_B ||
        !is_unknown_float(l, 0))
        return false;
    *few = (struct few){(uint64_t)((double)l->count * KEPT), true};
    return true;
}

/* "quality == best[:, None]": of floating numbers one equals each of those that
 * are broadcast, as the maximum of a row does. */
static bool few_of_equal(const struct loop *l, struct few *few)
{
    uint64_t own[2];

    if (l->compute->form != FORM_BINARY || l->variant || !l->offsets ||
        !is_unknown_float(l, 0) || !is_unknown_float(l, 1))
        return false;
    for (int i = 0; i < 2; i++)
        own[i] = loop_last_offset(l, i + 1) / number_bytes(l->types[i + 1]) + 1;
    uint64_t fewer = own[0] < own[1] ? own[0] : own[1];
    *few = (struct few){fewer, true};
    return fewer < l->count;
}

bool few_of_comparison(const struct loop *l, struct few *few)
{
    if (l->count < 2 || l->types[0] != NUMBER_BOOL || values_are_diverted())
        return false;
    if (l->compute->operation == operation_compare)
        return few_of_filter(l, few);
    return l->compute->operation == operation_equal && few_of_equal(l, few);
}
