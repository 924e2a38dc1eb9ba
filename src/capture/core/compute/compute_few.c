/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/compute/compute_few.h"

#include <string.h>

#include "capture/core/compute/compute_loop.h"
#include "capture/core/compute/compute_operation.h"
#include "capture/core/memory/values.h"

#define COUNTED_BYTES VALUES_WRITE_BYTES /* of known elements: looked at */

/* Known elements are counted. */
static bool known_few(enum number_type type, uint64_t address, uint64_t count,
                      struct few *few)
{
    const struct values_window *w = values_window(address);
    uint32_t unit = number_bytes(type);
    uint64_t bytes = count * unit;
    static const char zero[16];

    if (!w || bytes > COUNTED_BYTES || !values_known(address, bytes))
        return false;
    const char *at = values_at(w, address - w->base, bytes);
    *few = (struct few){0, true};
    for (uint64_t i = 0; i < count; i++) {
        bool is_zero = !memcmp(at + i * unit, zero, unit);

        few->count += !is_zero;
        few->ones &= is_zero || number_load(type, at + i * unit) == 1;
    }
    return true;
}

bool few_get(enum number_type type, uint64_t address, uint64_t count,
             struct few *few)
{
    if (values_are_diverted() || !count)
        return false;
    return values_few_get(address, count * number_bytes(type), few) ||
           known_few(type, address, count, few);
}

void few_note(enum number_type type, uint64_t address, uint64_t count,
              struct few few)
{
    if (values_are_diverted() || !values_window(address))
        return;
    if (few.count > count)
        few = (struct few){count, false};
    few.ones |= type == NUMBER_BOOL;
    values_few_set(address, count * number_bytes(type), few);
}

void few_scattered(const struct values_few *before, uint64_t count, bool ones)
{
    if (!values_are_diverted())
        values_few_set(
            before->address, before->bytes,
            (struct few){before->few.count + count, before->few.ones && ones});
}

bool few_may_be(const struct compute *c, const struct kernel_launch *launch,
                uint64_t count)
{
    const uint64_t *data = launch->arguments[2];
    struct few few;

    for (int i = 1; i < c->count; i++)
        if (values_few_get(data[i], count * number_bytes(c->types[i]), &few))
            return true;
    return false;
}

/* The same of input I of L, as often as its elements are used. */
static bool few_of_input(const struct loop *l, int i, struct few *few)
{
    enum number_type type = l->types[i + 1];
    uint64_t own = loop_last_offset(l, i + 1) / number_bytes(type) + 1;

    if (own > l->count || !few_get(type, l->data[i + 1], own, few))
        return false;
    few->count *= l->count / own;
    return true;
}

/* Of one input, and a function that is zero for zero. */
static bool few_of_one(const struct loop *l, struct few *few)
{
    const long double ones[INPUTS] = {1};

    if (!few_of_input(l, 0, few))
        return false;
    long double one = loop_evaluate(l, ones);
    if (few->ones && one == 0)
        few->count = 0;
    few->ones &= one == 0 || one == 1;
    return true;
}

/* Whether a result that is not zero needs both numbers not to be. */
static bool is_product(operation_function *op)
{
    return op == operation_multiply || op == operation_multiply_integers ||
           op == operation_and || op == operation_logical_and;
}

/* Both are needed, or one of them, to be not zero. */
static bool few_of_two(const struct loop *l, struct few *few)
{
    operation_function *op = l->compute->operation;
    struct few a, b;
    bool has_a = few_of_input(l, 0, &a), has_b = few_of_input(l, 1, &b);

    if (l->compute->form == FORM_BINARY && is_product(op)) {
        *few = has_a && (!has_b || a.count < b.count) ? a : b;
        few->ones = (has_a ? a.ones : l->types[1] == NUMBER_BOOL) &&
                    (has_b ? b.ones : l->types[2] == NUMBER_BOOL);
        return has_a || has_b;
    }
    *few = (struct few){a.count + b.count, false};
    return has_a && has_b;
}

/* Those of the second tensor, and as many of the first as the mask takes. */
static bool few_of_where(const struct loop *l, struct few *few)
{
    struct few taken, first, second;

    if (!few_of_input(l, 2, &second) || !few_of_input(l, 0, &taken))
        return false;
    if (!few_of_input(l, 1, &first))
        first = (struct few){l->count, false};
    few->count =
        second.count + (uint64_t)((double)first.count * (double)taken.count /
                                  (double)l->count);
    few->ones = second.ones && (first.ones || !taken.count);
    return true;
}

bool few_of_loop(const struct loop *l, struct few *few)
{
    const long double zeros[INPUTS] = {0};

    if (loop_last_offset(l, 0) / number_bytes(l->types[0]) + 1 != l->count)
        return false;
    if (l->compute->form == FORM_WHERE)
        return few_of_where(l, few);
    if (loop_evaluate(l, zeros) != 0)
        return false;
    if (l->inputs == 1)
        return few_of_one(l, few);
    if (l->compute->form == FORM_MASK && !l->s[0])
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
    struct few few;

    share = -1;
    if (!values_are_diverted() &&
        values_few_get(address, count * number_bytes(type), &few))
        share = ((double)few.count + 0.01) / (double)count;
}

void few_share_end(void)
{
    share = -1;
}

double few_share(void)
{
    return share;
}
