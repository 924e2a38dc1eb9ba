/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/attribution/attribute.h"

#include "check.h"
#include "memsim/attribution/peak.h"
#include "trace_build.h"

#define A UINT64_C(0x7f0000000000)

static uint64_t allocated;

static struct build start(void)
{
    struct build b = build_start();

    allocated = 0;
    BUILD(&b, PHASE, .phase = TRACE_PHASE_INIT);
    return b;
}

static void put_alloc(struct build *b, uint64_t address, uint64_t bytes,
                      uint64_t module, uint64_t phase)
{
    allocated += bytes;
    BUILD(b, BLOCK_ALLOC, .address = address, .requested_bytes = bytes,
          .block_bytes = bytes, .allocated_bytes = allocated,
          .reserved_bytes = 1 << 20, .module = module, .phase = phase);
}

static void put_free(struct build *b, uint64_t address, uint64_t bytes)
{
    allocated -= bytes;
    BUILD(b, BLOCK_FREE, .address = address, .block_bytes = bytes,
          .allocated_bytes = allocated, .reserved_bytes = 1 << 20);
}

/* Module ID at path NAME, whose id is the same number, below ROOT. */
static void put_module(struct build *b, uint64_t id, uint64_t root,
                       const char *name)
{
    BUILD_TEXT(b, NAME, name, .name = id);
    BUILD(b, MODULE, .module = id, .root = root, .name = id);
}

static struct attribution *attribution_of(struct build *b)
{
    struct trace_reader r;
    struct peak peak;
    struct err err = {""};

    if (trace_reader_open_memory(&r, b->data, b->bytes, "T", &err) ||
        peak_read(&peak, &r, &err)) {
        CHECK_FAIL("%s", err.text);
        exit(1);
    }
    trace_reader_close(&r);
    free(b->data);
    struct attribution *a = peak.cards[0].attribution;
    peak.cards[0].attribution = NULL;
    peak_fini(&peak);
    return a;
}

static const struct attribution_module *find(const struct attribution *a,
                                             const char *name)
{
    static const struct attribution_module none;

    for (size_t i = 0; i < a->module_count; i++)
        if (!strcmp(a->modules[i].name, name))
            return &a->modules[i];
    CHECK_FAIL("there is no module %s", name);
    return &none;
}

TEST(a_trace_without_phases_says_nothing)
{
    struct build b = build_start();

    allocated = 0;
    put_alloc(&b, A, 512, 0, 0);
    CHECK(!attribution_of(&b));
}

TEST(what_backward_finds_alive_is_an_activation)
{
    struct build b = start();

    put_module(&b, 1, 1, "Net");
    BUILD(&b, PHASE, .phase = TRACE_PHASE_FORWARD);
    put_alloc(&b, A, 1024, 1, TRACE_PHASE_FORWARD);
    put_alloc(&b, A + 4096, 512, 1, TRACE_PHASE_FORWARD); /* the peak */
    put_free(&b, A + 4096, 512);
    BUILD(&b, PHASE, .phase = TRACE_PHASE_BACKWARD);
    put_free(&b, A, 1024);
    struct attribution *a = attribution_of(&b);
    CHECK_UINT(a->at_peak.bytes[TRACE_CATEGORY_ACTIVATION], 1024);
    CHECK_UINT(a->at_peak.bytes[TRACE_CATEGORY_TEMPORARY], 512);
    CHECK_UINT(a->peak_phase, TRACE_PHASE_FORWARD);
    CHECK_UINT(a->phase_count, 3);
    CHECK_UINT(a->phases[1].end.bytes[TRACE_CATEGORY_ACTIVATION], 1024);
    attribution_destroy(a);
}

TEST(what_is_freed_behind_the_programs_end_was_kept)
{
    struct build b = start();

    put_alloc(&b, A, 1024, 0, TRACE_PHASE_INIT);
    put_alloc(&b, A + 4096, 512, 0, TRACE_PHASE_INIT);
    put_free(&b, A + 4096, 512);
    BUILD(&b, PHASE, .phase = TRACE_PHASE_INIT); /* once more: the end */
    put_free(&b, A, 1024);
    struct attribution *a = attribution_of(&b);
    CHECK_UINT(a->at_peak.bytes[TRACE_CATEGORY_OTHER], 1024);
    CHECK_UINT(a->at_peak.bytes[TRACE_CATEGORY_TEMPORARY], 512);
    CHECK_UINT(a->phase_count, 1);
    attribution_destroy(a);
}

TEST(a_claim_files_a_block_anew_as_of_its_birth)
{
    struct build b = start();

    put_module(&b, 1, 1, "Net");
    put_module(&b, 2, 1, "a.b");
    BUILD(&b, PHASE, .phase = TRACE_PHASE_BACKWARD);
    put_alloc(&b, A, 1024, 0, TRACE_PHASE_BACKWARD);
    BUILD(&b, PHASE, .phase = TRACE_PHASE_OTHER);
    BUILD(&b, STORAGE, .address = A, .module = 2,
          .category = TRACE_CATEGORY_GRADIENT);
    BUILD(&b, STORAGE, .address = A, .module = 1,
          .category = TRACE_CATEGORY_INPUT); /* not believed */
    struct attribution *a = attribution_of(&b);
    CHECK_UINT(a->at_peak.bytes[TRACE_CATEGORY_GRADIENT], 1024);
    CHECK_UINT(a->phases[1].end.bytes[TRACE_CATEGORY_GRADIENT], 1024);
    CHECK_UINT(a->phases[1].end.bytes[TRACE_CATEGORY_TEMPORARY], 0);
    CHECK_UINT(a->points[0].sums.bytes[TRACE_CATEGORY_GRADIENT], 1024);
    CHECK_UINT(find(a, "a.b")->self_bytes, 1024);
    CHECK_UINT(find(a, "Net")->self_bytes, 0);
    CHECK_UINT(find(a, "Net")->bytes_at_peak, 1024);
    attribution_destroy(a);
}

TEST(modules_are_told_at_the_end_of_each_phase)
{
    struct build b = start();

    put_module(&b, 1, 1, "Net");
    put_module(&b, 2, 1, "a");
    put_module(&b, 3, 1, "a.b");
    put_alloc(&b, A, 1024, 0, TRACE_PHASE_INIT); /* a.b's, as it turns out */
    BUILD(&b, PHASE, .phase = TRACE_PHASE_FORWARD);
    BUILD(&b, STORAGE, .address = A, .module = 3,
          .category = TRACE_CATEGORY_PARAMETER);
    put_alloc(&b, A + 4096, 512, 2, TRACE_PHASE_FORWARD);
    BUILD(&b, PHASE, .phase = TRACE_PHASE_BACKWARD);
    put_free(&b, A + 4096, 512);
    struct attribution *a = attribution_of(&b);
    static const uint64_t want[][3] = {
        {1024, 1024, 1024}, {1536, 1536, 1024}, {1024, 1024, 1024}};
    CHECK_UINT(a->phase_count, 3);
    for (size_t i = 0; i < a->phase_count; i++) {
        const uint64_t *held = a->phases[i].module_bytes;
        CHECK_UINT(held[find(a, "Net") - a->modules], want[i][0]);
        CHECK_UINT(held[find(a, "a") - a->modules], want[i][1]);
        CHECK_UINT(held[find(a, "a.b") - a->modules], want[i][2]);
    }
    attribution_destroy(a);
}

/* 900 steps of two phases; in step 700 forward leaves most behind. */
TEST(modules_are_told_of_the_first_phases_the_last_and_the_largest)
{
    struct build b = start();

    put_module(&b, 1, 1, "Net");
    for (unsigned i = 0; i < 900; i++) {
        uint64_t bytes = i == 700 ? 4096 : 512 + 512 * (i % 2);
        BUILD(&b, PHASE, .phase = TRACE_PHASE_FORWARD);
        put_alloc(&b, A, bytes, 1, TRACE_PHASE_FORWARD);
        BUILD(&b, PHASE, .phase = TRACE_PHASE_OPTIMIZER);
        put_free(&b, A, bytes);
    }
    struct attribution *a = attribution_of(&b);
    size_t told = 0, largest = 0;
    for (size_t i = 0; i < a->phase_count; i++) {
        if (!a->phases[i].module_bytes)
            continue;
        told++;
        if (a->phases[i].step == 700)
            largest += a->phases[i].module_bytes[0];
    }
    CHECK_UINT(told, 20 + 1 + 20);
    CHECK_UINT(largest, 4096);
    CHECK(a->phases[0].module_bytes && a->phases[19].module_bytes);
    CHECK(a->phases[a->phase_count - 1].module_bytes);
    CHECK_UINT(a->phases[a->phase_count - 1].step, 899);
    CHECK_UINT(a->phase_count + a->phases_dropped, 1801);
    attribution_destroy(a);
}

/* One step runs, the next is captured and launched three times. What is captured
 * is of the first launch. */
TEST(the_capture_of_a_graph_is_no_step_of_its_own)
{
    struct build b = start();
    static const uint64_t phases[] = {TRACE_PHASE_FORWARD, TRACE_PHASE_BACKWARD,
                                      TRACE_PHASE_OPTIMIZER, TRACE_PHASE_OTHER};

    for (int captured = 0; captured < 2; captured++) {
        if (captured)
            BUILD(&b, CAPTURE_JOIN, .stream = 7, .capture = 3);
        for (int i = 0; i < 4; i++) {
            BUILD(&b, PHASE, .phase = phases[i]);
            put_alloc(&b, A + 4096 * (4 * captured + i), 512, 0, phases[i]);
        }
        if (captured)
            BUILD(&b, CAPTURE_END, .capture = 3, .whole = 1);
    }
    for (int i = 0; i < 3; i++)
        BUILD(&b, GRAPH_LAUNCH, .stream = 7, .capture = 3);
    BUILD(&b, PHASE, .phase = TRACE_PHASE_FORWARD);
    struct attribution *a = attribution_of(&b);
    CHECK_UINT(a->phase_count, 10); /* init, twice four, a forward */
    for (int i = 1; i < 9; i++)
        CHECK_UINT(a->phases[i].step, i > 4);
    CHECK_UINT(a->phases[9].step, 4);
    attribution_destroy(a);
}

TEST(what_outlives_a_step_is_optimizer_state)
{
    struct build b = start();

    BUILD(&b, PHASE, .phase = TRACE_PHASE_OPTIMIZER);
    put_alloc(&b, A, 1024, 0, TRACE_PHASE_OPTIMIZER);
    put_alloc(&b, A + 4096, 512, 0, TRACE_PHASE_OPTIMIZER);
    put_free(&b, A + 4096, 512);
    BUILD(&b, PHASE, .phase = TRACE_PHASE_OTHER);
    BUILD(&b, PHASE, .phase = TRACE_PHASE_FORWARD);
    struct attribution *a = attribution_of(&b);
    CHECK_UINT(a->at_peak.bytes[TRACE_CATEGORY_OPTIMIZER], 1024);
    CHECK_UINT(a->at_peak.bytes[TRACE_CATEGORY_TEMPORARY], 512);
    CHECK_UINT(a->phases[a->phase_count - 1].step, 1);
    attribution_destroy(a);
}

TEST(a_model_that_was_called_in_part_first_is_one_tree)
{
    struct build b = start();

    put_module(&b, 1, 1, "Part"); /* a root, until its owner is called */
    put_module(&b, 2, 1, "x");
    put_alloc(&b, A, 1024, 2, TRACE_PHASE_FORWARD);
    put_module(&b, 3, 3, "Net");
    BUILD_TEXT(&b, NAME, "part", .name = 4);
    BUILD(&b, MODULE, .module = 1, .root = 3, .name = 4);
    BUILD_TEXT(&b, NAME, "part.x", .name = 5);
    BUILD(&b, MODULE, .module = 2, .root = 3, .name = 5);
    struct attribution *a = attribution_of(&b);
    CHECK_UINT(find(a, "part.x")->self_bytes, 1024);
    CHECK_UINT(find(a, "part")->bytes_at_peak, 1024);
    CHECK_UINT(find(a, "Net")->bytes_at_peak, 1024);
    CHECK_UINT(find(a, "Net")->own_peak_bytes, 1024);
    attribution_destroy(a);
}

TEST(segments_are_filled_with_blocks_and_gaps)
{
    struct build b = start();

    BUILD(&b, SEGMENT_ALLOC, .address = A, .bytes = 4096);
    put_alloc(&b, A + 512, 1024, 0, TRACE_PHASE_INIT);
    put_alloc(&b, A + 2048, 2048, 0, TRACE_PHASE_INIT);
    put_free(&b, A + 2048, 2048);
    BUILD(&b, SEGMENT_FREE, .address = A, .bytes = 4096); /* after the peak */
    struct attribution *a = attribution_of(&b);
    CHECK_UINT(a->segment_count, 1);
    CHECK_UINT(a->segments[0].count, 4);
    CHECK(!a->blocks[0].allocated && !a->blocks[2].allocated);
    CHECK_UINT(a->blocks[0].bytes, 512);
    CHECK_UINT(a->blocks[1].bytes, 1024);
    CHECK_UINT(a->blocks[2].bytes, 512);
    CHECK_UINT(a->blocks[3].bytes, 2048);
    attribution_destroy(a);
}

TEST(a_long_run_keeps_its_peak_and_few_points)
{
    struct build b = start();

    for (uint64_t i = 0; i < 20000; i++) {
        uint64_t bytes = 512 * (1 + i * 7919 % 1000);
        if (i == 12345)
            bytes = 1 << 20;
        put_alloc(&b, A, bytes, 0, TRACE_PHASE_FORWARD);
        if (i % 2)
            BUILD(&b, PHASE, .phase = TRACE_PHASE_BACKWARD);
        put_free(&b, A, bytes);
        BUILD(&b, PHASE, .phase = TRACE_PHASE_FORWARD);
    }
    struct attribution *a = attribution_of(&b);
    uint64_t highest = 0;
    for (size_t i = 0; i < a->point_count; i++) {
        uint64_t sum = 0;
        for (size_t c = 0; c < TRACE_CATEGORY_COUNT; c++) {
            CHECK(a->points[i].sums.bytes[c] <= 1 << 20);
            sum += a->points[i].sums.bytes[c];
        }
        highest = sum > highest ? sum : highest;
    }
    CHECK_UINT(highest, 1 << 20);
    CHECK(a->point_count <= 2000);
    CHECK(a->point_bytes > 0);
    CHECK(a->phase_count <= 1000);
    CHECK(a->phases_dropped > 0);
    attribution_destroy(a);
}
