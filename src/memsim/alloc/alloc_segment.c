/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/alloc/alloc_internal.h"

#include <stdlib.h>

#include "common/base/xmalloc.h"
#include "memsim/alloc/alloc_shelf.h"

struct alloc_segment *alloc_segment_new(struct alloc *a, uint64_t address,
                                        uint64_t bytes, uint64_t chunk_bytes)
{
    struct alloc_segment *s = xcalloc(1, sizeof *s);

    s->address = address;
    s->bytes = bytes;
    s->chunk_bytes = chunk_bytes;
    if (a->rules->age == ALLOC_AGE_SEGMENT)
        s->age = ++a->made;
    s->next = a->segments;
    if (s->next)
        s->next->prev = s;
    a->segments = s;
    return s;
}

void alloc_segment_delete(struct alloc *a, struct alloc_segment *s)
{
    if (s->prev)
        s->prev->next = s->next;
    else
        a->segments = s->next;
    if (s->next)
        s->next->prev = s->prev;
    free(s);
}

static void count_obtained(struct alloc *a, const struct alloc_pool *pool,
                           uint64_t bytes)
{
    struct alloc_stats *s = &a->stats;

    if (pool->owner)
        pool->owner->segment_count++;
    a->reserved_bytes += bytes;
    alloc_stats_up(s->segment, pool, 1);
    alloc_stats_up(s->reserved_bytes, pool, bytes);
    if (bytes >= a->conf.max_split_bytes)
        alloc_stat_up(&s->oversize_segments, 1);
    s->num_device_alloc++;
}

bool alloc_segment_obtain(struct alloc *a, struct alloc_request *r)
{
    uint64_t bytes = r->segment_bytes;

    if (a->limited && a->reserved_bytes + bytes > a->allowed_bytes)
        return false;
    if (r->expandable)
        return alloc_expand_obtain(a, r);
    uint64_t address = a->driver.malloc(a->driver.context, bytes);
    if (!address)
        return false;
    struct alloc_segment *s = alloc_segment_new(a, address, bytes, 0);
    r->block = alloc_block_new(a, r->shelf, s, address, bytes);
    s->first = r->block;
    count_obtained(a, r->shelf->pool, bytes);
    alloc_tell(a, ALLOC_SEGMENT_ALLOC, address, bytes, r->shelf);
    return true;
}

/* release_block: B is cached and all of its segment. */
static void segment_release(struct alloc *a, struct alloc_block *b)
{
    struct alloc_stats *s = &a->stats;
    struct alloc_pool *pool = b->shelf->pool;

    assert(!block_is_expandable(b) && !block_is_split(b));
    s->num_device_free++;
    alloc_tell(a, ALLOC_SEGMENT_FREE, b->address, b->bytes, b->shelf);
    a->driver.free(a->driver.context, b->address, b->bytes);
    a->reserved_bytes -= b->bytes;
    if (pool->owner)
        pool->owner->segment_count--;
    alloc_stats_down(s->segment, pool, 1);
    alloc_stats_down(s->reserved_bytes, pool, b->bytes);
    if (b->bytes >= a->conf.max_split_bytes)
        alloc_stat_down(&s->oversize_segments, 1);
    shelf_remove(b);
    alloc_segment_delete(a, b->segment);
    alloc_block_delete(a, b);
}

/* What was released, added up over the rounds of a collection. */
struct garbage {
    uint64_t reclaimed_bytes;
    uint64_t total_age;
    int count;
};

static uint64_t block_age(const struct alloc_block *b)
{
    /* PyTorch narrows the age to an int (Block::gc_count). */
    return (uint64_t)(int)(b->shelf->pool->searches - b->gc_base);
}

static void garbage_count(struct alloc *a, struct garbage *g)
{
    for (struct alloc_block *b = alloc_pool_first(&a->large); b;
         b = alloc_pool_next(b)) {
        if (block_is_split(b))
            continue;
        g->total_age += block_age(b);
        g->count++;
    }
}

/* Frees every whole segment of at least average age. */
static bool garbage_round(struct alloc *a, struct garbage *g)
{
    double threshold = (double)g->total_age / g->count;
    bool freed = false;

    for (struct alloc_block *b = alloc_pool_first(&a->large), *next; b;
         b = next) {
        next = alloc_pool_next(b);
        if (block_is_split(b) || block_is_expandable(b) ||
            (double)block_age(b) < threshold)
            continue;
        freed = true;
        g->reclaimed_bytes += b->bytes;
        g->total_age -= block_age(b);
        g->count--;
        segment_release(a, b);
    }
    return freed;
}

void alloc_collect_garbage(struct alloc *a)
{
    struct garbage g = {0};
    uint64_t threshold_bytes =
        (uint64_t)(a->conf.gc_threshold * (double)a->allowed_bytes);

    if (a->reserved_bytes <= threshold_bytes)
        return;
    uint64_t target_bytes = a->reserved_bytes - threshold_bytes;
    garbage_count(a, &g);
    while (g.count > 0 && g.reclaimed_bytes < target_bytes)
        if (!garbage_round(a, &g))
            return;
}

/* Frees oversize blocks of the request's stream, the largest first, until
 * BYTES are free. B is the first block too large, NULL where none is. An
 * oversize block is whole, unless max_split_size_mb was lowered when it was
 * split already: freeing a part of a segment, as PyTorch then does, is an error
 * of the device's and not mirrored. */
static bool release_several(struct alloc *a, const struct alloc_request *r,
                            struct alloc_block *b, uint64_t bytes)
{
    uint64_t released = 0;

    b = b ? shelf_prev(b) : shelf_last(r->shelf);
    while (b && released < bytes && b->bytes >= a->conf.max_split_bytes) {
        struct alloc_block *before = shelf_prev(b);

        if (!block_is_expandable(b) && !block_is_split(b)) {
            released += b->bytes;
            segment_release(a, b);
        }
        b = before;
    }
    return released >= bytes;
}

bool alloc_release_available(struct alloc *a, const struct alloc_request *r)
{
    uint64_t bytes = r->bytes;

    if (a->conf.max_split_bytes == UINT64_MAX)
        return false;
    if (bytes < a->conf.max_split_bytes)
        bytes = a->conf.max_split_bytes;
    struct alloc_block *b = shelf_at_least(r->shelf, bytes);
    if (!b || block_is_expandable(b))
        return release_several(a, r, b, bytes);
    if (block_is_split(b))
        return false;
    segment_release(a, b);
    return true;
}

/* release_blocks: whole segments first, then pages of expandable ones, whose
 * going changes the tree. */
static void pool_release(struct alloc *a, struct alloc_pool *pool)
{
    struct alloc_block **pages = NULL, *next;
    size_t count = 0, capacity = 0;

    for (struct alloc_block *b = alloc_pool_first(pool); b; b = next) {
        next = alloc_pool_next(b);
        if (block_is_expandable(b)) {
            xgrow(&pages, count, &capacity, sizeof *pages);
            pages[count++] = b;
        } else if (!block_is_split(b)) {
            segment_release(a, b);
        }
    }
    for (size_t i = 0; i < count; i++)
        alloc_expand_release(a, pages[i]);
    free(pages);
}

static bool id_is_default(struct alloc_pool_id id)
{
    return id.first == 0 && id.second == 0;
}

/* PyTorch counts a private pool's segments, and with expandable ones loses
 * count: it adds one a request and takes one away a range. Then it forgets a
 * pool whose blocks still are there. */
static bool has_segments(const struct alloc *a, const struct alloc_private *p)
{
    const struct alloc_segment *s = a->segments;

    while (s && s->first->shelf->pool->owner != p)
        s = s->next;
    return s != NULL;
}

/* Releases what it can of the pool without users at place I, and the pool when
 * it is empty. Returns the place to go on with. */
static size_t private_release(struct alloc *a, struct alloc_private *p,
                              size_t i)
{
    pool_release(a, &p->small);
    pool_release(a, &p->large);
    if (p->segment_count || p == a->serving)
        return i + 1;
    alloc_order_erase(&a->freeables, i);
    if (!has_segments(a, p))
        alloc_pool_delete(a, p);
    return i;
}

void alloc_release_cached(struct alloc *a, struct alloc_pool_id id)
{
    struct alloc_private *p;
    size_t i = 0;

    if (id_is_default(id) && !alloc_is_capturing(a)) {
        alloc_tell(a, ALLOC_FLUSH, 0, a->reserved_bytes, NULL);
        alloc_wait_synchronize(a, NULL);
        pool_release(a, &a->large);
        pool_release(a, &a->small);
    }
    while ((p = alloc_order_next(&a->freeables, &i))) {
        bool is_meant = p->id.first == id.first && p->id.second == id.second;

        if (is_meant)
            alloc_wait_synchronize(a, p);
        i = is_meant || id_is_default(id) ? private_release(a, p, i) : i + 1;
    }
}
