/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/alloc/alloc_internal.h"

#include <stdlib.h>

#include "common/xmalloc.h"
#include "memsim/alloc/alloc_tree.h"

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

struct alloc_block *alloc_block_new(struct alloc *a, struct alloc_pool *pool,
                                    struct alloc_segment *segment,
                                    uint64_t stream, uint64_t address,
                                    uint64_t bytes)
{
    if (!a->spare_blocks)
        slab_add(a);
    struct alloc_block *b = a->spare_blocks;
    a->spare_blocks = b->next;
    a->seed ^= a->seed << 13; /* xorshift32 balances the treaps */
    a->seed ^= a->seed >> 17;
    a->seed ^= a->seed << 5;
    *b = (struct alloc_block){
        .stream = stream,
        .bytes = bytes,
        .address = address,
        .pool = pool,
        .segment = segment,
        .priority = a->seed,
        .mapped = true,
    };
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
        alloc_block_new(a, b->pool, b->segment, b->stream, b->address, bytes);

    assert(bytes < b->bytes);
    alloc_block_splice(front, b->prev, b);
    b->address += bytes;
    b->bytes -= bytes;
    return front;
}

void alloc_block_cache(struct alloc_block *b)
{
    b->gc_base = b->pool->searches;
    tree_insert(&b->pool->free, b);
}

/* [ src ][ dst ] or [ dst ][ src ] => [ ------ dst ------ ] */
uint64_t alloc_block_absorb(struct alloc *a, struct alloc_block *dst,
                            struct alloc_block *src)
{
    if (!block_is_idle(src) || src->mapped != dst->mapped)
        return 0;
    tree_remove(src->mapped ? &src->pool->free : &src->pool->holes, src);
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
    int64_t blocks = block_is_split(b) - merged;
    int64_t bytes =
        (block_is_split(b) ? (int64_t)b->bytes : 0) - (int64_t)merged_bytes;

    /* Whole pages of an expandable segment can always be given back, so
     * inactive_split leaves it out (free_block). */
    if (block_is_expandable(b))
        return;
    if (blocks > 0)
        alloc_stats_up(s->inactive_split, b->pool, (uint64_t)blocks);
    else if (blocks < 0)
        alloc_stats_down(s->inactive_split, b->pool, (uint64_t)-blocks);
    if (bytes > 0)
        alloc_stats_up(s->inactive_split_bytes, b->pool, (uint64_t)bytes);
    else if (bytes < 0)
        alloc_stats_down(s->inactive_split_bytes, b->pool, (uint64_t)-bytes);
}

void alloc_block_retire(struct alloc *a, struct alloc_block *b)
{
    struct alloc_stats *s = &a->stats;
    uint64_t bytes = b->bytes, gained[2];

    assert(block_is_idle(b));
    alloc_tell(a, ALLOC_FREE_COMPLETED, b->address, b->requested_bytes,
               b->stream, b->pool);
    gained[0] = alloc_block_absorb(a, b, b->prev);
    gained[1] = alloc_block_absorb(a, b, b->next);
    alloc_block_cache(b);
    count_retired(a, b, (gained[0] > 0) + (gained[1] > 0),
                  gained[0] + gained[1]);
    alloc_stats_down(s->active, b->pool, 1);
    alloc_stats_down(s->active_bytes, b->pool, bytes);
    alloc_stats_down(s->requested_bytes, b->pool, b->requested_bytes);
    if (gained[0] + gained[1])
        alloc_tell(a, ALLOC_MERGE, b->address, b->bytes, b->stream, b->pool);
}
