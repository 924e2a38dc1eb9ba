/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "common/base/units.h"
#include "common/base/xmalloc.h"
#include "memsim/attribution/attribute_internal.h"

/* What expandable segments are mapped in multiples of: the driver's granule. */
#define GRANULE (2 * MIB)

/* A terabyte of them, more than a process maps: what goes beyond is not split,
 * so that a false trace cannot make rows without end. */
enum { MOST_GRANULES = 1 << 19 };

static void row_end(struct segment_table *t, struct segment_row *row,
                    uint64_t peak_ordinal)
{
    if (row->born > peak_ordinal) {
        free(row);
        return;
    }
    row->next_gone = t->gone;
    t->gone = row;
}

static void row_begin(struct segment_table *t, const struct segment_row *row,
                      uint64_t peak_ordinal)
{
    struct segment_row *r = xmalloc(sizeof *r);

    *r = *row;
    struct segment_row *stale = map_put(&t->live, r->address, r);
    if (stale) /* it was freed unseen */
        row_end(t, stale, peak_ordinal);
}

static void address_end(struct segment_table *t, uint64_t address,
                        uint64_t peak_ordinal)
{
    struct segment_row *row = map_take(&t->live, address);

    if (row)
        row_end(t, row, peak_ordinal);
}

/* What is mapped at once may be unmapped in parts, so each granule is a row. */
static void granules_take(struct segment_table *t, struct segment_row *row,
                          bool begins, uint64_t peak_ordinal)
{
    uint64_t end = row->address + row->bytes;

    if (row->bytes / GRANULE > MOST_GRANULES ||
        (begins && t->live.count > MOST_GRANULES)) {
        if (begins)
            row_begin(t, row, peak_ordinal);
        else
            address_end(t, row->address, peak_ordinal);
        return;
    }
    for (; row->address < end; row->address += GRANULE) {
        row->bytes = end - row->address;
        if (row->bytes > GRANULE)
            row->bytes = GRANULE;
        if (begins)
            row_begin(t, row, peak_ordinal);
        else
            address_end(t, row->address, peak_ordinal);
    }
}

void segment_table_take(struct segment_table *t, const struct trace_item *item,
                        uint64_t ordinal, uint64_t peak_ordinal)
{
    const struct trace_segment_alloc *segment = trace_as_segment(item);
    struct segment_row row = {
        .address = segment->address,
        .bytes = segment->bytes,
        .stream = segment->stream,
        .pool = {segment->pool_low, segment->pool_high},
        .born = ordinal,
    };

    if (item->head.kind == TRACE_SEGMENT_ALLOC)
        row_begin(t, &row, peak_ordinal);
    else if (item->head.kind == TRACE_SEGMENT_FREE)
        address_end(t, row.address, peak_ordinal);
    else
        granules_take(t, &row, item->head.kind == TRACE_SEGMENT_MAP,
                      peak_ordinal);
    t->expandable |= item->head.kind == TRACE_SEGMENT_MAP;
}

void segment_table_peak(struct segment_table *t)
{
    for (struct segment_row *row = t->gone, *next; row; row = next) {
        next = row->next_gone;
        free(row);
    }
    t->gone = NULL;
}

static int segment_compare(const void *x, const void *y)
{
    const struct attribution_segment *a = x, *b = y;

    return a->address < b->address ? -1 : a->address > b->address;
}

static const struct attribution_segment *
segment_find(const struct attribution_segment *all, size_t count,
             uint64_t address)
{
    size_t low = 0;

    while (low < count) {
        size_t middle = low + (count - low) / 2;
        if (all[middle].address > address)
            count = middle;
        else if (address - all[middle].address < all[middle].bytes)
            return &all[middle];
        else
            low = middle + 1;
    }
    return NULL;
}

/* T's segments by address; COUNT in them is 0. */
static struct attribution_segment *segments_sort(const struct segment_table *t)
{
    struct attribution_segment *all = xcalloc(t->live.count + 1, sizeof *all);
    size_t cursor = 0, n = 0;

    for (const struct segment_row *row; (row = map_next(&t->live, &cursor));)
        all[n++] = (struct attribution_segment){.address = row->address,
                                                .bytes = row->bytes};
    qsort(all, n, sizeof *all, segment_compare);
    return all;
}

uint64_t segment_table_held(const struct segment_table *t,
                            const struct map *blocks, unsigned device)
{
    struct attribution_segment *all = segments_sort(t);
    uint64_t bytes = 0;
    size_t cursor = 0;

    for (const struct block *p; (p = map_next(blocks, &cursor));) {
        const struct attribution_segment *segment =
            p->device == device
                ? segment_find(all, t->live.count, p->address)
                : NULL;
        if (!segment || segment->count)
            continue;
        all[segment - all].count = 1;
        bytes += segment->bytes;
    }
    free(all);
    return bytes;
}

static void segment_put(struct attribution *to, size_t *capacity,
                        const struct segment_row *row)
{
    xgrow(&to->segments, to->segment_count, capacity, sizeof *to->segments);
    to->segments[to->segment_count++] = (struct attribution_segment){
        .address = row->address,
        .bytes = row->bytes,
        .stream = row->stream,
        .pool = {row->pool[0], row->pool[1]},
    };
}

/* Granules of one expandable segment are of the granule's size; cudaMalloc's
 * segments of that size are not one, however they lie. */
static bool segment_continues(const struct attribution_segment *a,
                              const struct attribution_segment *b,
                              bool expandable)
{
    return expandable && a->address + a->bytes == b->address &&
           a->stream == b->stream && a->pool[0] == b->pool[0] &&
           a->pool[1] == b->pool[1];
}

static void segments_unite(struct attribution *to, bool expandable)
{
    size_t kept = 0;

    for (size_t i = 0; i < to->segment_count; i++)
        if (kept && segment_continues(&to->segments[kept - 1], &to->segments[i],
                                      expandable))
            to->segments[kept - 1].bytes += to->segments[i].bytes;
        else
            to->segments[kept++] = to->segments[i];
    to->segment_count = kept;
}

void segment_table_conclude(struct segment_table *t, uint64_t peak_ordinal,
                            struct attribution *to)
{
    size_t cursor = 0, capacity = 0;

    for (struct segment_row *r; (r = map_next(&t->live, &cursor));)
        if (r->born <= peak_ordinal)
            segment_put(to, &capacity, r);
    for (struct segment_row *r = t->gone; r; r = r->next_gone)
        segment_put(to, &capacity, r);
    if (!to->segment_count)
        return;
    qsort(to->segments, to->segment_count, sizeof *to->segments,
          segment_compare);
    segments_unite(to, t->expandable);
}

void segment_table_fini(struct segment_table *t)
{
    size_t cursor = 0;

    for (void *row; (row = map_next(&t->live, &cursor));)
        free(row);
    map_fini(&t->live);
    segment_table_peak(t);
}
