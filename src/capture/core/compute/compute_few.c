/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/compute/compute_few.h"

#include <string.h>

#include "capture/core/compute/compute_loop.h"
#include "capture/core/compute/compute_operation.h"
#include "capture/core/memory/values.h"
#include "capture/core/memory/values_few.h"

#define COUNTED_BYTES VALUES_WRITE_BYTES /* of known elements: looked at */

/* Known elements are counted. */
static bool known_few(enum number_type type, uint64_t address, uint64_t count,
                      uint64_t *few)
{
    const struct values_window *w = values_window(address);
    uint32_t unit = number_bytes(type);
    uint64_t bytes = count * unit;
    static const char zero[16];

    if (!w || bytes > COUNTED_BYTES || !values_known(address, bytes))
        return false;
    const char *at = values_at(w, address - w->base, bytes);
    *few = 0;
    for (uint64_t i = 0; i < count; i++)
        *few += memcmp(at + i * unit, zero, unit) != 0;
    return true;
}

bool few_get(enum number_type type, uint64_t address, uint64_t count,
             uint64_t *few)
{
    if (values_are_diverted() || !count)
        return false;
    return values_few_get(address, count * number_bytes(type), few) ||
           known_few(type, address, count, few);
}

void few_note(enum number_type type, uint64_t address, uint64_t count,
              uint64_t few)
{
    if (!values_are_diverted() && values_window(address))
        values_few_set(address, count * number_bytes(type),
                       few < count ? few : count);
}

bool few_may_be(const struct compute *c, const struct kernel_launch *launch,
                uint64_t count)
{
    const uint64_t *data = launch->arguments[2];
    uint64_t few;

    for (int i = 1; i < c->count; i++)
        if (values_few_get(data[i], count * number_bytes(c->types[i]), &few))
            return true;
    return false;
}

/* The same of input I of L, as often as its elements are used. */
static bool few_of_input(const struct loop *l, int i, uint64_t *few)
{
    enum number_type type = l->types[i + 1];
    uint64_t own = loop_last_offset(l, i + 1) / number_bytes(type) + 1;

    if (own > l->count || !few_get(type, l->data[i + 1], own, few))
        return false;
    *few *= l->count / own;
    return true;
}

/* Both are needed, or one of them, to be not zero. */
static bool few_of_two(const struct loop *l, uint64_t *few)
{
    operation_function *op = l->compute->operation;
    uint64_t a, b;
    bool has_a = few_of_input(l, 0, &a), has_b = few_of_input(l, 1, &b);

    if (l->compute->form == FORM_BINARY &&
        (op == operation_multiply || op == operation_and ||
         op == operation_logical_and)) {
        *few = has_a && (!has_b || a < b) ? a : b;
        return has_a || has_b;
    }
    *few = a + b;
    return has_a && has_b;
}

/* Those of the second tensor, and as many of the first as the mask takes. */
static bool few_of_where(const struct loop *l, uint64_t *few)
{
    uint64_t taken, first, second;

    if (!few_of_input(l, 2, &second) || !few_of_input(l, 0, &taken))
        return false;
    if (!few_of_input(l, 1, &first))
        first = l->count;
    *few = second +
           (uint64_t)((double)first * (double)taken / (double)l->count);
    return true;
}

bool few_of_loop(const struct loop *l, uint64_t *few)
{
    const long double zeros[INPUTS] = {0};

    if (loop_last_offset(l, 0) / number_bytes(l->types[0]) + 1 != l->count)
        return false;
    if (l->compute->form == FORM_WHERE)
        return few_of_where(l, few);
    if (loop_evaluate(l, zeros) != 0)
        return false;
    if (l->inputs == 1 || (l->compute->form == FORM_MASK && !l->s[0]))
        return few_of_input(l, 0, few);
    return l->inputs == 2 && few_of_two(l, few);
}

bool few_is_noted(const struct loop *l)
{
    for (int i = 1; i <= l->inputs; i++)
        if (values_few_at(l->data[i])->address == l->data[i])
            return true;
    return false;
}

static _Thread_local double share = -1;

void few_share_begin(enum number_type type, uint64_t address, uint64_t count)
{
    uint64_t few;

    share = -1;
    if (!values_are_diverted() &&
        values_few_get(address, count * number_bytes(type), &few))
        share = ((double)few + 0.01) / (double)count;
}

void few_share_end(void)
{
    share = -1;
}

double few_share(void)
{
    return share;
}
