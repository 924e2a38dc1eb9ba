/* SPDX-License-Identifier: Apache-2.0
 * What the tables of operators share: rows by name, numbers by place. */
#include <string.h>

#include "kernels/operator_internal.h"

uint64_t operator_number(const struct operator_call *call, uint8_t at,
                         unsigned i, uint64_t other)
{
    const struct operator_argument *a = &call->arguments[at];

    if (at == NONE || at >= call->count || !a->number_count)
        return other;
    i = i < a->number_count ? i : a->number_count - 1u;
    return a->numbers[i] >= 0 ? (uint64_t)a->numbers[i] : other;
}

const void *operator_row(const void *rows, size_t count, size_t row_bytes,
                         const char *name)
{
    for (size_t i = 0; i < count; i++) {
        const void *row = (const char *)rows + i * row_bytes;
        if (!strcmp(*(const char *const *)row, name))
            return row;
    }
    return NULL;
}
