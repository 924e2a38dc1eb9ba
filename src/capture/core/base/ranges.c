/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/base/ranges.h"

#include "capture/core/base/pages.h"

/* Fibonacci hashing, as neighbours are multiples of 64. */
static uint64_t place_of(const struct ranges *r, uint64_t address)
{
    return (address * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (r->places - 1);
}

static uint64_t place_next(const struct ranges *r, uint64_t place)
{
    return (place + 1) & (r->places - 1);
}

/* Where ADDRESS is, or the free place where it would be. */
static uint64_t place_find(const struct ranges *r, uint64_t address)
{
    uint64_t place = place_of(r, address);

    while (r->all[place].bytes && r->all[place].address != address)
        place = place_next(r, place);
    return place;
}

bool ranges_add(struct ranges *r, const struct range *range)
{
    if (!r->all)
        r->all = memsim_pages_reserve(0, r->places * sizeof *r->all);
    if (!r->all || r->count >= r->places / 2)
        return false;
    struct range *place = &r->all[place_find(r, range->address)];
    if (place->bytes)
        return false;
    *place = *range;
    r->count++;
    return true;
}

/* Those that follow move up as far as their own first place allows, so that
 * no search ends before them. */
static void gap_close(struct ranges *r, uint64_t gap)
{
    for (uint64_t at = place_next(r, gap); r->all[at].bytes;
         at = place_next(r, at)) {
        uint64_t first = place_of(r, r->all[at].address);

        if (((at - first) & (r->places - 1)) < ((at - gap) & (r->places - 1)))
            continue;
        r->all[gap] = r->all[at];
        gap = at;
    }
    r->all[gap].bytes = 0;
}

bool ranges_find(const struct ranges *r, uint64_t address, struct range *found)
{
    if (!r->count)
        return false;
    *found = r->all[place_find(r, address)];
    return found->bytes != 0;
}

bool ranges_remove(struct ranges *r, uint64_t address, struct range *old)
{
    if (!ranges_find(r, address, old))
        return false;
    gap_close(r, place_find(r, address));
    r->count--;
    return true;
}

void ranges_clear(struct ranges *r)
{
    if (r->all)
        memsim_pages_clear(r->all, r->places * sizeof *r->all);
    r->count = 0;
}
