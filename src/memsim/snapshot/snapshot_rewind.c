/* SPDX-License-Identifier: Apache-2.0
 * From the end of a recording back to its beginning. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/bisect.h"
#include "common/base/map.h"
#include "common/base/units.h"
#include "common/base/xmalloc.h"
#include "memsim/snapshot/snapshot.h"

#define SMALL_SEGMENT   (2 * MIB) /* kSmallBuffer: no large one is so small */
#define LEAST_REMAINDER (1 * MIB) /* kSmallSize: a smaller one is not split */

/* A block in use at the point reached so far. */
struct live {
    uint64_t address, requested_bytes;
    uint64_t bytes; /* 0: not recorded */
    enum snapshot_state state;
    uint32_t stack;
};

struct rewinder {
    const struct alloc_conf *conf;
    const char *origin;
    struct err *err;
    unsigned device;
    size_t event; /* in hand, for messages */
    struct live *lives;
    size_t live_count, live_capacity;
    struct map by_address;   /* index in lives, plus 1 */
    struct snapshot *result; /* segments, without blocks; ascending */
};

static int rewind_fail(const struct rewinder *w, const char *cause,
                       uint64_t address)
{
    return err_set(w->err, "%s:event %zu of device %u: %s %#" PRIx64, w->origin,
                   w->event, w->device, cause, address);
}

static void live_index(struct rewinder *w, size_t at)
{
    map_put(&w->by_address, w->lives[at].address, (void *)(uintptr_t)(at + 1));
}

static int live_add(struct rewinder *w, const struct live *live)
{
    if (!live->address || map_get(&w->by_address, live->address))
        return rewind_fail(w, "a second block at", live->address);
    xgrow(&w->lives, w->live_count, &w->live_capacity, sizeof *w->lives);
    w->lives[w->live_count++] = *live;
    live_index(w, w->live_count - 1);
    return 0;
}

static int live_remove(struct rewinder *w, uint64_t address)
{
    size_t at = (uintptr_t)map_take(&w->by_address, address);

    if (!at--)
        return rewind_fail(w, "no block in use later at", address);
    w->lives[at] = w->lives[--w->live_count];
    if (at < w->live_count)
        live_index(w, at);
    return 0;
}

/* The index of the first segment that ends above ADDRESS. */
static size_t segment_search(const struct rewinder *w, uint64_t address)
{
    const struct snapshot_segment *all = w->result->segments;

    return BISECT(i, w->result->segment_count,
                  all[i].address + all[i].bytes <= address);
}

static void segment_insert(struct rewinder *w, size_t at,
                           const struct snapshot_segment *segment)
{
    struct snapshot *r = w->result;

    snapshot_add_segment(r);
    memmove(r->segments + at + 1, r->segments + at,
            (r->segment_count - 1 - at) * sizeof *r->segments);
    r->segments[at] = *segment;
}

static void segment_erase(struct rewinder *w, size_t at)
{
    struct snapshot *r = w->result;

    r->segment_count--;
    memmove(r->segments + at, r->segments + at + 1,
            (r->segment_count - at) * sizeof *r->segments);
}

/* Undoes a segment_alloc or segment_map: takes the range out of the segment
 * that holds it, which may leave a part on either side. */
static int range_remove(struct rewinder *w, const struct snapshot_event *e)
{
    size_t at = segment_search(w, e->address);
    struct snapshot_segment before;

    if (at == w->result->segment_count ||
        w->result->segments[at].address > e->address)
        return rewind_fail(w, "no segment later at", e->address);
    before = w->result->segments[at];
    uint64_t skipped = e->address - before.address;
    if (!e->bytes || e->bytes > before.bytes - skipped)
        return rewind_fail(w, "a smaller segment later at", e->address);
    struct snapshot_segment after = before;
    after.address = e->address + e->bytes;
    after.bytes = before.bytes - skipped - e->bytes;
    before.bytes = skipped;
    segment_erase(w, at);
    if (after.bytes)
        segment_insert(w, at, &after);
    if (before.bytes)
        segment_insert(w, at, &before);
    return 0;
}

/* Undoes a segment_free or segment_unmap. A mapped range joins its
 * neighbours, as they do in the allocator's own snapshot. */
static int range_add(struct rewinder *w, const struct snapshot_event *e)
{
    size_t at = segment_search(w, e->address);
    struct snapshot *r = w->result;
    struct snapshot_segment g = {
        .device = w->device,
        .address = e->address,
        .bytes = e->bytes,
        .stream = e->stream,
        .pool = e->pool,
        .small = e->bytes == SMALL_SEGMENT,
        .expandable = e->action == ALLOC_SEGMENT_UNMAP,
    };

    if (!e->address || !e->bytes || e->address + e->bytes < e->address)
        return rewind_fail(w, "impossible segment at", e->address);
    if (at < r->segment_count &&
        r->segments[at].address < e->address + e->bytes)
        return rewind_fail(w, "a segment is there later, too, at", e->address);
    if (g.expandable && at < r->segment_count && r->segments[at].expandable &&
        r->segments[at].address == g.address + g.bytes) {
        g.bytes += r->segments[at].bytes;
        g.small = r->segments[at].small;
        segment_erase(w, at);
    }
    if (g.expandable && at > 0 && r->segments[at - 1].expandable &&
        r->segments[at - 1].address + r->segments[at - 1].bytes == g.address) {
        r->segments[at - 1].bytes += g.bytes;
        return 0;
    }
    segment_insert(w, at, &g);
    return 0;
}

static int undo_free_completed(struct rewinder *w,
                               const struct snapshot_event *e)
{
    struct live live = {e->address, e->bytes, 0, SNAPSHOT_AWAITING_FREE,
                        e->stack};

    return live_add(w, &live);
}

static int undo_free_requested(struct rewinder *w,
                               const struct snapshot_event *e)
{
    size_t at = (uintptr_t)map_get(&w->by_address, e->address);

    if (!at || w->lives[at - 1].state != SNAPSHOT_AWAITING_FREE)
        return rewind_fail(w, "no block being freed at", e->address);
    w->lives[at - 1].state = SNAPSHOT_ALLOCATED;
    return 0;
}

static int undo_alloc(struct rewinder *w, const struct snapshot_event *e)
{
    return live_remove(w, e->address);
}

static int undo_nothing(struct rewinder *w, const struct snapshot_event *e)
{
    (void)w;
    (void)e;
    return 0;
}

static int (*const undo[])(struct rewinder *, const struct snapshot_event *) = {
    [ALLOC_ALLOC] = undo_alloc,
    [ALLOC_FREE_REQUESTED] = undo_free_requested,
    [ALLOC_FREE_COMPLETED] = undo_free_completed,
    [ALLOC_SEGMENT_ALLOC] = range_remove,
    [ALLOC_SEGMENT_FREE] = range_add,
    [ALLOC_SEGMENT_MAP] = range_remove,
    [ALLOC_SEGMENT_UNMAP] = range_add,
    [ALLOC_SNAPSHOT] = undo_nothing,
    [ALLOC_OOM] = undo_nothing,
};

/* What is there at the end. */
static int rewind_start(struct rewinder *w, const struct snapshot *s)
{
    for (size_t i = 0; i < s->segment_count; i++) {
        struct snapshot_segment g = s->segments[i];

        if (g.device != w->device)
            continue;
        for (size_t k = 0; k < g.block_count; k++) {
            const struct snapshot_block *b = &g.blocks[k];
            struct live live = {b->address, b->requested_bytes, b->bytes,
                                b->state, b->stack};
            if (b->state != SNAPSHOT_INACTIVE && live_add(w, &live))
                return -1;
        }
        g.blocks = NULL;
        g.block_count = 0;
        *snapshot_add_segment(w->result) = g;
    }
    return 0;
}

static int by_address(const void *x, const void *y)
{
    const struct live *a = x, *b = y;

    return (a->address > b->address) - (a->address < b->address);
}

/* The size of a live block with ROOM bytes to the next one. */
static uint64_t live_bytes(const struct rewinder *w, const struct live *live,
                           const struct snapshot_segment *g, uint64_t room)
{
    if (live->bytes)
        return live->bytes;
    if (!live->requested_bytes || live->requested_bytes > room)
        return 0;
    uint64_t bytes = alloc_conf_round(w->conf, live->requested_bytes);
    bool whole =
        !g->small && !g->expandable &&
        (room - bytes <= LEAST_REMAINDER || bytes >= w->conf->max_split_bytes);
    return bytes <= room && whole ? room : bytes;
}

static void add_block(struct snapshot_segment *g, size_t *capacity,
                      uint64_t address, uint64_t bytes, const struct live *live)
{
    xgrow(&g->blocks, g->block_count, capacity, sizeof *g->blocks);
    g->blocks[g->block_count++] = (struct snapshot_block){
        .address = address,
        .bytes = bytes,
        .requested_bytes = live ? live->requested_bytes : 0,
        .state = live ? live->state : SNAPSHOT_INACTIVE,
        .stack = live ? live->stack : 0,
    };
}

/* Fills G with the live blocks from *NEXT on that lie in it, and what is free
 * between them. */
static int fill_segment(struct rewinder *w, struct snapshot_segment *g,
                        size_t *next)
{
    uint64_t at = g->address, end = g->address + g->bytes;
    size_t capacity = 0;

    for (; *next < w->live_count && w->lives[*next].address < end; ++*next) {
        const struct live *live = &w->lives[*next];
        uint64_t limit = end;

        if (*next + 1 < w->live_count && live[1].address < end)
            limit = live[1].address;
        if (live->address < at)
            return rewind_fail(w, "overlapping blocks at", live->address);
        uint64_t bytes = live_bytes(w, live, g, limit - live->address);
        if (!bytes || bytes > limit - live->address)
            return rewind_fail(w, "no room for the block at", live->address);
        if (live->address > at)
            add_block(g, &capacity, at, live->address - at, NULL);
        add_block(g, &capacity, live->address, bytes, live);
        at = live->address + bytes;
    }
    if (at < end)
        add_block(g, &capacity, at, end - at, NULL);
    return 0;
}

static int fill_segments(struct rewinder *w)
{
    size_t next = 0;

    if (w->live_count)
        qsort(w->lives, w->live_count, sizeof *w->lives, by_address);
    for (size_t i = 0; i < w->result->segment_count; i++) {
        struct snapshot_segment *g = &w->result->segments[i];

        if (next < w->live_count && w->lives[next].address < g->address)
            break;
        if (fill_segment(w, g, &next))
            return -1;
    }
    if (next < w->live_count)
        return rewind_fail(w, "no segment holds the block at",
                           w->lives[next].address);
    return 0;
}

static int rewind_events(struct rewinder *w, const struct snapshot_trace *t)
{
    for (w->event = t->count; w->event-- > 0;) {
        const struct snapshot_event *e = &t->events[w->event];

        if (undo[e->action](w, e))
            return -1;
    }
    w->event = 0;
    return 0;
}

int snapshot_rewind(const struct snapshot *s, unsigned device,
                    const struct alloc_conf *conf, const char *origin,
                    struct snapshot *result, struct err *err)
{
    struct rewinder w = {.conf = conf,
                         .origin = origin,
                         .err = err,
                         .device = device,
                         .result = result};
    static const struct snapshot_trace none;
    const struct snapshot_trace *t =
        device < s->trace_count ? &s->traces[device] : &none;

    *result = (struct snapshot){0};
    w.event = t->count;
    int rc = rewind_start(&w, s);
    if (!rc)
        rc = rewind_events(&w, t);
    if (!rc)
        rc = fill_segments(&w);
    free(w.lives);
    map_fini(&w.by_address);
    if (rc)
        snapshot_fini(result);
    return rc;
}
