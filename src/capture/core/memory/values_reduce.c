/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/memory/values_reduce.h"

#include <string.h>

#include "capture/core/base/number.h"
#include "capture/core/memory/values.h"

double memsim_reduce_number(int type, const void *from)
{
    return (double)number_load((enum number_type)type, from);
}

static bool is_known(const unsigned char *marks, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++)
        if (!values_is_known(marks[i]))
            return false;
    return true;
}

static void marks_clear(const struct reduction *r, unsigned char *marks)
{
    memset(marks,
           number_is_float((enum number_type)r->type) ? 0 : VALUES_COUNTS,
           r->bytes);
}

static long double power_of(long double base, uint64_t exponent)
{
    long double result = 1;

    for (; exponent; exponent >>= 1, base *= base)
        if (exponent & 1)
            result *= base;
    return result;
}

/* What VALUE comes to that WEIGHT ranks hold. */
static long double weight_value(const struct reduction *r, long double value,
                                uint64_t weight)
{
    switch (r->kind) {
    case REDUCE_PROD:
        return power_of(value, weight);
    case REDUCE_SUM:
        return value * (long double)r->scale * (long double)weight;
    default:
        return value;
    }
}

static long double reduce_both(enum reduce_kind kind, long double a,
                               long double b)
{
    switch (kind) {
    case REDUCE_PROD:
        return a * b;
    case REDUCE_MAX:
        return a > b ? a : b;
    case REDUCE_MIN:
        return a < b ? a : b;
    default:
        return a + b;
    }
}

void memsim_reduce_first(const struct reduction *r,
                         const struct reduce_side *into)
{
    enum number_type type = (enum number_type)r->type;

    for (uint64_t i = 0; i < r->count; i++) {
        char *at = (char *)into->data + i * r->bytes;
        unsigned char *marks = into->marks + i * r->bytes;

        if (type == NUMBER_NONE) {
            memset(marks, 0, r->bytes);
            continue;
        }
        if (!is_known(marks, r->bytes))
            marks_clear(r, marks);
        number_store(type, at,
                     weight_value(r, number_load(type, at), into->weight));
    }
}

void memsim_reduce_next(const struct reduction *r,
                        const struct reduce_side *into,
                        const struct reduce_side *from)
{
    enum number_type type = (enum number_type)r->type;

    for (uint64_t i = 0; i < r->count && type != NUMBER_NONE; i++) {
        char *at = (char *)into->data + i * r->bytes;
        long double other =
            number_load(type, (const char *)from->data + i * r->bytes);

        if (!is_known(from->marks + i * r->bytes, r->bytes))
            marks_clear(r, into->marks + i * r->bytes);
        number_store(type, at,
                     reduce_both(r->kind, number_load(type, at),
                                 weight_value(r, other, from->weight)));
    }
}

void memsim_reduce_divide(const struct reduction *r,
                          const struct reduce_side *into, uint64_t by)
{
    enum number_type type = (enum number_type)r->type;

    for (uint64_t i = 0; i < r->count && type != NUMBER_NONE; i++) {
        char *at = (char *)into->data + i * r->bytes;

        number_store(type, at, number_load(type, at) / (long double)by);
    }
}
