/* SPDX-License-Identifier: Apache-2.0
 * Lists of ranks as ranges: FIRST, FIRST + STRIDE, ..., COUNT of them. The
 * groups of a cluster are such: 16,384 ranks are one range, the ranks of a
 * pipeline stage another. For the observed program too: no heap. */
#ifndef MEMSIM_COMMON_RANGE_H
#define MEMSIM_COMMON_RANGE_H

#include <stdbool.h>
#include <stdint.h>

struct range {
    uint32_t first, count;
    int32_t stride; /* 0 while COUNT is 1 */
};

/* Puts VALUE at the end of RANGE, which may be empty (COUNT 0). False, and the
 * range as it was, where VALUE does not continue it. */
static inline bool range_extend(struct range *range, uint32_t value)
{
    uint32_t stride = (uint32_t)range->stride;

    if (!range->count) {
        *range = (struct range){value, 1, 0};
        return true;
    }
    if (range->count == 1)
        stride = value - range->first;
    else if (value != range->first + range->count * stride)
        return false;
    range->stride = (int32_t)stride;
    range->count++;
    return true;
}

static inline uint32_t range_at(const struct range *range, uint32_t i)
{
    return range->first + i * (uint32_t)range->stride;
}

#endif
