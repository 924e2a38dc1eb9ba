/* SPDX-License-Identifier: Apache-2.0
 * What the functor of an elementwise kernel holds, and what it makes of its
 * inputs. */
#include <string.h>

#include "capture/core/compute/compute.h"
#include "capture/core/compute/compute_loop.h"
#include "capture/core/compute/compute_operation.h"

static long double scalar_at(const struct compute *c, const char *functor,
                             uint32_t index)
{
    return number_load(c->scalar, functor + index * number_bytes(c->scalar));
}

static bool functor_has_variant(const struct compute *c)
{
    return c->operation == operation_equal ||
           c->operation == operation_compare || c->form == FORM_CLAMP;
}

/* An enum first where its operation has variants, then its numbers, aligned. */
void loop_functor_read(struct loop *l, const char *functor)
{
    const struct compute *c = l->compute;
    uint32_t bytes = number_bytes(c->scalar);
    bool has_variant = functor_has_variant(c);

    if (has_variant)
        memcpy(&l->variant, functor, sizeof l->variant);
    switch ((enum form)c->form) {
    case FORM_A:
    case FORM_B: /* after a functor: an int, or nothing, which takes a byte */
        functor += has_variant && bytes < 4 ? 4 : bytes;
        l->s[0] = scalar_at(c, functor, 0);
        break;
    case FORM_CLAMP:
        functor += bytes < 4 ? 4 : bytes;
        l->s[0] = scalar_at(c, functor, 0);
        l->s[1] = scalar_at(c, functor, 1);
        break;
    case FORM_ADD_SELF:
    case FORM_ADD_OTHER:
        l->s[1] = scalar_at(c, functor, 1);
        l->s[0] = scalar_at(c, functor, 0);
        break;
    case FORM_UNARY:
    case FORM_BINARY:
    case FORM_WHERE:
    case FORM_BETWEEN:
        break;
    default:
        l->s[0] = scalar_at(c, functor, 0);
    }
}

/* ClampLimits{Min, Max, MinMax} */
static long double clamp_value(const struct loop *l, long double x)
{
    if (l->variant != 1 && x < l->s[0])
        return l->s[0];
    if (l->variant == 0)
        return x;
    return operation_minimum(x, l->s[l->variant == 2], 0);
}

static long double sum_evaluate(const struct loop *l, const long double *x)
{
    enum number_type type = l->compute->types[0];

    switch ((enum form)l->compute->form) {
    case FORM_ADD:
        return number_sum(type, x[0], number_product(type, l->s[0], x[1]));
    case FORM_ADD_SELF:
        return number_sum(type, x[0], number_product(type, l->s[1], l->s[0]));
    case FORM_ADD_OTHER:
        return number_sum(type, l->s[0], number_product(type, l->s[1], x[0]));
    default:
        return number_sum(
            type, x[0],
            number_product(type, l->s[0],
                           l->compute->operation(x[1], x[2], 0)));
    }
}

long double loop_evaluate(const struct loop *l, const long double *x)
{
    operation_function *op = l->compute->operation;

    switch ((enum form)l->compute->form) {
    case FORM_UNARY:
        return op(x[0], 0, 0);
    case FORM_BINARY:
        return op(x[0], x[1], l->variant);
    case FORM_A:
    case FORM_HELD_A:
        return op(l->s[0], x[0], l->variant);
    case FORM_B:
    case FORM_HELD_B:
        return op(x[0], l->s[0], l->variant);
    case FORM_WHERE:
        return x[0] ? x[1] : x[2];
    case FORM_MASK:
        return x[1] ? l->s[0] : x[0];
    case FORM_CLAMP:
        return clamp_value(l, x[0]);
    case FORM_BETWEEN:
        return operation_minimum(operation_maximum(x[0], x[1], 0), x[2], 0);
    case FORM_FILL:
        return l->s[0];
    case FORM_TAKE:
        return x[0]; /* taken */
    default:
        return sum_evaluate(l, x);
    }
}

/* LoadWithCast: an integer wraps where the functor takes another type. */
long double loop_input(const struct loop *l, int i, long double x)
{
    enum number_type from = l->types[i + 1], to = l->compute->types[i + 1];
    unsigned char held[16];

    if (number_is_float(from) || number_is_float(to) || to == NUMBER_BOOL ||
        !number_bytes(to) || number_bytes(to) > number_bytes(from))
        return x;
    number_store(to, held, x);
    return number_load(to, held);
}

static uint32_t functor_alignment(const struct compute *c)
{
    uint32_t bytes = 1;

    if (c->form != FORM_UNARY && c->form != FORM_BINARY &&
        c->form != FORM_WHERE && c->form != FORM_BETWEEN)
        bytes = number_bytes(c->scalar);
    return functor_has_variant(c) && bytes < 4 ? 4 : bytes;
}

static uint32_t held_bytes(const struct compute *c)
{
    uint32_t unit = functor_alignment(c);

    switch ((enum form)c->form) {
    case FORM_A:
    case FORM_B:
    case FORM_ADD_SELF:
    case FORM_ADD_OTHER:
        return 2 * unit;
    case FORM_CLAMP:
        return 3 * unit;
    default:
        return unit;
    }
}

/* Lambdas without anything to hold have a pointer, or a byte. */
uint32_t loop_functor_bytes(const struct compute *c)
{
    uint32_t held = held_bytes(c);
    bool is_empty = c->form == FORM_UNARY || c->form == FORM_BINARY;

    if (c->layout == HOLDER_PLAIN)
        return held;
    return is_empty ? 8 : (held + 7) / 8 * 8 + 8;
}
