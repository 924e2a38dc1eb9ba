/* SPDX-License-Identifier: Apache-2.0
 * The blocks of a snapshot over time. */
#include "memsim/result/replay_history.h"

#include <unistd.h>

#include "check.h"
#include "common/base/units.h"
#include "common/base/xmalloc.h"
#include "memsim/attribution/history.h"

#define BASE UINT64_C(0x700000000000)

static char path[] = "/tmp/memsim-history.XXXXXX";
static uint64_t clock_us = 1000;

static void add_event(struct snapshot *s, enum alloc_action action,
                      uint64_t address, uint64_t bytes, uint32_t stack)
{
    struct snapshot_event e = {.action = action,
                               .address = address,
                               .bytes = bytes,
                               .stack = stack,
                               .time_us = clock_us++};

    snapshot_add_event(s, 0, &e);
}

static uint32_t add_stack(struct snapshot *s)
{
    struct snapshot_frames *f = &s->frames;
    uint32_t inner = snapshot_frames_text(f, "/t/model.py", 11);
    uint32_t outer = snapshot_frames_text(f, "/t/train.py", 11);
    uint32_t deep = snapshot_frames_text(f, "??", 2);
    uint32_t name = snapshot_frames_text(f, "forward", 7);
    uint32_t unwind = snapshot_frames_text(f, "unwind()", 8);

    snapshot_frames_add(f, deep, unwind, 0);
    snapshot_frames_add(f, inner, name, 3);
    snapshot_frames_add(f, outer, name, 9);
    return snapshot_frames_close(f);
}

static void frees(struct snapshot *s, uint64_t address, uint64_t bytes)
{
    add_event(s, ALLOC_FREE_REQUESTED, address, bytes, 0);
    add_event(s, ALLOC_FREE_COMPLETED, address, bytes, 0);
}

/* 5 MiB were there before the history began and stay; 3 MiB at 5 are freed;
 * 30 MiB, of a little less, come and go with their segment; 2 MiB come. */
static void write_example(void)
{
    struct snapshot s = {.settings = xstrdup(""),
                         .torch_version = xstrdup("2.11.0")};
    uint32_t stack = add_stack(&s);
    struct snapshot_segment *g = snapshot_add_segment(&s);
    const struct snapshot_block blocks[] = {
        {BASE, 5 * MIB, 5 * MIB, SNAPSHOT_ALLOCATED, 0},
        {BASE + 5 * MIB, 2 * MIB, 2 * MIB, SNAPSHOT_ALLOCATED, stack},
        {BASE + 7 * MIB, 13 * MIB, 0, SNAPSHOT_INACTIVE, 0},
    };

    *g = (struct snapshot_segment){.address = BASE, .bytes = 20 * MIB};
    g->blocks = xmalloc(sizeof blocks);
    memcpy(g->blocks, blocks, sizeof blocks);
    g->block_count = 3;
    add_event(&s, ALLOC_SEGMENT_ALLOC, BASE + GIB, 30 * MIB, stack);
    add_event(&s, ALLOC_ALLOC, BASE + GIB, 30 * MIB - 100, stack);
    frees(&s, BASE + 5 * MIB, 3 * MIB);
    frees(&s, BASE + GIB, 30 * MIB - 100);
    add_event(&s, ALLOC_SEGMENT_FREE, BASE + GIB, 30 * MIB, 0);
    add_event(&s, ALLOC_ALLOC, BASE + 5 * MIB, 2 * MIB, stack);
    int fd = mkstemp(path);
    FILE *f = fdopen(fd, "w");
    CHECK(snapshot_write(&s, f) == 0);
    fclose(f);
    snapshot_fini(&s);
}

static const struct history_block *block_find(const struct history *h,
                                              uint64_t address, uint64_t bytes)
{
    static const struct history_block none = {0};

    for (size_t i = 0; i < h->count; i++)
        if (h->blocks[i].address == address && h->blocks[i].bytes == bytes)
            return &h->blocks[i];
    return &none;
}

static const char *stack_of(const struct attribution *a,
                            const struct history_block *b)
{
    return b->stack ? a->lives.texts[b->stack - 1] : "";
}

TEST(blocks_live_from_their_allocation_to_their_free)
{
    static const struct gpu gpu = {.name = "card", .memory_bytes = 4 * GIB};
    const struct recording_options options = {.gpu = &gpu,
                                              .memory_bytes = 4 * GIB};
    struct recording rec;
    struct err err = {""};

    write_example();
    CHECK(!recording_open(&rec, path, &options, &err));
    CHECK_STR(err.text, "");
    CHECK(!whatif_add(&rec.whatif, "", false, &err));
    struct attribution *a = replay_history_make(&rec, 0, &err);
    CHECK(a);
    if (!a)
        return;
    const struct history *h = a->lives.history;
    CHECK_UINT(h->count, 4);
    CHECK_UINT(h->peak_bytes,
               rec.whatif.rows[0].result.devices[0].peak_allocated_bytes);
    CHECK_UINT(h->peak_bytes, 38 * MIB);
    CHECK_UINT(block_find(h, BASE, 5 * MIB)->died, UINT64_MAX);
    /* What a block is, not what was asked for; the C++ frame is left out. */
    const struct history_block *b = block_find(h, BASE + GIB, 30 * MIB);
    CHECK_UINT(b->died, 3);
    CHECK_STR(stack_of(a, b), "/t/model.py:3 forward\n/t/train.py:9 forward");
    CHECK_STR(stack_of(a, block_find(h, BASE, 5 * MIB)), "");
    CHECK_UINT(a->points[a->point_count - 1].sums.bytes[TRACE_CATEGORY_OTHER],
               7 * MIB);
    CHECK_UINT(a->segment_count, 2); /* at the peak */
    attribution_destroy(a);
    recording_close(&rec);
    unlink(path);
}
