/* SPDX-License-Identifier: Apache-2.0
 * Lists of ranks as ranges: FIRST, FIRST + STRIDE, ..., COUNT of them. The
 * groups of a cluster are such: 16,384 ranks are one range, the ranks of a
 * pipeline stage another. For the observed program too: no heap. */
#ifndef MEMSIM_COMMON_BASE_RANGE_H
#define MEMSIM_COMMON_BASE_RANGE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

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

/* Fills MEMBERS from RANGES ranges whose bytes lie at DATA, which need not be
 * aligned. Returns whether they are COUNT members. */
static inline bool range_expand(uint32_t *members, uint64_t count,
                                const char *data, uint64_t ranges)
{
    uint64_t at = 0;

    for (uint64_t i = 0; i < ranges; i++) {
        struct range range;

        memcpy(&range, data + i * sizeof range, sizeof range);
        if (range.count > count - at)
            return false;
        for (uint32_t k = 0; k < range.count; k++)
            members[at++] = range_at(&range, k);
    }
    return at == count;
}

#endif
