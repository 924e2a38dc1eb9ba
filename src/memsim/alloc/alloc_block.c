/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/alloc/alloc_internal.h"

#include <stdlib.h>

#include "common/base/xmalloc.h"
#include "memsim/alloc/alloc_shelf.h"

struct alloc_slab {
    struct alloc_slab *next;
    struct alloc_block blocks[480];
};

static void slab_add(struct alloc *a)
{
    struct alloc_slab *slab = xmalloc(sizeof *slab);

    slab->next = a->slabs;
    a->slabs = slab;
    for (size_t i = sizeof slab->blocks / sizeof *slab->blocks; i-- > 0;) {
        slab->blocks[i].next = a->spare_blocks;
        a->spare_blocks = &slab->blocks[i];
    }
}

void alloc_block_free_slabs(struct alloc *a)
{
    while (a->slabs) {
        struct alloc_slab *slab = a->slabs;

        a->slabs = slab->next;
        free(slab);
    }
}

struct alloc_block *alloc_block_new(struct alloc *a, struct alloc_shelf *shelf,
                                    struct alloc_segment *segment,
                                    uint64_t address, uint64_t bytes)
{
    if (!a->spare_blocks)
        slab_add(a);
    struct alloc_block *b = a->spare_blocks;
    a->spare_blocks = b->next;
    /* Of a linear congruential generator only the high bits decide. */
    a->seed = a->seed * 1664525 + 1013904223;
    b->bytes = bytes;
    b->address = address;
    b->age = a->rules->age == ALLOC_AGE_BLOCK ? ++a->made : segment->age;
    b->shelf = shelf;
    b->segment = segment;
    b->prev = b->next = NULL;
    b->uses = NULL;
    b->requested_bytes = 0;
    b->priority = a->seed;
    b->event_count = 0;
    b->allocated = false;
    b->mapped = true;
    return b;
}

void alloc_block_delete(struct alloc *a, struct alloc_block *b)
{
    b->next = a->spare_blocks;
    a->spare_blocks = b;
}

void alloc_block_splice(struct alloc_block *new_block,
                        struct alloc_block *before, struct alloc_block *after)
{
    new_block->prev = before;
    new_block->next = after;
    if (before)
        before->next = new_block;
    else
        new_block->segment->first = new_block;
    if (after)
        after->prev = new_block;
}

/* [ ------- b ------- ] => [ result ][ --- b --- ] */
struct alloc_block *alloc_block_cut(struct alloc *a, struct alloc_block *b,
                                    uint64_t bytes)
{
    struct alloc_block *front =
        alloc_block_new(a, b->shelf, b->segment, b->address, bytes);

    assert(bytes < b->bytes);
    alloc_block_splice(front, b->prev, b);
    b->address += bytes;
    b->bytes -= bytes;
    return front;
}

void alloc_block_cache(struct alloc_block *b)
{
    b->gc_base = b->shelf->pool->searches;
    shelf_insert(b);
}

/* [ src ][ dst ] or [ dst ][ src ] => [ ------ dst ------ ] */
uint64_t alloc_block_absorb(struct alloc *a, struct alloc_block *dst,
                            struct alloc_block *src)
{
    if (!block_is_idle(src) || src->mapped != dst->mapped)
        return 0;
    if (src->mapped)
        shelf_remove(src);
    else
        shelf_remove_hole(src);
    if (dst->prev == src) {
        dst->address = src->address;
        dst->prev = src->prev;
        if (dst->prev)
            dst->prev->next = dst;
        else
            dst->segment->first = dst;
    } else {
        dst->next = src->next;
        if (dst->next)
            dst->next->prev = dst;
    }
    uint64_t gained = src->bytes;
    dst->bytes += gained;
    alloc_block_delete(a, src);
    return gained;
}

static void count_retired(struct alloc *a, const struct alloc_block *b,
                          int merged, uint64_t merged_bytes)
{
    struct alloc_stats *s = &a->stats;
    const struct alloc_pool *pool = b->shelf->pool;
    int64_t blocks = block_is_split(b) - merged;
    int64_t bytes =
        (block_is_split(b) ? (int64_t)b->bytes : 0) - (int64_t)merged_bytes;

    /* Whole pages of an expandable segment can always be given back, so
     * inactive_split leaves it out (free_block). */
    if (block_is_expandable(b))
        return;
    if (blocks > 0)
        alloc_stats_up(s->inactive_split, pool, (uint64_t)blocks);
    else if (blocks < 0)
        alloc_stats_down(s->inactive_split, pool, (uint64_t)-blocks);
    if (bytes > 0)
        alloc_stats_up(s->inactive_split_bytes, pool, (uint64_t)bytes);
    else if (bytes < 0)
        alloc_stats_down(s->inactive_split_bytes, pool, (uint64_t)-bytes);
}

void alloc_block_retire(struct alloc *a, struct alloc_block *b)
{
    struct alloc_stats *s = &a->stats;
    const struct alloc_pool *pool = b->shelf->pool;
    uint64_t bytes = b->bytes, gained[2];

    assert(block_is_idle(b));
    alloc_tell(a, ALLOC_FREE_COMPLETED, b->address, b->requested_bytes,
               b->shelf);
    gained[0] = alloc_block_absorb(a, b, b->prev);
    gained[1] = alloc_block_absorb(a, b, b->next);
    alloc_block_cache(b);
    count_retired(a, b, (gained[0] > 0) + (gained[1] > 0),
                  gained[0] + gained[1]);
    alloc_stats_down(s->active, pool, 1);
    alloc_stats_down(s->active_bytes, pool, bytes);
    alloc_stats_down(s->requested_bytes, pool, b->requested_bytes);
    if (gained[0] + gained[1])
        alloc_tell(a, ALLOC_MERGE, b->address, b->bytes, b->shelf);
}
