/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/torch/process_group.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "capture/core/base/pages.h"

const int memsim_group_next = GROUP_NEXT;
const int memsim_group_next_init = GROUP_NEXT_INIT;

#define GROUPS 1024 /* different colors; a rank is in few */

static struct group {
    int color;
    uint32_t count;
    const uint32_t *ranks;
} groups[GROUPS];

static _Atomic uint32_t group_count;

static struct group *group_of(int color)
{
    uint32_t count = atomic_load_explicit(&group_count, memory_order_acquire);

    for (uint32_t i = 0; i < count; i++)
        if (groups[i].color == color)
            return &groups[i];
    return NULL;
}

void memsim_group_tell(int color, const uint32_t *ranks, uint32_t count)
{
    struct group *g = group_of(color);
    uint32_t used = atomic_load_explicit(&group_count, memory_order_relaxed);

    if (g && g->count == count &&
        !memcmp(g->ranks, ranks, count * sizeof *ranks))
        return;
    if (!g && used == GROUPS)
        return;
    uint32_t *own = count ? memsim_pages_keep(count * sizeof *own) : NULL;
    if (own)
        memcpy(own, ranks, count * sizeof *own);
    if (!g)
        g = &groups[used];
    *g = (struct group){color, own ? count : 0, own};
    if (g == &groups[used])
        atomic_store_explicit(&group_count, used + 1, memory_order_release);
}

static bool group_fits(const struct group *g, uint32_t rank, uint32_t ranks,
                       int key)
{
    if (!g || key < 0 || (uint32_t)key >= g->count || g->ranks[key] != rank)
        return false;
    for (uint32_t i = 0; i < g->count; i++)
        if (g->ranks[i] >= ranks)
            return false;
    return true;
}

const uint32_t *memsim_group_find(int color, uint32_t rank, uint32_t ranks,
                                  int key, uint32_t *count)
{
    const struct group *g = group_of(GROUP_NEXT);

    if (!group_fits(g, rank, ranks, key))
        g = group_of(color);
    if (!group_fits(g, rank, ranks, key))
        return NULL;
    *count = g->count;
    return g->ranks;
}

const uint32_t *memsim_group_named(int mark, uint32_t ranks)
{
    const struct group *g = mark < GROUP_NEXT ? group_of(mark) : NULL;

    return g && g->count == ranks ? g->ranks : NULL;
}
