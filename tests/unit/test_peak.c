/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/attribution/peak.h"

#include "check.h"
#include "memsim/result/result.h"
#include "trace_build.h"

#define A UINT64_C(0x7f0000000000)

/* Torch's own counters, kept while a trace is made. */
static uint64_t allocated, reserved;

static void put_alloc(struct build *b, uint64_t device, uint64_t address,
                      uint64_t bytes)
{
    allocated += bytes;
    BUILD(b, BLOCK_ALLOC, .device = device, .address = address,
          .requested_bytes = bytes, .block_bytes = bytes,
          .allocated_bytes = allocated, .reserved_bytes = reserved);
}

static void put_free(struct build *b, uint64_t device, uint64_t address,
                     uint64_t bytes)
{
    allocated -= bytes;
    BUILD(b, BLOCK_FREE, .device = device, .address = address,
          .block_bytes = bytes, .allocated_bytes = allocated,
          .reserved_bytes = reserved);
}

static void put_launch(struct build *b, uint64_t name, uint64_t device)
{
    BUILD(b, LAUNCH, .name = name, .device = device);
}

static struct peak peak_of(struct build *b)
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
    return peak;
}

static void check_thing(const struct peak_card *card, size_t i,
                        const char *label, uint64_t bytes, uint64_t count)
{
    if (i >= card->thing_count) {
        CHECK_FAIL("there are only %zu things", card->thing_count);
        return;
    }
    CHECK_STR(card->things[i].label, label);
    CHECK_UINT(card->things[i].bytes, bytes);
    CHECK_UINT(card->things[i].count, count);
}

TEST(groups_what_was_live_at_the_peak)
{
    struct build b = build_start();

    reserved = 10000;
    BUILD_TEXT(&b, NAME, "k1", .name = 1);
    BUILD_TEXT(&b, NAME, "k2", .name = 2);
    put_alloc(&b, 0, A, 1000);
    put_launch(&b, 1, 0);
    put_alloc(&b, 0, A + 1000, 1000);
    put_launch(&b, 1, 0);
    put_launch(&b, 2, 0); /* not the first to use it */
    put_free(&b, 0, A, 1000);
    put_alloc(&b, 0, A, 512);
    put_alloc(&b, 0, A + 2000, 3000); /* the peak: 4512 */
    put_launch(&b, 2, 0);             /* names both, after the peak */
    put_free(&b, 0, A + 2000, 3000);
    put_alloc(&b, 0, A + 2000, 2000); /* after the peak, of no account */
    put_launch(&b, 1, 0);
    struct peak peak = peak_of(&b);
    const struct peak_card *card = &peak.cards[0];
    CHECK(card->torch);
    CHECK_UINT(card->allocated_bytes, 4512);
    CHECK_UINT(card->reserved_bytes, 10000);
    CHECK_UINT(card->thing_count, 3);
    check_thing(card, 0, "k2", 3000, 1);
    check_thing(card, 1, "k1", 1000, 1);
    check_thing(card, 2, "k2", 512, 1);
    CHECK_UINT(peak.cards[1].thing_count, 0);
    peak_fini(&peak);
}

TEST(a_label_needs_the_same_thread_and_device)
{
    struct build b = build_start();

    BUILD_TEXT(&b, NAME, "k", .name = 1);
    put_alloc(&b, 0, A, 512);
    b.thread = 1;
    put_launch(&b, 1, 0);
    b.thread = 0;
    put_launch(&b, 1, 1);
    struct peak peak = peak_of(&b);
    check_thing(&peak.cards[0], 0, "not used yet", 512, 1);
    peak_fini(&peak);
}

/* A workspace of 512 whose size is another GPU's: the real one has 0 to MOST. */
static void put_convolution(struct build *b, uint64_t most, uint64_t gpu)
{
    put_alloc(b, 0, A + 4096, 512);
    BUILD(b, CONVOLUTION, .workspace_bytes = 500, .workspace_most = most,
          .workspace_gpu = gpu);
    put_free(b, 0, A + 4096, 512);
}

TEST(borrowed_workspaces_bound_the_peak)
{
    struct build b = build_start();
    char text[128];

    allocated = 0;
    put_alloc(&b, 0, A, 1000);
    put_convolution(&b, 2000, 70);
    struct peak peak = peak_of(&b);
    CHECK_UINT(peak.cards[0].allocated_bytes, 1512);
    CHECK_UINT(peak.cards[0].range.least_bytes, 1000);
    CHECK_UINT(peak.cards[0].range.most_bytes, 3000);
    CHECK(workspace_range_matters(&peak.cards[0].range));
    CHECK_STR(workspace_range_source(&peak.cards[0].range, text, sizeof text),
              "measured on a V100 in 2021");
    peak_fini(&peak);
}

/* A size of 512 that is from 100 to 700 on the GPU, as long as its block lives:
 * the next block of that size of the same thread and GPU. */
TEST(a_size_that_is_not_certain_counts_while_its_block_lives)
{
    struct build b = build_start();

    allocated = 0;
    BUILD(&b, SIZE_RANGE, .bytes = 512, .least_bytes = 100, .most_bytes = 700);
    put_alloc(&b, 0, A, 1000);
    put_alloc(&b, 0, A + 4096, 512);
    put_alloc(&b, 0, A + 8192, 512);
    put_convolution(&b, 500, 90);
    struct peak peak = peak_of(&b);
    CHECK_UINT(peak.cards[0].range.least_bytes, 1000 + 100 + 512 + 512);
    CHECK_UINT(peak.cards[0].range.most_bytes, 1000 + 700 + 512 + 512);
    peak_fini(&peak);

    b = build_start();
    allocated = 0;
    BUILD(&b, SIZE_RANGE, .bytes = 512, .least_bytes = 100, .most_bytes = 700);
    put_alloc(&b, 0, A, 512);
    put_free(&b, 0, A, 512);
    put_alloc(&b, 0, A, 2000);
    peak = peak_of(&b);
    CHECK_UINT(peak.cards[0].range.least_bytes, 2000);
    CHECK_UINT(peak.cards[0].range.most_bytes, 2000);
    peak_fini(&peak);
}

TEST(a_refusal_that_a_segment_follows_is_a_retry)
{
    struct build b = build_start();

    for (int i = 0; i < 2; i++) {
        BUILD(&b, DEVICE_REFUSE, .bytes = 2 << 20);
        BUILD(&b, SEGMENT_FREE, .address = A, .bytes = 2 << 20);
        BUILD(&b, SEGMENT_ALLOC, .address = A, .bytes = 2 << 20);
    }
    BUILD(&b, DEVICE_REFUSE, .bytes = 2 << 20);
    BUILD(&b, OOM, .requested_bytes = 2 << 20);
    BUILD(&b, SEGMENT_ALLOC, .address = A, .bytes = 2 << 20);
    struct peak peak = peak_of(&b);
    CHECK_UINT(peak.cards[0].retries, 2);
    CHECK_UINT(peak.cards[1].retries, 0);
    peak_fini(&peak);
}

TEST(own_workspaces_do_not)
{
    struct build b = build_start();

    allocated = 0;
    put_alloc(&b, 0, A, 1000);
    put_convolution(&b, 500, 90);
    struct peak peak = peak_of(&b);
    CHECK_UINT(peak.cards[0].range.least_bytes, 1512);
    CHECK_UINT(peak.cards[0].range.most_bytes, 1512);
    CHECK(!workspace_range_matters(&peak.cards[0].range));
    peak_fini(&peak);
}

/* Elsewhere the peak may be so high that no workspace changes it. */
TEST(a_peak_without_convolutions_is_certain)
{
    struct build b = build_start();

    allocated = 0;
    put_alloc(&b, 0, A, 1000);
    put_convolution(&b, 2000, 0);
    put_alloc(&b, 0, A + 8192, 9000);
    put_launch(&b, 0, 0);
    struct peak peak = peak_of(&b);
    CHECK_UINT(peak.cards[0].range.least_bytes, 10000);
    CHECK_UINT(peak.cards[0].range.most_bytes, 10000);
    peak_fini(&peak);
}

TEST(a_lent_block_is_a_workspace)
{
    struct build b = build_start();
    uint64_t f[19] = {[3] = 768, [4] = 8192, [5] = 3072, [6] = 1, [17] = 4096};

    put_alloc(&b, 0, A, 9000);
    put_alloc(&b, 0, A + 9000, 4096);
    build_put_text(&b, TRACE_GEMM, NULL, f, 19);
    struct peak peak = peak_of(&b);
    check_thing(&peak.cards[0], 0, "matmul 8192x768 over 3072", 9000, 1);
    check_thing(&peak.cards[0], 1, "cuBLAS workspace", 4096, 1);
    peak_fini(&peak);
}

TEST(lending_a_workspace_is_no_work)
{
    struct build b = build_start();

    BUILD_TEXT(&b, NAME, "cublasSetWorkspace", .name = 1);
    BUILD_TEXT(&b, NAME, "k", .name = 2);
    put_alloc(&b, 0, A, 9000);
    put_alloc(&b, 0, A + 9000, 4096);
    BUILD(&b, LIBRARY_CALL, .name = 1, .workspace_bytes = 4096, .a = A + 9000);
    put_launch(&b, 2, 0);
    struct peak peak = peak_of(&b);
    check_thing(&peak.cards[0], 0, "k", 9000, 1);
    check_thing(&peak.cards[0], 1, "cuBLAS workspace", 4096, 1);
    peak_fini(&peak);
}

TEST(cards_differ_from_the_processs_own_numbers)
{
    struct build b = build_start();

    BUILD_TEXT(&b, DEVICE, "h100", .capacity_bytes = 80, .context_bytes = 1,
               .card = 5);
    put_alloc(&b, 0, A, 512);
    struct peak peak = peak_of(&b);
    CHECK_UINT(peak.cards[0].thing_count, 0);
    check_thing(&peak.cards[5], 0, "not used yet", 512, 1);
    peak_fini(&peak);
}

TEST(a_program_without_torch_is_told_by_its_cudamallocs)
{
    struct build b = build_start();

    BUILD(&b, DEVICE_MALLOC, .address = A, .bytes = 4096);
    BUILD(&b, SET, .address = A, .bytes = 4096);
    BUILD(&b, DEVICE_MALLOC, .address = 2 * A, .bytes = 8192);
    BUILD(&b, COPY, .direction = TRACE_HOST_TO_DEVICE, .destination = 2 * A,
          .source = 1, .bytes = 8192, .blocking = 1);
    BUILD(&b, DEVICE_FREE, .address = A, .bytes = 4096);
    struct peak peak = peak_of(&b);
    CHECK(!peak.cards[0].torch);
    CHECK_UINT(peak.cards[0].allocated_bytes, 12288);
    check_thing(&peak.cards[0], 0, "copied from the host (.to, .cuda)", 8192,
                1);
    check_thing(&peak.cards[0], 1, "cleared (memset)", 4096, 1);
    peak_fini(&peak);
}

TEST(tells_what_is_not_blocks)
{
    struct build b = build_start();
    struct result_device d = {
        .context_bytes = 500, .libraries_bytes = 50, .others_bytes = 7};

    allocated = 0;
    reserved = 10000;
    BUILD(&b, DEVICE_MALLOC, .address = A, .bytes = 10000);
    BUILD(&b, DEVICE_MALLOC, .address = 2 * A, .bytes = 2500);
    put_alloc(&b, 0, A, 4000);
    struct peak peak = peak_of(&b);
    result_device_take(&d, &peak.cards[0]);
    CHECK_UINT(d.thing_count, 6);
    CHECK_STR(d.things[0].label, "cached by PyTorch, not in use");
    CHECK_UINT(d.things[0].bytes, 6000);
    CHECK_UINT(d.things[0].count, 0);
    CHECK_UINT(d.things[1].bytes, 4000);
    CHECK_STR(d.things[2].label, "cudaMalloc outside PyTorch");
    CHECK_UINT(d.things[2].bytes, 2500);
    CHECK_STR(d.things[3].label, "CUDA context");
    CHECK_STR(d.things[4].label, "CUDA libraries");
    CHECK_STR(d.things[5].label, "other processes on the GPU");
    CHECK_UINT(d.things[5].bytes, 7);
    free(d.things);
    peak_fini(&peak);
}

TEST(lists_the_largest_and_sums_up_the_rest)
{
    struct build b = build_start();
    struct result_device d = {0};
    uint64_t sum = 0;

    for (uint64_t i = 1; i <= 200; i++)
        put_alloc(&b, 0, A + (i << 20), i * 512);
    struct peak peak = peak_of(&b);
    result_device_take(&d, &peak.cards[0]);
    for (size_t i = 0; i < d.thing_count; i++)
        sum += d.things[i].bytes;
    CHECK_UINT(peak.cards[0].thing_count, 200);
    CHECK(d.thing_count < 70);
    CHECK_STR(d.things[0].label, "everything smaller");
    CHECK_UINT(sum, 512 * 200 * 201 / 2);
    free(d.things);
    peak_fini(&peak);
}

#define SLOTS 40

/* What a simple-minded reading says: every new peak copies all that lives. */
static struct naive {
    struct {
        uint64_t bytes;
        int name;     /* 0: nothing used it yet */
        bool at_peak; /* of the last peak, live or freed since */
        bool live;
        uint64_t slot;
        unsigned thread;
    } blocks[20000];
    int count;
    int at[SLOTS]; /* the live block there, or -1 */
    uint64_t sum, peak;
} naive;

static void naive_alloc(uint64_t slot, uint64_t bytes, unsigned thread)
{
    int n = naive.count++;

    naive.blocks[n].bytes = bytes;
    naive.blocks[n].live = true;
    naive.blocks[n].thread = thread;
    naive.at[slot] = n;
    naive.sum += bytes;
    if (naive.sum <= naive.peak)
        return;
    naive.peak = naive.sum;
    for (int i = 0; i < naive.count; i++)
        naive.blocks[i].at_peak = naive.blocks[i].live;
}

static void naive_launch(int name, unsigned thread)
{
    for (int i = 0; i < naive.count; i++)
        if (naive.blocks[i].live && !naive.blocks[i].name &&
            naive.blocks[i].thread == thread)
            naive.blocks[i].name = name;
}

static uint64_t naive_bytes(const char *label, uint64_t each)
{
    uint64_t bytes = 0;

    for (int i = 0; i < naive.count; i++) {
        const char *texts[] = {"not used yet", "k1", "k2", "k3"};
        if (naive.blocks[i].at_peak && naive.blocks[i].bytes == each &&
            !strcmp(texts[naive.blocks[i].name], label))
            bytes += each;
    }
    return bytes;
}

static void random_trace(struct build *b)
{
    for (uint64_t i = 1; i <= 3; i++)
        BUILD_TEXT(b, NAME, ((const char *[]){"", "k1", "k2", "k3"})[i],
                   .name = i);
    for (int i = 0; i < 8000; i++) {
        uint64_t slot = (uint64_t)rand() % SLOTS;
        b->thread = (uint32_t)rand() % 2;
        if (rand() % 3 == 0) {
            int name = 1 + rand() % 3;
            naive_launch(name, b->thread);
            put_launch(b, (uint64_t)name, 0);
        } else if (naive.at[slot] < 0) {
            uint64_t bytes = 512 * (1 + (uint64_t)rand() % 6);
            naive_alloc(slot, bytes, b->thread);
            put_alloc(b, 0, A + 4096 * slot, bytes);
        } else {
            int n = naive.at[slot];
            naive.blocks[n].live = false;
            naive.sum -= naive.blocks[n].bytes;
            naive.at[slot] = -1;
            put_free(b, 0, A + 4096 * slot, naive.blocks[n].bytes);
        }
    }
}

TEST(agrees_with_a_simple_minded_reading)
{
    for (unsigned seed = 1; seed <= 20; seed++) {
        struct build b = build_start();
        uint64_t sum = 0;

        srand(seed);
        allocated = 0;
        memset(&naive, 0, sizeof naive);
        memset(naive.at, -1, sizeof naive.at);
        random_trace(&b);
        struct peak peak = peak_of(&b);
        const struct peak_card *card = &peak.cards[0];
        CHECK_UINT(card->allocated_bytes, naive.peak);
        for (size_t i = 0; i < card->thing_count; i++) {
            const struct peak_thing *t = &card->things[i];
            CHECK_UINT(t->bytes, naive_bytes(t->label, t->bytes / t->count));
            sum += t->bytes;
        }
        CHECK_UINT(sum, naive.peak);
        peak_fini(&peak);
    }
}
