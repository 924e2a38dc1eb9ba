/* SPDX-License-Identifier: Apache-2.0
 * One element of an elementwise kernel, of whose inputs some may not be known:
 * the policy of doc/values.md. */
#include <math.h>

#include "capture/core/compute/compute.h"
#include "capture/core/compute/compute_loop.h"
#include "capture/core/compute/compute_operation.h"
#include "capture/core/torch/tag_operator.h"

/* An unknown number is taken to be finite: isnan() asks x != x, isinf() and
 * isfinite() compare with infinity. */
static bool is_finite_check(const struct loop *l)
{
    if (l->compute->operation != operation_equal ||
        !number_is_float(l->types[1]))
        return false;
    return l->compute->form == FORM_BINARY ? l->data[1] == l->data[2]
                                           : isinf(l->s[0]);
}

/* torch.distributions asks x % 1 == 0 of samples: an integer has no remainder,
 * known or not. */
static bool is_remainder_by_one(const struct loop *l)
{
    return l->compute->operation == operation_remainder &&
           l->compute->form == FORM_B && l->s[0] == 1 &&
           !number_is_float(l->types[1]);
}

/* PyTorch checks a flag of its own by torch.equal(flag, true): it is what the
 * script would read. */
static bool is_flag_check(const struct loop *l)
{
    return l->compute->operation == operation_equal && l->count == 1 &&
           l->types[1] == NUMBER_BOOL && operator_runs("aten::equal");
}

/* Whether one of two inputs is a number, or is broadcast: each of its elements
 * meets several of the other's. */
static bool is_broadcast(const struct loop *l)
{
    uint64_t offsets[INPUTS + 1];

    if (l->count == 1)
        return !operator_runs("aten::equal");
    if (!l->offsets)
        return false;
    compute_offsets(l->offsets, l->inputs + 1, l->count - 1, offsets);
    return offsets[1] / number_bytes(l->types[1]) + 1 < l->count ||
           offsets[2] / number_bytes(l->types[2]) + 1 < l->count;
}

/* What is not known equals no constant: the end of a text does not come, nor
 * does padding, and all that hangs on it is as large as it can be. */
static bool is_unequal(const struct loop *l, const bool *known)
{
    if (l->compute->operation != operation_equal)
        return false;
    if (l->compute->form != FORM_BINARY)
        return !known[0];
    return known[0] != known[1] && is_broadcast(l);
}

/* PyTorch asks one element for all() and any() by a copy to a flag. */
static bool is_all_of_one(const struct loop *l)
{
    return l->count == 1 && l->types[0] == NUMBER_BOOL &&
           l->compute->operation == operation_copy &&
           operator_runs("aten::all");
}

/* Whether one of two inputs is known to be VALUE, as a truth. */
static bool is_either(const long double *x, const bool *known, bool value)
{
    return (known[0] && (x[0] != 0) == value) ||
           (known[1] && (x[1] != 0) == value);
}

bool loop_is_decided(const struct loop *l, const long double *x,
                     const bool *known)
{
    operation_function *op = l->compute->operation;

    switch ((enum form)l->compute->form) {
    case FORM_WHERE:
        return known[0] && known[x[0] ? 1 : 2];
    case FORM_MASK:
        return known[1] && x[1];
    case FORM_BINARY:
        if (op == operation_logical_and || op == operation_and)
            return is_either(x, known, false);
        return op == operation_logical_or && is_either(x, known, true);
    default:
        return false;
    }
}

/* A floating number that is not known is between 0 and 1 where it is compared,
 * as a probability, and as small as a loss. */
static void suppose_value(const struct loop *l, long double *x,
                          const bool *known)
{
    for (int i = 0; i < l->inputs; i++)
        if (!known[i] && !x[i] && number_is_float(l->types[i + 1]))
            x[i] = 0.5L;
}

/* Whether one result is better than another, neither of them known: it is. An
 * early stopping or a search then goes on as long as it can. */
static bool is_better(const struct loop *l, const bool *known)
{
    return l->count == 1 && l->inputs == 2 && !known[0] && !known[1] &&
           l->compute->operation == operation_compare &&
           number_is_float(l->types[1]) && l->data[1] != l->data[2];
}

static bool is_taken_for_true(const struct loop *l, const bool *known)
{
    return is_all_of_one(l) || is_better(l, known);
}

static void inputs_load(const struct loop *l, const uint64_t *offsets,
                        long double *x, bool *known)
{
    for (int i = 0; i < l->inputs; i++) {
        known[i] = compute_load(l->types[i + 1],
                                l->data[i + 1] + offsets[i + 1], &x[i]);
        x[i] = loop_input(l, i, x[i]);
    }
}

/* masked_scatter: what the mask x1 is true for is the next of a source. */
static void source_take(const struct loop *l, long double *x, bool *known)
{
    uint64_t at =
        (uint64_t)l->s[0] + (uint64_t)x[2] * number_bytes(l->types[0]);

    if (known[1] && x[1])
        known[0] = known[2] && compute_load(l->types[0], at, &x[0]);
    known[0] &= known[1];
    known[1] = known[2] = true;
    x[0] = known[0] ? x[0] : 0;
}

void loop_element(const struct loop *l, uint64_t index, bool certain)
{
    uint64_t offsets[INPUTS + 1];
    long double x[INPUTS] = {0}, value;
    bool known[INPUTS] = {true, true, true};

    if (l->offsets)
        compute_offsets(l->offsets, l->inputs + 1, index, offsets);
    else
        for (int i = 0; i <= l->inputs; i++)
            offsets[i] = index * number_bytes(l->types[i]);
    inputs_load(l, offsets, x, known);
    if (l->compute->form == FORM_TAKE)
        source_take(l, x, known);
    bool all_known =
        (known[0] && known[1] && known[2]) || loop_is_decided(l, x, known);
    if (!all_known && l->compute->operation == operation_compare)
        suppose_value(l, x, known);
    value = loop_evaluate(l, x);
    if (!all_known && !certain && is_unequal(l, known)) {
        value = l->variant != 0;
        certain = true;
        compute_assume();
    } else if (!all_known && is_taken_for_true(l, known)) {
        value = 1;
    }
    compute_store(l->types[0], l->data[0] + offsets[0], value,
                  all_known || certain);
}

bool loop_is_certain(const struct loop *l)
{
    return is_finite_check(l) || is_remainder_by_one(l) || is_flag_check(l);
}
