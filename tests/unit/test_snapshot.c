/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/units.h"
#include "memsim/replay/replay.h"
#include "check.h"

#define BASE UINT64_C(0x700000000000)

static const struct alloc_pool_id pool = {3, 9};

static void add_blocks(struct snapshot_segment *g,
                       const struct snapshot_block *blocks, size_t count)
{
    g->blocks = malloc(count * sizeof *blocks);
    memcpy(g->blocks, blocks, count * sizeof *blocks);
    g->block_count = count;
}

static void add_event(struct snapshot *s, enum alloc_action action,
                      uint64_t address, uint64_t bytes)
{
    struct snapshot_event e = {
        .action = action, .address = address, .bytes = bytes, .time_us = 1000};

    snapshot_add_event(s, 0, &e);
}

/* What is there at the end of: 5 MiB at 0, made before the history began, stay;
 * 3 MiB at 5, likewise, are freed; 2 MiB are made at 5; 30 MiB come and go with
 * their segment. */
static struct snapshot example(void)
{
    struct snapshot s = {.settings = strdup(""),
                         .torch_version = strdup("2.13.0")};
    struct snapshot_segment *g = snapshot_add_segment(&s);
    const struct snapshot_block blocks[] = {
        {BASE, 5 * MIB, 5 * MIB - 3, SNAPSHOT_ALLOCATED, 0},
        {BASE + 5 * MIB, 2 * MIB, 2 * MIB, SNAPSHOT_ALLOCATED, 0},
        {BASE + 7 * MIB, 13 * MIB, 0, SNAPSHOT_INACTIVE, 0},
    };

    *g = (struct snapshot_segment){
        .address = BASE, .bytes = 20 * MIB, .pool = {0, 0}};
    add_blocks(g, blocks, 3);
    add_event(&s, ALLOC_SEGMENT_ALLOC, BASE + GIB, 30 * MIB);
    add_event(&s, ALLOC_ALLOC, BASE + GIB, 30 * MIB - 100);
    add_event(&s, ALLOC_FREE_REQUESTED, BASE + 5 * MIB, 3 * MIB);
    add_event(&s, ALLOC_FREE_COMPLETED, BASE + 5 * MIB, 3 * MIB);
    add_event(&s, ALLOC_FREE_REQUESTED, BASE + GIB, 30 * MIB - 100);
    add_event(&s, ALLOC_FREE_COMPLETED, BASE + GIB, 30 * MIB - 100);
    add_event(&s, ALLOC_SEGMENT_FREE, BASE + GIB, 30 * MIB);
    add_event(&s, ALLOC_ALLOC, BASE + 5 * MIB, 2 * MIB);
    return s;
}

static struct snapshot written_and_read(const struct snapshot *s)
{
    char *data = NULL;
    size_t bytes = 0;
    struct snapshot again = {0};
    struct err err = {""};
    FILE *f = open_memstream(&data, &bytes);

    CHECK(snapshot_write(s, f) == 0);
    fclose(f);
    CHECK(snapshot_is_pickle(data, bytes));
    if (snapshot_parse(data, bytes, "s", &again, &err))
        CHECK_FAIL("%s", err.text);
    free(data);
    return again;
}

TEST(what_is_written_is_read)
{
    struct snapshot s = example();
    struct snapshot_segment *g = snapshot_add_segment(&s);
    const struct snapshot_block blocks[] = {
        {BASE + 8 * GIB, 512, 1, SNAPSHOT_AWAITING_FREE, 0},
        {BASE + 8 * GIB + 512, 2 * MIB - 512, 0, SNAPSHOT_INACTIVE, 0},
    };

    *g = (struct snapshot_segment){.device = 1,
                                   .address = BASE + 8 * GIB,
                                   .bytes = 2 * MIB,
                                   .stream = UINT64_MAX - 5,
                                   .pool = pool,
                                   .small = true,
                                   .expandable = true};
    add_blocks(g, blocks, 2);
    add_event(&s, ALLOC_OOM, 12345, 70 * GIB);
    struct snapshot t = written_and_read(&s);
    CHECK_UINT(t.segment_count, 2);
    CHECK_UINT(t.traces[0].count, 9);
    const struct snapshot_segment *h = &t.segments[1];
    CHECK(h->device == 1 && h->small && h->expandable);
    CHECK_UINT(h->stream, UINT64_MAX - 5);
    CHECK_UINT(h->pool.second, 9);
    CHECK_UINT(h->block_count, 2);
    for (size_t i = 0; i < h->block_count; i++) {
        CHECK_UINT(h->blocks[i].address, blocks[i].address);
        CHECK_UINT(h->blocks[i].bytes, blocks[i].bytes);
        CHECK_UINT(h->blocks[i].requested_bytes, blocks[i].requested_bytes);
        CHECK(h->blocks[i].state == blocks[i].state);
    }
    const struct snapshot_event *e = &t.traces[0].events[8];
    CHECK(e->action == ALLOC_OOM && e->address == 12345);
    CHECK_UINT(e->bytes, 70 * GIB);
    CHECK_UINT(e->time_us, 1000);
    CHECK_STR(t.settings, "");
    CHECK_STR(t.torch_version, "2.13.0");
    CHECK(!s.simulated && t.simulated); /* memsim wrote it */
    snapshot_fini(&s);
    snapshot_fini(&t);
}

TEST(stacks_are_written_once_and_read)
{
    struct snapshot s = example();
    struct snapshot_frames *f = &s.frames;
    uint32_t file = snapshot_frames_text(f, "a b.py", 6);
    uint32_t name = snapshot_frames_text(f, "f\xff", 2);

    snapshot_frames_add(f, file, name, 3);
    snapshot_frames_add(f, file, file, 70000);
    uint32_t two = snapshot_frames_close(f);
    CHECK_UINT(snapshot_frames_close(f), 0);
    snapshot_frames_add(f, name, name, 0);
    uint32_t one = snapshot_frames_close(f);
    s.segments[0].blocks[0].stack = two;
    for (size_t i = 0; i < s.traces[0].count; i++)
        s.traces[0].events[i].stack = i % 2 ? one : two;
    struct snapshot again = written_and_read(&s);
    CHECK_UINT(again.frames.stack_count, 2);
    CHECK_UINT(again.frames.frame_count, 3);
    CHECK_UINT(again.frames.text_count, 2);
    CHECK_UINT(again.segments[0].blocks[1].stack, 0);
    uint32_t stack = again.segments[0].blocks[0].stack;
    for (size_t i = 0; i < s.traces[0].count; i++)
        CHECK((again.traces[0].events[i].stack == stack) == !(i % 2));
    const struct snapshot_frame *frame =
        &again.frames.frames[again.frames.stacks[stack - 1].first + 1];
    CHECK_UINT(frame->line, 70000);
    CHECK(!strcmp(again.frames.texts[frame->file], "a b.py"));
    CHECK(!strcmp(again.frames.texts[frame[-1].name], "f?"));
    snapshot_fini(&again);
    snapshot_fini(&s);
}

TEST(goes_back_to_the_beginning)
{
    struct snapshot s = example(), start;
    struct alloc_conf conf;
    struct err err = {""};

    alloc_conf_init(&conf);
    CHECK(!snapshot_rewind(&s, 0, &conf, "s", &start, &err));
    CHECK_UINT(start.segment_count, 1);
    const struct snapshot_segment *g = &start.segments[0];
    CHECK_UINT(g->block_count, 3);
    CHECK_UINT(g->blocks[0].bytes, 5 * MIB);
    CHECK_UINT(g->blocks[1].bytes, 3 * MIB);
    CHECK(g->blocks[1].state == SNAPSHOT_ALLOCATED);
    CHECK_UINT(g->blocks[2].address, BASE + 8 * MIB);
    snapshot_fini(&start);
    snapshot_fini(&s);
}

TEST(a_block_gets_the_rest_that_is_too_small_to_split)
{
    struct snapshot s = {0}, start;
    struct snapshot_segment *g = snapshot_add_segment(&s);
    const struct snapshot_block all = {BASE, 20 * MIB, 0, SNAPSHOT_INACTIVE, 0};
    struct alloc_conf conf;
    struct err err = {""};

    *g = (struct snapshot_segment){.address = BASE, .bytes = 20 * MIB};
    add_blocks(g, &all, 1);
    add_event(&s, ALLOC_FREE_REQUESTED, BASE + 8 * MIB, 11 * MIB);
    add_event(&s, ALLOC_FREE_COMPLETED, BASE + 8 * MIB, 11 * MIB);
    alloc_conf_init(&conf);
    CHECK(!snapshot_rewind(&s, 0, &conf, "s", &start, &err));
    CHECK_UINT(start.segments[0].blocks[1].bytes, 12 * MIB);
    CHECK_UINT(start.segments[0].blocks[1].requested_bytes, 11 * MIB);
    snapshot_fini(&start);
    snapshot_fini(&s);
}

static void check_impossible(enum alloc_action action, uint64_t address,
                             uint64_t bytes, const char *text)
{
    struct snapshot s = example(), start;
    struct alloc_conf conf;
    struct err err = {""};

    alloc_conf_init(&conf);
    add_event(&s, action, address, bytes);
    CHECK(snapshot_rewind(&s, 0, &conf, "s", &start, &err) == -1);
    CHECK_STR(err.text, text);
    snapshot_fini(&s);
}

TEST(refuses_a_history_that_cannot_be)
{
    check_impossible(ALLOC_ALLOC, BASE + 7 * MIB, 512,
                     "s:event 8 of device 0: no block in use later at "
                     "0x700000700000");
    check_impossible(ALLOC_FREE_COMPLETED, BASE, 512,
                     "s:event 8 of device 0: a second block at "
                     "0x700000000000");
    check_impossible(ALLOC_FREE_REQUESTED, BASE + 7 * MIB, 512,
                     "s:event 8 of device 0: no block being freed at "
                     "0x700000700000");
    check_impossible(ALLOC_SEGMENT_ALLOC, BASE + 7 * GIB, 512,
                     "s:event 8 of device 0: no segment later at "
                     "0x7001c0000000");
    check_impossible(ALLOC_SEGMENT_ALLOC, BASE, GIB,
                     "s:event 8 of device 0: a smaller segment later at "
                     "0x700000000000");
    check_impossible(ALLOC_SEGMENT_FREE, BASE + MIB, MIB,
                     "s:event 8 of device 0: a segment is there later, too, "
                     "at 0x700000100000");
    check_impossible(ALLOC_SEGMENT_FREE, UINT64_MAX - 5, MIB,
                     "s:event 8 of device 0: impossible segment at "
                     "0xfffffffffffffffa");
}

TEST(refuses_segments_that_cannot_be)
{
    struct {
        uint64_t address, bytes, block_bytes;
    } cases[] = {
        {0, 2 * MIB, 2 * MIB},
        {BASE, 0, 0},
        {BASE, 2 * MIB, MIB},
        {BASE, 2 * MIB, 3 * MIB},
        {UINT64_MAX - MIB, 2 * MIB, 2 * MIB},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct snapshot s = {0};
        struct snapshot_segment *g = snapshot_add_segment(&s);
        struct snapshot_block b = {cases[i].address, cases[i].block_bytes, 0,
                                   SNAPSHOT_INACTIVE, 0};
        struct err err = {""};

        g->address = cases[i].address;
        g->bytes = cases[i].bytes;
        add_blocks(g, &b, 1);
        if (!snapshot_check(&s, "s", &err))
            CHECK_FAIL("case %zu was taken", i);
        snapshot_fini(&s);
    }
}

TEST(replays_what_was_written)
{
    struct snapshot s = example();
    struct replay_snapshot source;
    struct replay_config config = {.total_bytes = 80 * GIB};
    struct replay_plan plan;
    struct replay_result result;
    struct err err = {""};

    config.rules = alloc_rules_find("2.11", NULL, &err);
    alloc_conf_init(&config.conf);
    CHECK(!replay_snapshot_open(&source, &s, &config.conf, "s", &err));
    CHECK(!source.complete);
    CHECK(!replay_mirror(&source.source, &config, &plan, &err));
    CHECK(plan.exact);
    CHECK_UINT(plan.blocks_checked, 2);
    CHECK_UINT(plan.count, 1); /* the segment that went: empty_cache() */
    CHECK(!replay_run(&source.source, &config, &plan, NULL, &result, &err));
    CHECK(result.fits);
    CHECK_UINT(result.devices[0].peak_reserved_bytes, 50 * MIB);
    replay_result_fini(&result);
    config.total_bytes = 40 * MIB;
    CHECK(!replay_run(&source.source, &config, &plan, NULL, &result, &err));
    CHECK(!result.fits && result.devices[0].oom_count == 1);
    CHECK_UINT(result.devices[0].ooms[0].requested_bytes, 30 * MIB - 100);
    CHECK_UINT(result.devices[0].ooms[0].refused_bytes, 30 * MIB);
    replay_result_fini(&result);
    replay_plan_fini(&plan);
    replay_snapshot_close(&source);
    snapshot_fini(&s);
}

static void add_at(struct snapshot *s, unsigned device,
                   enum alloc_action action, uint64_t address, uint64_t bytes,
                   uint64_t time_us)
{
    struct snapshot_event e = {.action = action,
                               .address = address,
                               .bytes = bytes,
                               .time_us = time_us};

    snapshot_add_event(s, device, &e);
}

static struct snapshot_segment *add_whole(struct snapshot *s, unsigned device,
                                          uint64_t address)
{
    struct snapshot_segment *g = snapshot_add_segment(s);
    const struct snapshot_block block = {address, 30 * MIB, 30 * MIB,
                                         SNAPSHOT_ALLOCATED, 0};

    *g = (struct snapshot_segment){
        .device = device, .address = address, .bytes = 30 * MIB};
    add_blocks(g, &block, 1);
    return g;
}

/* GPU 0 has the error, after all that the other GPU does. */
static struct snapshot two_gpus(void)
{
    struct snapshot s = {.settings = strdup(""),
                         .torch_version = strdup("2.13.0")};

    add_whole(&s, 0, BASE);
    add_whole(&s, 1, BASE + GIB);
    add_at(&s, 0, ALLOC_SEGMENT_ALLOC, BASE, 30 * MIB, 1);
    add_at(&s, 0, ALLOC_ALLOC, BASE, 30 * MIB, 2);
    add_at(&s, 0, ALLOC_OOM, 0, 100 * GIB, 9);
    add_at(&s, 1, ALLOC_SEGMENT_ALLOC, BASE + GIB, 30 * MIB, 3);
    add_at(&s, 1, ALLOC_ALLOC, BASE + GIB, 30 * MIB, 4);
    return s;
}

TEST(several_gpus_are_played_in_the_order_of_time)
{
    struct snapshot s = two_gpus();
    struct snapshot_order order = {.snapshot = &s};
    struct replay_snapshot source;
    struct replay_config config = {.total_bytes = 80 * GIB};
    struct replay_plan plan;
    struct replay_result result;
    struct err err = {""};
    uint64_t last = 0;
    unsigned device;
    size_t place;

    for (const struct snapshot_event *e;
         (e = snapshot_order_next(&order, &device, &place)); last = e->time_us)
        CHECK(e->time_us > last && e == &s.traces[device].events[place]);
    CHECK_UINT(last, 9);
    snapshot_order_fini(&order);
    config.rules = alloc_rules_find("2.11", NULL, &err);
    alloc_conf_init(&config.conf);
    CHECK(!replay_snapshot_open(&source, &s, &config.conf, "s", &err));
    CHECK(!replay_mirror(&source.source, &config, &plan, &err));
    CHECK(!replay_run(&source.source, &config, &plan, NULL, &result, &err));
    CHECK(!result.fits && result.devices[0].oom_count == 1);
    CHECK(!result.devices[0].ooms[0].caught);
    replay_result_fini(&result);
    replay_plan_fini(&plan);
    replay_snapshot_close(&source);
    snapshot_fini(&s);
}

static void add_free(struct snapshot *s, uint64_t address, uint64_t bytes)
{
    add_event(s, ALLOC_FREE_REQUESTED, address, bytes);
    add_event(s, ALLOC_FREE_COMPLETED, address, bytes);
}

/* A driver that gives a later segment a higher address, which another does not:
 * of two free blocks of 24 MiB the one in the first segment is taken. */
static struct snapshot ascending(void)
{
    const uint64_t a = BASE, b = BASE + GIB;
    const struct snapshot_block in_a[] = {
        {a, 10 * MIB, 10 * MIB, SNAPSHOT_ALLOCATED, 0},
        {a + 10 * MIB, 34 * MIB, 34 * MIB, SNAPSHOT_ALLOCATED, 0},
    };
    const struct snapshot_block in_b[] = {
        {b, 24 * MIB, 24 * MIB, SNAPSHOT_ALLOCATED, 0},
    };
    struct snapshot s = {.settings = strdup(""),
                         .torch_version = strdup("2.11.0")};
    struct snapshot_segment *g = snapshot_add_segment(&s);

    *g = (struct snapshot_segment){.address = a, .bytes = 44 * MIB};
    add_blocks(g, in_a, 2);
    g = snapshot_add_segment(&s);
    *g = (struct snapshot_segment){.address = b, .bytes = 24 * MIB};
    add_blocks(g, in_b, 1);
    add_event(&s, ALLOC_SEGMENT_ALLOC, a, 44 * MIB);
    add_event(&s, ALLOC_ALLOC, a, 44 * MIB);
    add_free(&s, a, 44 * MIB);
    add_event(&s, ALLOC_ALLOC, a, 24 * MIB);
    add_event(&s, ALLOC_ALLOC, a + 24 * MIB, 20 * MIB);
    add_event(&s, ALLOC_SEGMENT_ALLOC, b, 24 * MIB);
    add_event(&s, ALLOC_ALLOC, b, 24 * MIB);
    add_free(&s, a, 24 * MIB);
    add_free(&s, b, 24 * MIB);
    add_event(&s, ALLOC_ALLOC, a, 10 * MIB);
    add_free(&s, a + 24 * MIB, 20 * MIB);
    add_event(&s, ALLOC_ALLOC, a + 10 * MIB, 34 * MIB);
    add_event(&s, ALLOC_ALLOC, b, 24 * MIB);
    return s;
}

TEST(replays_on_the_recorded_addresses)
{
    struct snapshot s = ascending();
    struct replay_snapshot source;
    struct replay_config config = {.total_bytes = 80 * GIB};
    struct replay_plan plan;
    struct replay_result result;
    struct err err = {""};

    config.rules = alloc_rules_find("2.11", NULL, &err);
    alloc_conf_init(&config.conf);
    CHECK(!replay_snapshot_open(&source, &s, &config.conf, "s", &err));
    CHECK(!replay_mirror(&source.source, &config, &plan, &err));
    CHECK_STR(plan.difference, "");
    CHECK(source.complete && plan.exact);
    CHECK(!replay_run(&source.source, &config, &plan, NULL, &result, &err));
    CHECK_UINT(result.devices[0].peak_reserved_bytes, 68 * MIB);
    replay_result_fini(&result);
    source.source.real_addresses = false;
    CHECK(!replay_run(&source.source, &config, &plan, NULL, &result, &err));
    CHECK_UINT(result.devices[0].peak_reserved_bytes, 92 * MIB);
    replay_result_fini(&result);
    replay_plan_fini(&plan);
    replay_snapshot_close(&source);
    snapshot_fini(&s);
}
