/* SPDX-License-Identifier: Apache-2.0
 * Looking at the allocator's state, and setting it up. */
#include "memsim/alloc/alloc_internal.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"
#include "memsim/alloc/alloc_shelf.h"

static int by_address(const void *x, const void *y)
{
    const struct alloc_segment *const *a = x, *const *b = y;

    return ((*a)->address > (*b)->address) - ((*a)->address < (*b)->address);
}

/* The segments in ascending order; the caller frees the array. */
static const struct alloc_segment **sorted_segments(const struct alloc *a,
                                                    size_t *count)
{
    const struct alloc_segment **all = NULL;
    size_t capacity = 0;

    *count = 0;
    for (const struct alloc_segment *s = a->segments; s; s = s->next) {
        xgrow(&all, *count, &capacity, sizeof *all);
        all[(*count)++] = s;
    }
    if (all)
        qsort(all, *count, sizeof *all, by_address);
    return all;
}

/* Bytes from B to the next hole or the segment's end. */
static uint64_t mapped_run(const struct alloc_block *b)
{
    uint64_t bytes = 0;

    for (; b && b->mapped; b = b->next)
        bytes += b->bytes;
    return bytes;
}

static void walk_segment(const struct alloc_segment *s,
                         void (*visit)(void *, const struct alloc_block_info *),
                         void *context)
{
    struct alloc_block_info info = {0};

    for (const struct alloc_block *b = s->first; b; b = b->next) {
        if (!b->mapped)
            continue;
        if (!b->prev || !b->prev->mapped) {
            info.segment = b->address;
            info.segment_bytes = mapped_run(b);
        }
        info.address = b->address;
        info.bytes = b->bytes;
        info.requested_bytes = b->requested_bytes;
        info.stream = b->shelf->stream;
        info.small = b->shelf->pool->small;
        info.expandable = s->chunk_bytes != 0;
        info.allocated = b->allocated;
        info.active = !block_is_idle(b);
        if (b->shelf->pool->owner)
            info.pool = b->shelf->pool->owner->id;
        visit(context, &info);
    }
}

void alloc_walk(const struct alloc *a,
                void (*visit)(void *context,
                              const struct alloc_block_info *block),
                void *context)
{
    size_t count;
    const struct alloc_segment **all = sorted_segments(a, &count);

    for (size_t i = 0; i < count; i++)
        walk_segment(all[i], visit, context);
    free(all);
}

/* Adds B to the current values of S. */
static void count_block(const struct alloc *a, const struct alloc_block *b,
                        struct alloc_stats *s)
{
    if (!b->mapped)
        return;
    if (!block_is_expandable(b) && !b->prev) {
        alloc_stats_up(s->segment, b->shelf->pool, 1);
        if (b->segment->bytes >= a->conf.max_split_bytes)
            alloc_stat_up(&s->oversize_segments, 1);
    }
    alloc_stats_up(s->reserved_bytes, b->shelf->pool, b->bytes);
    if (b->allocated) {
        alloc_stats_up(s->allocation, b->shelf->pool, 1);
        alloc_stats_up(s->allocated_bytes, b->shelf->pool, b->bytes);
        if (b->bytes >= a->conf.max_split_bytes)
            alloc_stat_up(&s->oversize_allocations, 1);
    }
    if (!block_is_idle(b)) {
        alloc_stats_up(s->active, b->shelf->pool, 1);
        alloc_stats_up(s->active_bytes, b->shelf->pool, b->bytes);
        alloc_stats_up(s->requested_bytes, b->shelf->pool, b->requested_bytes);
    } else if (block_is_split(b) && !block_is_expandable(b)) {
        alloc_stats_up(s->inactive_split, b->shelf->pool, 1);
        alloc_stats_up(s->inactive_split_bytes, b->shelf->pool, b->bytes);
    }
}

static void count_all(const struct alloc *a, struct alloc_stats *s)
{
    memset(s, 0, sizeof *s);
    for (const struct alloc_segment *g = a->segments; g; g = g->next)
        for (const struct alloc_block *b = g->first; b; b = b->next)
            count_block(a, b, s);
}

static bool is_held(const struct alloc *a, uint64_t address, uint64_t bytes)
{
    for (const struct alloc_segment *s = a->segments; s; s = s->next) {
        uint64_t held = s->chunk_bytes ? mapped_run(s->first) : s->bytes;

        if (address < s->address + held && s->address < address + bytes)
            return true;
    }
    return false;
}

static struct alloc_pool *adopting_pool(struct alloc *a, bool small,
                                        struct alloc_pool_id id)
{
    struct alloc_private *p = alloc_pool_obtain(a, id);

    if (p) {
        p->segment_count++;
        return small ? &p->small : &p->large;
    }
    return small ? &a->small : &a->large;
}

/* Behind the mapped part of an adopted expandable segment. */
static void adopt_hole(struct alloc *a, struct alloc_block *b, uint64_t bytes)
{
    struct alloc_block *hole =
        alloc_block_new(a, b->shelf, b->segment, b->address + b->bytes, bytes);

    hole->mapped = false;
    alloc_block_splice(hole, b, NULL);
    shelf_insert_hole(hole);
}

/* The bytes to reserve for an adopted segment; 0: it cannot be one. */
static uint64_t adopted_range(const struct alloc *a,
                              const struct alloc_block_info *g,
                              uint64_t chunk_bytes)
{
    uint64_t whole = a->total_bytes + a->total_bytes / 8;

    if (!g->bytes || g->address + g->bytes < g->address)
        return 0;
    if (!g->expandable)
        return g->bytes;
    if (g->bytes % chunk_bytes)
        return 0;
    whole = (whole + chunk_bytes - 1) / chunk_bytes * chunk_bytes;
    return whole > g->bytes ? whole : g->bytes;
}

int alloc_adopt_segment(struct alloc *a, const struct alloc_block_info *g)
{
    uint64_t chunk_bytes =
        g->small ? SMALL_SEGMENT : a->conf.large_segment_bytes;
    uint64_t range_bytes = adopted_range(a, g, chunk_bytes);

    if (!range_bytes || is_held(a, g->address, g->bytes))
        return -1;
    struct alloc_segment *s = alloc_segment_new(
        a, g->address, range_bytes, g->expandable ? chunk_bytes : 0);
    s->first = alloc_block_new(
        a, alloc_shelf_obtain(adopting_pool(a, g->small, g->pool), g->stream),
        s, g->address, g->bytes);
    alloc_block_cache(s->first);
    if (range_bytes > g->bytes)
        adopt_hole(a, s->first, range_bytes - g->bytes);
    a->adopted = s;
    a->reserved_bytes += g->bytes;
    return 0;
}

/* The idle block of the adopted segment that BYTES at ADDRESS lie in. */
static struct alloc_block *adopted_find(const struct alloc *a, uint64_t address,
                                        uint64_t bytes)
{
    struct alloc_block *b = a->adopted ? a->adopted->first : NULL;

    while (b && address >= b->address + b->bytes)
        b = b->next;
    if (!block_is_idle(b) || !b->mapped || address < b->address || !bytes ||
        bytes > b->bytes - (address - b->address))
        return NULL;
    return b;
}

struct alloc_block *alloc_adopt_block(struct alloc *a, uint64_t address,
                                      uint64_t bytes, uint64_t requested_bytes)
{
    struct alloc_block *b = adopted_find(a, address, bytes);

    if (!b)
        return NULL;
    shelf_remove(b);
    if (address > b->address)
        alloc_block_cache(alloc_block_cut(a, b, address - b->address));
    if (bytes < b->bytes) {
        struct alloc_block *front = alloc_block_cut(a, b, bytes);

        alloc_block_cache(b);
        b = front;
    }
    b->allocated = true;
    b->requested_bytes = requested_bytes;
    return b;
}

void alloc_adopt_end(struct alloc *a)
{
    a->adopted = NULL;
    count_all(a, &a->stats);
}

/* Is B well linked in its treap? */
static bool node_check(const struct alloc_block *b)
{
    return (!b->parent || b->parent->priority >= b->priority) &&
           (!b->left || b->left->parent == b) &&
           (!b->right || b->right->parent == b) && block_is_idle(b);
}

static bool holes_check(const struct alloc_shelf *s, size_t *count)
{
    const struct alloc_block *last = NULL;

    for (const struct alloc_block *b = tree_first(s->holes); b;
         last = b, b = tree_next(b), (*count)++)
        if ((last && !hole_before(last, b)) || !node_check(b) || b->mapped ||
            b->shelf != s)
            return false;
    return true;
}

/* Are POOL's shelves in order, both ways? Counts their blocks. */
static bool pool_check(const struct alloc_pool *pool, size_t *count)
{
    const struct alloc_block *last = NULL;

    for (const struct alloc_block *b = alloc_pool_first(pool); b;
         last = b, b = alloc_pool_next(b), (*count)++) {
        bool same = last && last->shelf == b->shelf;

        if ((same && !block_before(last, b)) || !node_check(b) || !b->mapped ||
            b->shelf->pool != pool || shelf_prev(b) != (same ? last : NULL))
            return false;
    }
    for (size_t i = 0; i < pool->shelf_count; i++)
        if (!holes_check(pool->shelves[i], count))
            return false;
    return true;
}

/* Do S's blocks tile it, merged where they can be? Counts the idle ones. */
static bool segment_check(const struct alloc_segment *s, size_t *idle)
{
    uint64_t at = s->address;
    const struct alloc_block *last = NULL;

    for (const struct alloc_block *b = s->first; b; last = b, b = b->next) {
        if (b->prev != last || b->address != at || !b->bytes || b->segment != s)
            return false;
        if (last && block_is_idle(last) && block_is_idle(b) &&
            last->mapped == b->mapped)
            return false;
        if (!b->mapped &&
            (!s->chunk_bytes || !block_is_idle(b) || b->bytes % s->chunk_bytes))
            return false;
        at += b->bytes;
        *idle += block_is_idle(b);
    }
    return at == s->address + s->bytes;
}

static bool stats_agree(const struct alloc_stats *x,
                        const struct alloc_stats *y)
{
    for (int t = 0; t < ALLOC_STAT_TYPES; t++)
        if (x->allocation[t].current != y->allocation[t].current ||
            x->segment[t].current != y->segment[t].current ||
            x->active[t].current != y->active[t].current ||
            x->inactive_split[t].current != y->inactive_split[t].current ||
            x->allocated_bytes[t].current != y->allocated_bytes[t].current ||
            x->reserved_bytes[t].current != y->reserved_bytes[t].current ||
            x->active_bytes[t].current != y->active_bytes[t].current ||
            x->inactive_split_bytes[t].current !=
                y->inactive_split_bytes[t].current ||
            x->requested_bytes[t].current != y->requested_bytes[t].current)
            return false;
    return true;
}

bool alloc_check(const struct alloc *a)
{
    size_t in_trees = 0, idle = 0;
    struct alloc_stats counted;

    if (!pool_check(&a->small, &in_trees) || !pool_check(&a->large, &in_trees))
        return false;
    for (struct alloc_private *p = a->privates; p; p = p->next)
        if (!pool_check(&p->small, &in_trees) ||
            !pool_check(&p->large, &in_trees))
            return false;
    for (const struct alloc_segment *s = a->segments; s; s = s->next)
        if (!segment_check(s, &idle))
            return false;
    count_all(a, &counted);
    return in_trees == idle && stats_agree(&a->stats, &counted) &&
           (uint64_t)counted.reserved_bytes[ALLOC_ALL].current ==
               a->reserved_bytes;
}
