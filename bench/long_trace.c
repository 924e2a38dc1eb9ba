/* SPDX-License-Identifier: Apache-2.0
 * Makes a long trace of a short one: long_trace TRACE OUT EVENTS. The
 * allocator's records of TRACE are repeated until there are EVENTS blocks taken
 * and given back; between two rounds all that is still held is given back and
 * the cache emptied, in the allocator's order, so that each begins like the
 * first. For runs of one stream under PyTorch before 2.12. */
#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/map.h"
#include "common/trace/trace_read.h"
#include "common/trace/trace_write.h"
#include "common/base/xmalloc.h"

enum { FIELDS = TRACE_WORD_COUNT(BLOCK_ALLOC) }; /* the most */

struct record {
    enum trace_kind kind;
    unsigned count;
    uint64_t time_ns;
    union {
        uint64_t fields[FIELDS];
        struct trace_block_alloc alloc;
        struct trace_block_free freed;
        struct trace_segment_alloc segment; /* or free */
    };
    char text[512];
};

struct records {
    struct record *all;
    size_t count, capacity;
};

static void die(const char *text)
{
    fprintf(stderr, "long_trace: %s\n", text);
    exit(1);
}

static void add(struct records *r, const struct trace_item *item)
{
    struct record new = {.kind = item->head.kind,
                         .time_ns = item->head.time_ns};

    new.count = item->head.fields < FIELDS ? item->head.fields : FIELDS;
    memcpy(new.fields, item->fields, new.count * sizeof *new.fields);
    if (item->head.text_bytes < sizeof new.text)
        memcpy(new.text, item->text, item->head.text_bytes);
    xgrow(&r->all, r->count, &r->capacity, sizeof *r->all);
    r->all[r->count++] = new;
}

static int by_address(const void *a, const void *b)
{
    uint64_t x = ((const struct record *)a)->alloc.address;
    uint64_t y = ((const struct record *)b)->alloc.address;

    static_assert(offsetof(struct trace_block_free, address) ==
                          offsetof(struct trace_block_alloc, address) &&
                      offsetof(struct trace_segment_alloc, address) ==
                          offsetof(struct trace_block_alloc, address),
                  "one comparison does for blocks and segments");
    return (x > y) - (x < y);
}

/* Large ones first, by size and address (release_cached_blocks). */
static int by_release(const void *a, const void *b)
{
    uint64_t x = ((const struct record *)a)->segment.bytes;
    uint64_t y = ((const struct record *)b)->segment.bytes;
    int small_x = x <= 2 << 20, small_y = y <= 2 << 20;

    if (small_x != small_y)
        return small_x - small_y;
    if (x != y)
        return (x > y) - (x < y);
    return by_address(a, b);
}

/* Adds to R what gives everything back. */
static void add_end(struct records *r)
{
    struct map blocks = {0}, segments = {0};
    struct records freed = {0}, released = {0};

    for (size_t i = 0; i < r->count; i++) {
        struct record *e = &r->all[i];

        if (e->kind == TRACE_BLOCK_ALLOC)
            map_put(&blocks, e->alloc.address, e);
        else if (e->kind == TRACE_BLOCK_FREE)
            map_take(&blocks, e->freed.address);
        else if (e->kind == TRACE_SEGMENT_ALLOC)
            map_put(&segments, e->segment.address, e);
        else if (e->kind == TRACE_SEGMENT_FREE)
            map_take(&segments, e->segment.address);
    }
    size_t at = 0;
    for (const struct record *e; (e = map_next(&blocks, &at));) {
        xgrow(&freed.all, freed.count, &freed.capacity, sizeof *freed.all);
        freed.all[freed.count++] =
            (struct record){.kind = TRACE_BLOCK_FREE,
                            .count = TRACE_WORD_COUNT(BLOCK_FREE),
                            .freed = {.device = e->alloc.device,
                                      .address = e->alloc.address,
                                      .block_bytes = e->alloc.block_bytes,
                                      .stream = e->alloc.stream}};
    }
    at = 0;
    for (const struct record *e; (e = map_next(&segments, &at));) {
        xgrow(&released.all, released.count, &released.capacity,
              sizeof *released.all);
        released.all[released.count] = *e;
        released.all[released.count].kind = TRACE_SEGMENT_FREE;
        released.count++;
    }
    qsort(freed.all, freed.count, sizeof *freed.all, by_address);
    qsort(released.all, released.count, sizeof *released.all, by_release);
    uint64_t end_ns = r->all[r->count - 1].time_ns;
    r->all = xreallocarray(r->all, r->count + freed.count + released.count,
                           sizeof *r->all);
    memcpy(r->all + r->count, freed.all, freed.count * sizeof *freed.all);
    r->count += freed.count;
    memcpy(r->all + r->count, released.all,
           released.count * sizeof *released.all);
    r->count += released.count;
    for (size_t i = r->count - freed.count - released.count; i < r->count; i++)
        r->all[i].time_ns = end_ns;
}

static void write_all(struct trace_writer *w, const struct records *r,
                      uint64_t shift_ns)
{
    for (size_t i = 0; i < r->count; i++)
        trace_writer_put(
            w, &(struct trace_put){.kind = r->all[i].kind,
                                   .time_ns = r->all[i].time_ns + shift_ns,
                                   .fields = r->all[i].fields,
                                   .count = r->all[i].count,
                                   .text = r->all[i].text,
                                   .text_bytes = strlen(r->all[i].text)});
}

int main(int argc, char **argv)
{
    struct records setup = {0}, round = {0};
    struct trace_writer w = TRACE_WRITER_INIT;
    struct trace_reader reader;
    struct trace_item item;
    struct err err = {""};
    uint64_t events = 0, written = 0, shift_ns = 0;

    if (argc != 4)
        die("usage: long_trace TRACE OUT EVENTS");
    if (trace_reader_open(&reader, argv[1], &err))
        die(err.text);
    while (trace_reader_next(&reader, &item, &err) > 0) {
        if (item.head.kind <= TRACE_DEVICE)
            add(&setup, &item);
        else if (item.head.kind >= TRACE_BLOCK_ALLOC &&
                 item.head.kind <= TRACE_SEGMENT_FREE)
            add(&round, &item);
    }
    add_end(&round);
    for (size_t i = 0; i < round.count; i++)
        events += round.all[i].kind == TRACE_BLOCK_ALLOC ||
                  round.all[i].kind == TRACE_BLOCK_FREE;
    if (err.text[0] || trace_writer_open(&w, argv[2], UINT64_MAX / 2, &err))
        die(err.text);
    write_all(&w, &setup, 0);
    for (; written < strtoull(argv[3], NULL, 10); written += events) {
        write_all(&w, &round, shift_ns);
        shift_ns += round.all[round.count - 1].time_ns - round.all[0].time_ns;
    }
    trace_writer_close(&w, TRACE_END_EXIT, 0, shift_ns);
    printf("%llu events\n", (unsigned long long)written);
    return 0;
}
