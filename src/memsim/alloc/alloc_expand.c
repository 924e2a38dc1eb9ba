/* SPDX-License-Identifier: Apache-2.0
 * An expandable segment is a range of addresses larger than the GPU, of which
 * whole chunks have memory. Its blocks tile it; those without memory are holes:
 *
 *   [ used ][ free ][ ---- hole ---- ][ used ][ ------- hole ------- ]
 */
#include "common/base/clamp.h"
#include "memsim/alloc/alloc_internal.h"
#include "memsim/alloc/alloc_shelf.h"

static uint64_t round_up(uint64_t n, uint64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* Idle blocks and holes from B on that together have room for BYTES? */
static bool has_room(const struct alloc_block *b, uint64_t bytes)
{
    uint64_t room = 0;

    for (; room < bytes && block_is_idle(b); b = b->next)
        room += b->bytes;
    return room >= bytes;
}

/* Reserves a segment, 1 1/8 of the GPU's memory (ExpandableSegment). */
static struct alloc_block *segment_reserve(struct alloc *a,
                                           const struct alloc_request *r)
{
    uint64_t chunk_bytes =
        r->shelf->pool->small ? SMALL_SEGMENT : a->conf.large_segment_bytes;
    uint64_t bytes = round_up(a->total_bytes + a->total_bytes / 8, chunk_bytes);
    uint64_t address = a->driver.reserve(a->driver.context, bytes);

    if (!address)
        return NULL;
    struct alloc_segment *s = alloc_segment_new(a, address, bytes, chunk_bytes);
    s->first = alloc_block_new(a, r->shelf, s, address, bytes);
    s->first->mapped = false;
    shelf_insert_hole(s->first);
    return s->first;
}

/* find_expandable_block: the lowest address where free blocks and holes in a
 * row have room. The result begins with a hole or with the free block before
 * one. */
static struct alloc_block *find_room(struct alloc *a,
                                     const struct alloc_request *r)
{
    struct alloc_block *hole = tree_first(r->shelf->holes);

    for (; hole; hole = tree_next(hole)) {
        struct alloc_block *b = block_is_idle(hole->prev) ? hole->prev : hole;

        if (has_room(b, r->bytes))
            return b;
    }
    return segment_reserve(a, r);
}

static bool map_chunks(struct alloc *a, uint64_t address, uint64_t bytes,
                       uint64_t chunk_bytes)
{
    for (uint64_t done = 0; done < bytes; done += chunk_bytes) {
        if (a->driver.map(a->driver.context, address + done, chunk_bytes))
            continue;
        while (done) {
            done -= chunk_bytes;
            a->driver.unmap(a->driver.context, address + done, chunk_bytes);
        }
        return false;
    }
    return true;
}

/* map_block: gives HOLE's first BYTES, rounded up to chunks, memory and caches
 * them, merged with their neighbours, as HOLE itself. */
static bool map_hole(struct alloc *a, struct alloc_block *hole, uint64_t bytes)
{
    struct alloc_pool *pool = hole->shelf->pool;
    struct alloc_segment *s = hole->segment;
    uint64_t address = hole->address;
    uint64_t end =
        s->address + round_up(address - s->address + bytes, s->chunk_bytes);
    uint64_t mapped_bytes = end - address;

    if (!map_chunks(a, address, mapped_bytes, s->chunk_bytes))
        return false;
    shelf_remove_hole(hole);
    hole->mapped = true;
    if (mapped_bytes < hole->bytes) {
        struct alloc_block *rest =
            alloc_block_new(a, hole->shelf, s, end, hole->bytes - mapped_bytes);
        rest->mapped = false;
        alloc_block_splice(rest, hole, hole->next);
        shelf_insert_hole(rest);
        hole->bytes = mapped_bytes;
    }
    alloc_block_absorb(a, hole, hole->prev);
    alloc_block_absorb(a, hole, hole->next);
    alloc_block_cache(hole);
    a->reserved_bytes += mapped_bytes;
    alloc_stats_up(a->stats.reserved_bytes, pool, mapped_bytes);
    a->stats.num_device_alloc++;
    alloc_tell(a, ALLOC_SEGMENT_MAP, address, mapped_bytes, hole->shelf);
    return true;
}

/* try_allocate_expandable_block. Where memory ends half way, what was mapped
 * stays cached. */
bool alloc_expand_obtain(struct alloc *a, struct alloc_request *r)
{
    struct alloc_block *b = find_room(a, r);

    if (!b || (!b->mapped && !map_hole(a, b, least_u64(b->bytes, r->bytes))))
        return false;
    while (b->bytes < r->bytes) {
        struct alloc_block *hole = b->next;

        if (!map_hole(a, hole, least_u64(r->bytes - b->bytes, hole->bytes)))
            return false;
        b = hole;
    }
    shelf_remove(b);
    r->block = b;
    if (r->shelf->pool->owner)
        r->shelf->pool->owner->segment_count++;
    return true;
}

/* Cuts idle block B down to [START, END), caching what is before and after. */
static void trim_block(struct alloc *a, struct alloc_block *b, uint64_t start,
                       uint64_t end)
{
    uint64_t after_bytes = b->address + b->bytes - end;

    if (start > b->address)
        alloc_block_cache(alloc_block_cut(a, b, start - b->address));
    if (after_bytes) {
        struct alloc_block *after =
            alloc_block_new(a, b->shelf, b->segment, end, after_bytes);
        alloc_block_splice(after, b, b->next);
        alloc_block_cache(after);
        b->bytes -= after_bytes;
    }
}

static void unmap_chunks(struct alloc *a, const struct alloc_block *b)
{
    uint64_t chunk_bytes = b->segment->chunk_bytes;

    for (uint64_t done = 0; done < b->bytes; done += chunk_bytes)
        a->driver.unmap(a->driver.context, b->address + done, chunk_bytes);
}

/* B, without memory now, becomes a hole. */
static void make_hole(struct alloc *a, struct alloc_block *b)
{
    b->mapped = false;
    alloc_block_absorb(a, b, b->prev);
    alloc_block_absorb(a, b, b->next);
    shelf_insert_hole(b);
}

/* release_expandable_segment: B is a hole and all of its segment. */
static void segment_forget(struct alloc *a, struct alloc_block *b)
{
    struct alloc_segment *s = b->segment;

    shelf_remove_hole(b);
    a->driver.unreserve(a->driver.context, s->address, s->bytes);
    alloc_segment_delete(a, s);
    alloc_block_delete(a, b);
}

void alloc_expand_release(struct alloc *a, struct alloc_block *b)
{
    struct alloc_segment *s = b->segment;
    uint64_t start =
        s->address + round_up(b->address - s->address, s->chunk_bytes);
    uint64_t end = b->address + b->bytes;

    end -= (end - s->address) % s->chunk_bytes;
    if (start >= end)
        return;
    shelf_remove(b);
    trim_block(a, b, start, end);
    unmap_chunks(a, b);
    make_hole(a, b);
    a->reserved_bytes -= end - start;
    alloc_stats_down(a->stats.reserved_bytes, b->shelf->pool, end - start);
    if (b->shelf->pool->owner)
        b->shelf->pool->owner->segment_count--;
    a->stats.num_device_free++;
    alloc_tell(a, ALLOC_SEGMENT_UNMAP, start, end - start, b->shelf);
    if (!block_is_split(b))
        segment_forget(a, b);
}
