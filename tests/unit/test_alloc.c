/* SPDX-License-Identifier: Apache-2.0
 * The allocator's rules, one by one, then random calls with all books checked
 * after each. That real PyTorch does the same is for tests/torch to show. */
#include "common/base/units.h"
#include "memsim/alloc/alloc.h"
#include "check.h"

#define BASE UINT64_C(0x100000000)

/* A device that hands out addresses upwards and never twice, and a log of what
 * happened: "A 0x0 2.0" has offsets from BASE in MiB. */
static struct rig {
    struct alloc *a;
    uint64_t next, used, capacity;
    uint64_t tickets, done; /* tickets below `done` are done */
    char log[4096];
} rig;

static const struct alloc_pool_id none = {0, 0}, mine = {1, 0};

static uint64_t rig_malloc(void *context, uint64_t bytes)
{
    struct rig *r = context;
    uint64_t address = r->next;

    if (r->used + bytes > r->capacity)
        return 0;
    r->used += bytes;
    r->next += bytes;
    return address;
}

static void rig_free(void *context, uint64_t address, uint64_t bytes)
{
    struct rig *r = context;

    (void)address;
    r->used -= bytes;
}

static uint64_t rig_reserve(void *context, uint64_t bytes)
{
    struct rig *r = context;

    r->next += bytes;
    return r->next - bytes;
}

static void rig_unreserve(void *context, uint64_t address, uint64_t bytes)
{
    (void)context;
    (void)address;
    (void)bytes;
}

static bool rig_map(void *context, uint64_t address, uint64_t bytes)
{
    struct rig *r = context;

    (void)address;
    if (r->used + bytes > r->capacity)
        return false;
    r->used += bytes;
    return true;
}

static uint64_t rig_free_bytes(void *context)
{
    const struct rig *r = context;

    return r->capacity - r->used;
}

static uint64_t rig_event_record(void *context, const struct alloc_block *b,
                                 uint64_t stream)
{
    struct rig *r = context;

    (void)b;
    (void)stream;
    return r->tickets++;
}

static bool rig_event_query(void *context, uint64_t ticket)
{
    const struct rig *r = context;

    return ticket < r->done;
}

static void rig_event_wait(void *context, uint64_t ticket)
{
    (void)context;
    (void)ticket;
}

static const char letters[ALLOC_ACTIONS] = "ARCSFMUsO/+r!";

static void rig_listen(void *context, const struct alloc_event *e)
{
    struct rig *r = context;
    size_t n = strlen(r->log);

    if (n > sizeof r->log - 100)
        return;
    if (e->action == ALLOC_OOM || e->action == ALLOC_RETRY ||
        e->action == ALLOC_FLUSH)
        snprintf(r->log + n, 100, "%c ", letters[e->action]);
    else
        snprintf(r->log + n, 100, "%c%g:%g ", letters[e->action],
                 (double)(int64_t)(e->address - BASE) / MIB,
                 (double)e->bytes / MIB);
}

static void setup_rules(const char *version, const char *conf,
                        uint64_t capacity)
{
    struct err err = {""};
    struct alloc_config c = {
        .total_bytes = capacity,
        .driver = {&rig, &rig, rig_malloc, rig_free, rig_reserve, rig_unreserve,
                   rig_map, rig_free, rig_free_bytes, rig_event_record,
                   rig_event_query, rig_event_wait},
        .listener = rig_listen,
        .listener_context = &rig,
    };

    alloc_destroy(rig.a);
    rig = (struct rig){.next = BASE, .capacity = capacity};
    c.rules = alloc_rules_find(version, NULL, &err);
    alloc_conf_init(&c.conf);
    if (alloc_conf_parse(&c.conf, conf, c.rules, &err))
        CHECK_FAIL("%s", err.text);
    rig.a = alloc_create(&c);
}

static void setup(const char *conf, uint64_t capacity)
{
    setup_rules("2.11.0", conf, capacity);
}

static struct alloc_block *get(double mib)
{
    return alloc_malloc(rig.a, (uint64_t)(mib * MIB), 0);
}

static void put(struct alloc_block *b)
{
    alloc_free(rig.a, b);
}

/* Compares the log since the last call. */
#define EXPECT(text)                                                           \
    do {                                                                       \
        CHECK_STR(rig.log, text);                                              \
        CHECK(alloc_check(rig.a));                                             \
        rig.log[0] = '\0';                                                     \
    } while (0)

TEST(segments_are_2_mib_20_mib_or_rounded_to_2_mib)
{
    setup("", GIB);
    get(0.25);
    EXPECT("S0:2 /0.25:1.75 A0:0.25 ");
    get(1);
    EXPECT("/1.25:0.75 A0.25:1 ");
    get(1.5);
    EXPECT("S2:20 /3.5:18.5 A2:1.5 ");
    get(11);
    EXPECT("/14.5:7.5 A3.5:11 ");
    get(10);
    EXPECT("S22:10 A22:10 ");
    get(11);
    EXPECT("S32:12 A32:11 ");
}

TEST(a_large_remainder_of_a_mebibyte_is_not_split_off)
{
    setup("", GIB);
    struct alloc_block *b = get(19);
    EXPECT("S0:20 A0:19 ");
    CHECK_UINT(alloc_block_bytes(b), 20 * MIB);
    CHECK_UINT(alloc_block_requested_bytes(b), 19 * MIB);
    put(b);
    EXPECT("R0:19 C0:19 ");
    get(18.5);
    EXPECT("/18.5:1.5 A0:18.5 ");
}

TEST(the_best_fit_is_the_smallest_then_the_lowest)
{
    setup("", GIB);
    struct alloc_block *a = get(12), *b = get(14), *c = get(12);
    rig.log[0] = '\0';
    put(c);
    put(b);
    put(a);
    EXPECT("R26:12 C26:12 R12:14 C12:14 R0:12 C0:12 ");
    get(12);
    get(12);
    get(12);
    EXPECT("A0:12 A26:12 /24:2 A12:12 ");
}

TEST(neighbours_merge)
{
    setup("", GIB);
    struct alloc_block *a = get(4), *b = get(4), *c = get(4);
    rig.log[0] = '\0';
    put(a);
    put(c);
    EXPECT("R0:4 C0:4 R8:4 C8:4 +8:12 ");
    put(b);
    EXPECT("R4:4 C4:4 +0:20 ");
    CHECK_UINT((uint64_t)alloc_stats(rig.a)->inactive_split[ALLOC_ALL].current,
               0);
}

TEST(streams_do_not_share)
{
    setup("", GIB);
    put(get(12));
    rig.log[0] = '\0';
    alloc_malloc(rig.a, 12 * MIB, 7);
    EXPECT("S12:12 A12:12 ");
    get(12);
    EXPECT("A0:12 ");
}

TEST(a_used_block_waits_for_the_stream)
{
    setup("", GIB);
    struct alloc_block *b = get(12);
    alloc_record_stream(rig.a, b, 0); /* its own: no wait */
    alloc_record_stream(rig.a, b, 5);
    alloc_record_stream(rig.a, b, 5);
    alloc_record_stream(rig.a, b, 6);
    rig.log[0] = '\0';
    put(b);
    EXPECT("R0:12 ");
    CHECK_UINT(rig.tickets, 2);
    rig.done = 1;
    get(12);
    EXPECT("S12:12 A12:12 ");
    rig.done = 2;
    get(12);
    EXPECT("C0:12 A0:12 ");
}

TEST(a_refusal_flushes_and_retries)
{
    setup("", 40 * MIB);
    struct alloc_block *a = get(20), *b = get(20);
    rig.log[0] = '\0';
    put(a);
    get(30);
    EXPECT("R0:20 C0:20 ! F0:20 r O ");
    put(b);
    get(30);
    EXPECT("R20:20 C20:20 ! F20:20 r S40:30 A40:30 ");
    CHECK_UINT((uint64_t)alloc_stats(rig.a)->num_alloc_retries, 2);
    CHECK_UINT((uint64_t)alloc_stats(rig.a)->num_ooms, 1);
}

TEST(a_flush_waits_for_streams)
{
    setup("", 20 * MIB);
    struct alloc_block *a = get(20);
    alloc_record_stream(rig.a, a, 5);
    put(a);
    rig.log[0] = '\0';
    get(10);
    EXPECT("! C0:20 F0:20 r S20:10 A20:10 ");
}

TEST(oversize_blocks_serve_oversize_requests_only)
{
    setup("max_split_size_mb:50", GIB);
    struct alloc_block *a = get(100);
    put(a);
    rig.log[0] = '\0';
    get(40);
    EXPECT("S100:40 A100:40 ");
    get(60);
    EXPECT("S140:60 A140:60 ");
    get(80.5);
    EXPECT("A0:80.5 ");
    CHECK_UINT((uint64_t)alloc_stats(rig.a)->oversize_segments.current, 2);
    CHECK_UINT((uint64_t)alloc_stats(rig.a)->oversize_allocations.current, 2);
}

TEST(oversize_blocks_go_before_everything_else)
{
    setup("max_split_size_mb:50", 200 * MIB);
    struct alloc_block *a = get(60), *b = get(80), *c = get(20);
    put(a);
    put(b);
    put(c);
    rig.log[0] = '\0';
    get(58);
    EXPECT("A0:58 ");
    get(110);
    EXPECT("F60:80 ! F140:20 r S160:110 A160:110 ");
}

TEST(garbage_is_collected_by_age)
{
    setup("garbage_collection_threshold:0.5,per_process_memory_fraction:0.99",
          200 * MIB);
    struct alloc_block *old = get(40), *young = get(30);
    put(old);
    alloc_free(rig.a, alloc_malloc(rig.a, 2 * MIB, 9));
    alloc_free(rig.a, alloc_malloc(rig.a, 2 * MIB, 9));
    put(young);
    rig.log[0] = '\0';
    get(48); /* 90 MiB are held, the threshold is 99: not yet */
    EXPECT("S90:48 A90:48 ");
    get(60); /* 138 MiB are: the blocks of average age go, and suffice */
    EXPECT("F0:40 S138:60 A138:60 ");
}

TEST(old_versions_collect_at_fraction_1)
{
    const char *versions[] = {"2.9", "2.10"};
    const char *want[] = {"F0:60 S210:20 /212:18 A210:2 ",
                          "S210:20 /212:18 A210:2 "};

    for (int i = 0; i < 2; i++) {
        setup_rules(versions[i], "garbage_collection_threshold:0.5", 400 * MIB);
        alloc_set_memory_fraction(rig.a, 1.0);
        put(get(60));
        alloc_malloc(rig.a, 150 * MIB, 3);
        rig.log[0] = '\0';
        alloc_malloc(rig.a, 2 * MIB, 9);
        EXPECT(want[i]);
    }
}

TEST(a_fraction_limits)
{
    setup("", 100 * MIB);
    alloc_set_memory_fraction(rig.a, 0.5);
    get(40);
    rig.log[0] = '\0';
    get(20);
    EXPECT("! r O ");
    CHECK(alloc_malloc(rig.a, UINT64_C(1) << 60, 0) == NULL);
    EXPECT("");
}

TEST(expandable_segments_grow_and_shrink)
{
    setup("expandable_segments:True", 100 * MIB);
    struct alloc_block *a = get(30);
    EXPECT("M0:40 /30:10 A0:30 ");
    struct alloc_block *b = get(25);
    EXPECT("M40:20 /55:5 A30:25 ");
    put(a);
    EXPECT("R0:30 C0:30 ");
    alloc_empty_cache(rig.a, none);
    EXPECT("! U0:20 ");
    get(50);
    EXPECT("M60:60 /105:15 A55:50 ");
    get(25);
    EXPECT("! r O ");
    put(b);
    EXPECT("R30:25 C30:25 +20:35 ");
    alloc_empty_cache(rig.a, none);
    EXPECT("! U20:20 ");
    get(16);
    EXPECT("M0:20 /16:4 A0:16 ");
}

TEST(small_expandable_segments_have_2_mib_pages)
{
    setup("expandable_segments:True", 100 * MIB);
    struct alloc_block *a = get(0.5);
    EXPECT("M0:2 /0.5:1.5 A0:0.5 ");
    put(a);
    alloc_empty_cache(rig.a, none);
    EXPECT("R0:0.5 C0:0.5 +0:2 ! U0:2 ");
}

TEST(expandable_blocks_split_to_512_bytes)
{
    setup("expandable_segments:True", 100 * MIB);
    get(19.5);
    EXPECT("M0:20 /19.5:0.5 A0:19.5 ");
}

TEST(a_private_pool_keeps_its_segments)
{
    setup("", GIB);
    CHECK(alloc_pool_begin(rig.a, mine, NULL, NULL) == 0);
    CHECK(alloc_pool_begin(rig.a, mine, NULL, NULL) == -1);
    struct alloc_block *b = get(12);
    put(b);
    CHECK(alloc_pool_end(rig.a, mine) == 0);
    CHECK(alloc_pool_end(rig.a, mine) == -1);
    rig.log[0] = '\0';
    get(12);
    EXPECT("S12:12 A12:12 ");
    alloc_empty_cache(rig.a, none);
    EXPECT("! ");
    CHECK(alloc_pool_release(rig.a, mine) == 0);
    alloc_empty_cache(rig.a, none);
    EXPECT("! F0:12 ");
    CHECK(alloc_pool_release(rig.a, mine) == -1);
}

static bool is_stream_5(void *context, uint64_t stream)
{
    (void)context;
    return stream == 5;
}

TEST(captures_take_the_streams_they_select_and_defer_frees)
{
    setup("", GIB);
    struct alloc_block *b = get(12);
    alloc_record_stream(rig.a, b, 5);
    alloc_pool_begin(rig.a, mine, is_stream_5, NULL);
    put(b);
    rig.done = 100;
    rig.log[0] = '\0';
    get(12);
    EXPECT("S12:12 A12:12 ");
    alloc_pool_end(rig.a, mine);
    get(12);
    EXPECT("C0:12 A0:12 ");
}

TEST(a_fallback_pool_serves_before_the_cache_is_released)
{
    const char *versions[] = {"2.11", "2.10", "2.7"};
    const char *want[] = {"A0:12 ", "! r A0:12 ", "! r O "};

    for (int i = 0; i < 3; i++) {
        setup_rules(versions[i], "", 20 * MIB);
        alloc_pool_create(rig.a, mine, ALLOC_POOL_USE_ON_OOM);
        alloc_pool_begin(rig.a, mine, NULL, NULL);
        put(get(12));
        alloc_pool_end(rig.a, mine);
        rig.log[0] = '\0';
        get(12);
        EXPECT(want[i]);
    }
}

/* The order that a ska::flat_hash_set of c10 with those ids has. */
TEST(private_pools_go_in_the_order_of_a_hash_table)
{
    setup("", GIB);
    for (uint64_t i = 1; i <= 5; i++) {
        alloc_pool_begin(rig.a, (struct alloc_pool_id){0, i}, NULL, NULL);
        put(get(12));
        alloc_pool_end(rig.a, (struct alloc_pool_id){0, i});
        alloc_pool_release(rig.a, (struct alloc_pool_id){0, i});
    }
    rig.log[0] = '\0';
    alloc_empty_cache(rig.a, (struct alloc_pool_id){0, 3});
    alloc_pool_begin(rig.a, (struct alloc_pool_id){21, 0}, NULL, NULL);
    put(get(12));
    alloc_pool_end(rig.a, (struct alloc_pool_id){21, 0});
    alloc_pool_release(rig.a, (struct alloc_pool_id){21, 0});
    EXPECT("F24:12 S60:12 A60:12 R60:12 C60:12 ");
    alloc_empty_cache(rig.a, none);
    EXPECT("! F48:12 F12:12 F36:12 F0:12 F60:12 ");
}

TEST(adopts_what_was_there)
{
    setup("", GIB);
    struct alloc_block_info g = {.address = 64 * MIB, .bytes = 20 * MIB};
    CHECK(!alloc_adopt_segment(rig.a, &g));
    g.address = 80 * MIB;
    CHECK(alloc_adopt_segment(rig.a, &g) == -1);
    struct alloc_block *b =
        alloc_adopt_block(rig.a, 66 * MIB, 4 * MIB, 4 * MIB - 5);
    CHECK(b != NULL);
    CHECK(alloc_adopt_block(rig.a, 69 * MIB, 4 * MIB, 5) == NULL);
    CHECK(alloc_adopt_block(rig.a, 80 * MIB, 5 * MIB, 5) == NULL);
    CHECK(alloc_adopt_block(rig.a, 80 * MIB, 4 * MIB, 5) != NULL);
    alloc_adopt_end(rig.a);
    CHECK(alloc_check(rig.a));
    CHECK_UINT(alloc_reserved_bytes(rig.a), 20 * MIB);
    CHECK_UINT(
        (uint64_t)alloc_stats(rig.a)->inactive_split_bytes[ALLOC_ALL].peak,
        12 * MIB);
    put(b);
    CHECK(alloc_check(rig.a));
}

static void count_bytes(void *context, const struct alloc_block_info *b)
{
    uint64_t *sums = context;

    sums[b->allocated] += b->bytes;
    CHECK(b->address >= b->segment &&
          b->address + b->bytes <= b->segment + b->segment_bytes);
}

/* Random calls: every configuration, several streams, small capacities. */
static void torture(const char *version, const char *conf, unsigned seed)
{
    struct alloc_block *blocks[64] = {0};
    uint64_t sizes[] = {1,        512,      3000,     200 * KIB,
                        MIB,      MIB + 1,  3 * MIB,  9 * MIB,
                        10 * MIB, 19 * MIB, 33 * MIB, 70 * MIB};

    setup_rules(version, conf, 300 * MIB);
    for (int step = 0; step < 3000 && !check_failures; step++) {
        seed = seed * 1664525 + 1013904223;
        unsigned slot = (seed >> 8) % 64, what = (seed >> 16) % 40;
        uint64_t bytes = sizes[(seed >> 22) % 12] + (seed >> 28) * 600;

        rig.done = rig.tickets - (rig.tickets && what % 3 == 0);
        rig.log[0] = '\0';
        if (what == 0)
            alloc_empty_cache(rig.a, none);
        else if (what == 1)
            alloc_set_memory_fraction(rig.a, (seed >> 30) ? 1.0 : 0.7);
        else if (what == 2 && alloc_pool_begin(rig.a, mine, is_stream_5, NULL))
            alloc_pool_end(rig.a, mine);
        else if (blocks[slot] && what < 10)
            alloc_record_stream(rig.a, blocks[slot], what % 4);
        else if (blocks[slot])
            alloc_free(rig.a, blocks[slot]), blocks[slot] = NULL;
        else
            blocks[slot] = alloc_malloc(rig.a, bytes, what % 6);
        CHECK(alloc_check(rig.a));
        CHECK_UINT(alloc_reserved_bytes(rig.a), rig.used);
    }
    uint64_t sums[2] = {0, 0};
    alloc_walk(rig.a, count_bytes, sums);
    CHECK_UINT(sums[0] + sums[1], rig.used);
    CHECK_UINT(
        sums[1],
        (uint64_t)alloc_stats(rig.a)->allocated_bytes[ALLOC_ALL].current);
}

TEST(random_calls_keep_the_books)
{
    const char *confs[] = {
        "",
        "expandable_segments:True",
        "max_split_size_mb:25",
        "garbage_collection_threshold:0.4",
        "roundup_power2_divisions:4",
        "max_split_size_mb:21,garbage_collection_threshold:0.6,"
        "roundup_power2_divisions:[1:2,8:8,>:4]",
        "expandable_segments:True,max_split_size_mb:30",
    };

    for (unsigned i = 0; i < sizeof confs / sizeof *confs; i++)
        for (unsigned seed = 1; seed <= 4; seed++) {
            torture("2.11", confs[i], seed);
            torture("2.5.1", confs[i], seed + 100);
        }
}
