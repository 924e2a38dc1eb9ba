/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/replay/fragments.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/units.h"
#include "common/base/xmalloc.h"

#define CELLS 32

static const struct {
    const char *name, *text;
} reasons[] = {
    [FRAGMENTS_OTHER_POOL] = {"other_pool", "in another pool"},
    [FRAGMENTS_OTHER_STREAM] = {"other_stream", "of another stream"},
    [FRAGMENTS_REMAINDER] = {"split_remainder",
                             "too small, in segments still in use"},
    [FRAGMENTS_TOO_SMALL] = {"too_small", "too small, whole segments"},
    [FRAGMENTS_OVERSIZE] = {"oversize", "kept apart by max_split_size_mb"},
    [FRAGMENTS_WAITING] = {"waiting", "freed, but a stream still uses it"},
};

const char *fragments_reason_name(enum fragments_reason reason)
{
    return reasons[reason].name;
}

const char *fragments_reason_text(enum fragments_reason reason)
{
    return reasons[reason].text;
}

struct collector {
    struct fragments *f;
    uint64_t rounded_bytes; /* of the request; 0: none */
    uint64_t cells[CELLS];  /* bytes in use, of the segment in hand */
};

static int compare_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int group_compare(const struct fragments_group *g,
                         const struct alloc_block_info *b)
{
    int order = compare_u64(g->pool.first, b->pool.first);

    if (!order)
        order = compare_u64(g->pool.second, b->pool.second);
    if (!order)
        order = compare_u64(g->small, b->small);
    return order ? order : compare_u64(g->stream, b->stream);
}

static struct fragments_group *group_get(struct fragments *f,
                                         const struct alloc_block_info *b)
{
    size_t at = 0;

    while (at < f->group_count && group_compare(&f->groups[at], b) < 0)
        at++;
    if (at < f->group_count && !group_compare(&f->groups[at], b))
        return &f->groups[at];
    xgrow(&f->groups, f->group_count, &f->group_capacity, sizeof *f->groups);
    memmove(f->groups + at + 1, f->groups + at,
            (f->group_count - at) * sizeof *f->groups);
    f->group_count++;
    f->groups[at] = (struct fragments_group){
        .pool = b->pool, .small = b->small, .stream = b->stream};
    return &f->groups[at];
}

static void raise_to(uint64_t *most, uint64_t value)
{
    if (value > *most)
        *most = value;
}

static void add_to_group(struct fragments_group *g,
                         const struct alloc_block_info *b)
{
    g->blocks++;
    g->segments += b->address == b->segment;
    if (b->allocated) {
        g->allocated_bytes += b->bytes;
    } else if (b->active) {
        g->waiting_bytes += b->bytes;
    } else {
        g->cached_bytes += b->bytes;
        raise_to(&g->largest_cached_bytes, b->bytes);
    }
}

/* get_free_block's tests, in their order. */
static enum fragments_reason reason_for(const struct collector *c,
                                        const struct alloc_block_info *b)
{
    const struct fragments_request *r = &c->f->request;

    if (b->active)
        return FRAGMENTS_WAITING;
    if (b->pool.first != r->pool.first || b->pool.second != r->pool.second ||
        b->small != (c->rounded_bytes <= MIB))
        return FRAGMENTS_OTHER_POOL;
    if (b->stream != r->stream)
        return FRAGMENTS_OTHER_STREAM;
    if (b->bytes >= c->rounded_bytes)
        return FRAGMENTS_OVERSIZE;
    return b->bytes < b->segment_bytes ? FRAGMENTS_REMAINDER
                                       : FRAGMENTS_TOO_SMALL;
}

static void add_to_reasons(struct collector *c,
                           const struct alloc_block_info *b)
{
    struct fragments_sum *s;

    if (b->allocated || !c->rounded_bytes)
        return;
    s = &c->f->reasons[reason_for(c, b)];
    s->bytes += b->bytes;
    s->blocks++;
    raise_to(&s->largest_bytes, b->bytes);
}

/* Where cell I of BYTES begins. */
static uint64_t cell_start(uint64_t bytes, int i)
{
    return bytes / CELLS * (uint64_t)i + bytes % CELLS * (uint64_t)i / CELLS;
}

static void cells_add(struct collector *c, const struct alloc_block_info *b)
{
    uint64_t start = b->address - b->segment, end = start + b->bytes;

    for (int i = 0; i < CELLS; i++) {
        uint64_t from = cell_start(b->segment_bytes, i);
        uint64_t to = cell_start(b->segment_bytes, i + 1);

        from = from > start ? from : start;
        to = to < end ? to : end;
        if (from < to)
            c->cells[i] += to - from;
    }
}

static void map_draw(struct collector *c, struct fragments_segment *s)
{
    for (int i = 0; i < CELLS; i++) {
        uint64_t cell = cell_start(s->bytes, i + 1) - cell_start(s->bytes, i);

        s->map[i] = c->cells[i] == cell ? '#' : c->cells[i] ? '+' : '.';
    }
}

static struct fragments_segment *segment_get(struct collector *c,
                                             const struct alloc_block_info *b)
{
    struct fragments *f = c->f;

    if (b->address == b->segment) {
        xgrow(&f->segments, f->segment_count, &f->segment_capacity,
              sizeof *f->segments);
        f->segments[f->segment_count++] = (struct fragments_segment){
            .address = b->segment,
            .bytes = b->segment_bytes,
            .stream = b->stream,
            .pool = b->pool,
            .small = b->small,
            .expandable = b->expandable,
        };
        memset(c->cells, 0, sizeof c->cells);
    }
    return &f->segments[f->segment_count - 1];
}

static void add_to_segment(struct collector *c,
                           const struct alloc_block_info *b)
{
    struct fragments_segment *s = segment_get(c, b);

    s->blocks++;
    if (b->active) {
        s->allocated_bytes += b->bytes;
        cells_add(c, b);
    } else {
        raise_to(&s->largest_cached_bytes, b->bytes);
    }
    if (b->address + b->bytes == b->segment + b->segment_bytes)
        map_draw(c, s);
}

static void see_block(void *context, const struct alloc_block_info *b)
{
    struct collector *c = context;

    add_to_group(group_get(c->f, b), b);
    add_to_reasons(c, b);
    add_to_segment(c, b);
}

void fragments_collect(struct fragments *f, const struct alloc *a,
                       const struct alloc_conf *conf,
                       const struct fragments_request *request)
{
    struct collector c = {.f = f};

    fragments_fini(f);
    f->request = *request;
    if (request->bytes)
        c.rounded_bytes = alloc_conf_round(conf, request->bytes);
    alloc_walk(a, see_block, &c);
}

void fragments_fini(struct fragments *f)
{
    free(f->groups);
    free(f->segments);
    *f = (struct fragments){0};
}
