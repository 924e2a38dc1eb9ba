/* SPDX-License-Identifier: Apache-2.0 */
#include "common/trace/rank_axis.h"

bool rank_axis_alike(const struct rank_axis *axes, uint32_t count, uint32_t a,
                     uint32_t b)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct rank_axis *x = &axes[i];
        if (a / x->stride % x->size != b / x->stride % x->size)
            return false;
    }
    return true;
}

uint32_t rank_axis_stand(const struct rank_axis *axes, uint32_t count,
                         const uint32_t *ranks, uint32_t rank_count,
                         uint32_t rank)
{
    uint32_t below = rank_count ? ranks[0] : 0;
    uint32_t lower = UINT32_MAX, first = UINT32_MAX;

    for (uint32_t i = 0; i < rank_count; i++) {
        uint32_t r = ranks[i];
        if (r <= rank)
            below = r;
        if (!rank_axis_alike(axes, count, r, rank))
            continue;
        if (r <= rank)
            lower = r;
        if (first == UINT32_MAX)
            first = r;
    }
    return lower != UINT32_MAX ? lower : first != UINT32_MAX ? first : below;
}
