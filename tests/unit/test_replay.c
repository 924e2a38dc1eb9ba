/* SPDX-License-Identifier: Apache-2.0
 * Traces as recordings, made by hand. */
#include "common/base/units.h"
#include "memsim/replay/reserved_range.h"
#include "check.h"
#include "trace_build.h"

#define A UINT64_C(0x7f0000000000)
#define B (A + 64 * MIB)
#define C (A + 128 * MIB)

static struct build trace;
static struct recording recording;
static char path[] = "/tmp/memsim-test-replay-XXXXXX";
static struct err err;

static void start(void)
{
    trace = build_start();
    BUILD_TEXT(&trace, PROCESS, "train.py", .pid = 1, .parent = 2, .rank = 3,
               .world_size = 8);
    BUILD_TEXT(&trace, SETTING, "torch=2.11.0");
    BUILD_TEXT(&trace, DEVICE, "card", .capacity_bytes = 1 * GIB,
               .context_bytes = 100 * MIB, .card = 5);
}

static int finish(const struct recording_options *options)
{
    int fd = mkstemp(path);
    int rc;

    build_seal(&trace);
    if (fd < 0 || write(fd, trace.data, trace.bytes) != (ssize_t)trace.bytes)
        return -1;
    close(fd);
    free(trace.data);
    err_clear(&err);
    rc = recording_open(&recording, path, options, &err);
    return rc;
}

static void finish_up(void)
{
    recording_close(&recording);
    unlink(path);
    memcpy(path + sizeof path - 7, "XXXXXX", 6);
}

static void segment(uint64_t address, uint64_t bytes)
{
    BUILD(&trace, DEVICE_MALLOC, .address = address, .bytes = bytes);
    BUILD(&trace, SEGMENT_ALLOC, .address = address, .bytes = bytes);
}

static void give_back(uint64_t address, uint64_t bytes)
{
    BUILD(&trace, SEGMENT_FREE, .address = address, .bytes = bytes);
    BUILD(&trace, DEVICE_FREE, .address = address, .bytes = bytes);
}

static void block(uint64_t address, uint64_t bytes)
{
    BUILD(&trace, BLOCK_ALLOC, .address = address, .requested_bytes = bytes,
          .block_bytes = bytes);
}

static void block_free(uint64_t address, uint64_t deferred)
{
    BUILD(&trace, BLOCK_FREE, .address = address, .deferred = deferred);
}

static const struct replay_device *played(const char *conf)
{
    if (whatif_add(&recording.whatif, conf, false, &err)) {
        CHECK_FAIL("%s", err.text);
        exit(1);
    }
    return &recording.whatif.rows[recording.whatif.row_count - 1]
                .result.devices[0];
}

static const struct recording_options plain;

TEST(tells_torchs_memory_from_others)
{
    start();
    segment(A, 30 * MIB);
    block(A, 30 * MIB);
    BUILD(&trace, DEVICE_MALLOC, .address = B, .bytes = 50 * MIB);
    BUILD(&trace, LIBRARY_MEMORY, .bytes = 7 * MIB);
    BUILD(&trace, DEVICE_FREE, .address = B, .bytes = 50 * MIB);
    block_free(A, 0);
    CHECK(finish(&plain) == 0);
    CHECK_UINT(recording.info.rank, 3);
    CHECK_UINT(recording.info.devices[0].card, 5);
    CHECK(recording.plan.exact);
    const struct replay_device *d = played("");
    CHECK_UINT(d->capacity_bytes, GIB);
    CHECK_UINT(d->peak_reserved_bytes, 30 * MIB);
    CHECK_UINT(d->peak_used_bytes, (100 + 30 + 50 + 7) * MIB);
    finish_up();
}

TEST(a_reset_ends_the_context_and_all_memory)
{
    start();
    segment(A, 30 * MIB);
    block(A, 30 * MIB);
    BUILD(&trace, LIBRARY_MEMORY, .bytes = 7 * MIB);
    BUILD(&trace, DEVICE_FREE, .address = A, .bytes = 30 * MIB);
    BUILD(&trace, DEVICE_RESET);
    BUILD(&trace, DEVICE, .capacity_bytes = GIB, .context_bytes = 100 * MIB,
          .card = 5);
    BUILD(&trace, DEVICE_MALLOC, .address = B, .bytes = 50 * MIB);
    block_free(A, 0); /* PyTorch does not know */
    CHECK(finish(&plain) == 0);
    CHECK_UINT(played("")->peak_used_bytes, (100 + 50) * MIB);
    finish_up();
}

TEST(a_refusal_is_a_retry_and_no_refusal_a_flush)
{
    for (int refused = 0; refused < 2; refused++) {
        start();
        segment(A, 30 * MIB);
        block(A, 30 * MIB);
        block_free(A, 0);
        if (refused)
            BUILD(&trace, DEVICE_REFUSE, .bytes = 50 * MIB);
        give_back(A, 30 * MIB);
        segment(B, 50 * MIB);
        block(B, 50 * MIB);
        CHECK(finish(&plain) == 0);
        CHECK(recording.plan.exact);
        CHECK_UINT(recording.plan.count, !refused);
        CHECK_UINT(played("")->peak_reserved_bytes,
                   refused ? 80 * MIB : 50 * MIB);
        finish_up();
    }
}

/* cuBLAS has 32 MiB on Hopper, and 8 and a bit before. */
TEST(another_card_has_workspaces_of_its_own)
{
    struct gpu ampere = {.capability_major = 8,
                         .memory_bytes = GIB,
                         .context_bytes = 50 * MIB,
                         .cublas_bytes = 4 * MIB};
    struct recording_options other = {.gpu = &ampere};

    for (int lent = 0; lent < 2; lent++) {
        start();
        BUILD_TEXT(&trace, NAME, "cublasSetWorkspace", .name = 9);
        BUILD_TEXT(&trace, LIBRARY_MEMORY, "cublas", .bytes = 32 * MIB);
        segment(A, 32 * MIB);
        block(A, 32 * MIB);
        if (lent)
            BUILD(&trace, LIBRARY_CALL, .name = 9, .workspace_bytes = 32 * MIB,
                  .a = A);
        CHECK(finish(&other) == 0);
        CHECK(recording.plan.exact);
        const struct replay_device *d = played("");
        uint64_t segment_bytes = (lent ? 20 : 32) * MIB;
        CHECK_UINT(d->peak_reserved_bytes, segment_bytes);
        CHECK_UINT(d->peak_used_bytes, 54 * MIB + segment_bytes);
        CHECK_UINT(recording.workspace_bytes, lent ? 8 * MIB + 128 * KIB : 0);
        finish_up();
    }
}

/* With a limit of 24 MiB, 30 cached ones do not serve a request for 12. */
TEST(settings_are_made_at_their_time)
{
    for (int when = 0; when < 3; when++) {
        start();
        segment(A, 30 * MIB);
        block(A, 30 * MIB);
        if (when == 0)
            BUILD_TEXT(&trace, ALLOCATOR_SETTINGS, "max_split_size_mb:24");
        block_free(A, 0);
        if (when == 1)
            BUILD_TEXT(&trace, ALLOCATOR_SETTINGS, "max_split_size_mb:24");
        segment(B, 12 * MIB);
        block(B, 12 * MIB);
        if (when == 2)
            BUILD_TEXT(&trace, ALLOCATOR_SETTINGS, "max_split_size_mb:24");
        CHECK(finish(&plain) == 0);
        CHECK_UINT(recording.plan.exact, when < 2);
        CHECK_UINT(played("")->peak_reserved_bytes, (when < 2 ? 42 : 30) * MIB);
        finish_up();
    }
}

static void convolution(uint64_t address, const char *dims)
{
    block(address, 30 * MIB);
    BUILD_TEXT(&trace, CONVOLUTION, dims, .operation = 2, .type = 9,
               .workspace_bytes = 30 * MIB, .engine = 1);
    block_free(address, 0);
}

TEST(a_convolution_does_without_a_workspace)
{
    struct recording_options less = {.memory_bytes = 110 * MIB};

    for (int of_one = 0; of_one < 2; of_one++) {
        start();
        segment(A, 30 * MIB);
        convolution(A, "x=1");
        convolution(A, "x=1");
        convolution(A, "x=2");
        if (of_one)
            block(A, 30 * MIB);
        CHECK(finish(&less) == 0);
        CHECK_UINT(played("")->oom_count, 2 + of_one);
        CHECK_UINT(recording.whatif.rows[0].result.plans_changed, 2);
        CHECK_UINT(recording.whatif.rows[0].result.fits, !of_one);
        finish_up();
    }
}

/* 40 MiB are lent, of which the real GPU may ask for none or up to 200. */
TEST(reserved_has_bounds_where_a_workspace_is_not_known)
{
    struct reserved_range ranges[REPLAY_DEVICES] = {{0}};

    start();
    segment(A, 30 * MIB);
    block(A, 30 * MIB);
    block_free(A, 0);
    segment(B, 40 * MIB);
    block(B, 40 * MIB);
    BUILD_TEXT(&trace, CONVOLUTION, "x=1", .workspace_bytes = 40 * MIB,
               .workspace_most = 200 * MIB, .engine = 1);
    block_free(B, 0);
    CHECK(finish(&plain) == 0);
    CHECK(reserved_range_find(&recording, ranges, &err) == 0);
    CHECK_UINT(ranges[0].least_bytes, 30 * MIB);
    CHECK_UINT(ranges[0].most_bytes, 230 * MIB);
    CHECK(reserved_range_matters(&ranges[0]));
    CHECK_UINT(ranges[1].most_bytes, 0);
    finish_up();
}

/* 40 MiB that a library asked for, which may be 35 to 60, and live on. */
TEST(reserved_has_bounds_where_a_size_is_not_known)
{
    struct reserved_range ranges[REPLAY_DEVICES] = {{0}};

    start();
    segment(A, 30 * MIB);
    block(A, 30 * MIB);
    BUILD(&trace, SIZE_RANGE, .bytes = 40 * MIB, .least_bytes = 35 * MIB,
          .most_bytes = 60 * MIB);
    segment(B, 40 * MIB);
    block(B, 40 * MIB);
    CHECK(finish(&plain) == 0);
    CHECK(reserved_range_find(&recording, ranges, &err) == 0);
    CHECK_UINT(ranges[0].least_bytes, 66 * MIB);
    CHECK_UINT(ranges[0].most_bytes, 90 * MIB);
    finish_up();
}

/* Two of 30 MiB are cached, 40 are lent and then 50. Of the 200 MiB that are left
 * the workspace may ask for 150, which empties the cache: before it 90 are enough
 * from then on. Where it may ask for 130 nothing needs to be emptied, and without
 * a workspace 110 are enough. */
TEST(reserved_is_less_where_the_cache_may_have_been_emptied)
{
    const struct recording_options small = {.memory_bytes = 300 * MIB};

    for (int full = 0; full < 2; full++) {
        struct reserved_range ranges[REPLAY_DEVICES] = {{0}};

        start();
        segment(A, 30 * MIB);
        block(A, 30 * MIB);
        segment(B, 30 * MIB);
        block(B, 30 * MIB);
        block_free(A, 0);
        block_free(B, 0);
        segment(C, 40 * MIB);
        block(C, 40 * MIB);
        BUILD_TEXT(&trace, CONVOLUTION, "x=1", .workspace_bytes = 40 * MIB,
                   .workspace_most = (full ? 150 : 130) * MIB, .engine = 1);
        block_free(C, 0);
        segment(C + 64 * MIB, 50 * MIB);
        block(C + 64 * MIB, 50 * MIB);
        CHECK(finish(&small) == 0);
        CHECK(reserved_range_find(&recording, ranges, &err) == 0);
        CHECK_UINT(ranges[0].least_bytes, (full ? 90 : 110) * MIB);
        CHECK_UINT(ranges[0].most_bytes, (full ? 150 : 190) * MIB);
        finish_up();
    }
}

TEST(what_is_certain_has_no_bounds)
{
    struct reserved_range ranges[REPLAY_DEVICES] = {{0}};

    start();
    segment(A, 30 * MIB);
    convolution(A, "x=1");
    CHECK(finish(&plain) == 0);
    CHECK(reserved_range_find(&recording, ranges, &err) == 0);
    CHECK_UINT(ranges[0].least_bytes, 30 * MIB);
    CHECK_UINT(ranges[0].most_bytes, 30 * MIB);
    CHECK(!reserved_range_matters(&ranges[0]));
    finish_up();
}

/* A tenth of 1 GiB has no room for both segments, of 2 GiB it has. */
TEST(a_limit_of_the_programs_own_is_kept)
{
    struct recording_options larger = {.memory_bytes = 2 * GIB};

    for (int large = 0; large < 2; large++) {
        start();
        BUILD_TEXT(&trace, MEMORY_FRACTION, "0.1");
        segment(A, 30 * MIB);
        block(A, 30 * MIB);
        block_free(A, 0);
        give_back(A, 30 * MIB);
        segment(B, 80 * MIB);
        block(B, 80 * MIB);
        CHECK(finish(large ? &larger : &plain) == 0);
        CHECK(recording.plan.exact);
        CHECK_UINT(recording.plan.count, 0);
        CHECK_UINT(played("")->peak_reserved_bytes,
                   large ? 110 * MIB : 80 * MIB);
        finish_up();
    }
}

TEST(what_comes_between_ends_a_flush)
{
    start();
    segment(A, 30 * MIB);
    block(A, 30 * MIB);
    segment(B, 40 * MIB);
    block(B, 40 * MIB);
    block_free(A, 0);
    give_back(A, 30 * MIB);
    block_free(B, 0);
    segment(C, 50 * MIB);
    block(C, 50 * MIB);
    CHECK(finish(&plain) == 0);
    CHECK(recording.plan.exact);
    CHECK_UINT(recording.plan.count, 1);
    finish_up();
}

TEST(a_deferred_free_is_done_when_the_recording_has_it_done)
{
    start();
    segment(A, 30 * MIB);
    block(A, 30 * MIB);
    block_free(A, 1);
    segment(B, 30 * MIB);
    block(B, 30 * MIB);
    BUILD(&trace, FREE_DONE, .address = A, .bytes = 30 * MIB);
    block(A, 30 * MIB);
    CHECK(finish(&plain) == 0);
    CHECK(recording.plan.exact);
    CHECK_UINT(recording.plan.blocks_checked, 3);
    CHECK_UINT(played("")->peak_reserved_bytes, 60 * MIB);
    finish_up();
}

TEST(a_difference_is_told)
{
    start();
    segment(A, 30 * MIB);
    block(A + 2 * MIB, 30 * MIB);
    CHECK(finish(&plain) == 0);
    CHECK(!recording.plan.exact);
    CHECK(strstr(recording.plan.difference, "the block at 0x7f0000000000") !=
          NULL);
    finish_up();
}

TEST(memory_runs_out_where_it_would)
{
    struct recording_options small = {.memory_bytes = 120 * MIB};

    start();
    segment(A, 12 * MIB);
    block(A, 12 * MIB);
    segment(B, 12 * MIB);
    block(B, 12 * MIB);
    CHECK(finish(&small) == 0);
    const struct replay_device *d = played("");
    CHECK_UINT(d->oom_count, 1);
    CHECK_UINT(d->ooms[0].refused_bytes, 12 * MIB);
    CHECK_UINT(d->ooms[0].free_bytes, 8 * MIB);
    CHECK(recording.whatif.at_oom);
    CHECK_UINT(recording.whatif.fragments.group_count, 1);
    CHECK(!whatif_sweep(&recording.whatif, "", 0, GIB, &err));
    CHECK_UINT(recording.whatif.smallest_bytes, 124 * MIB);
    finish_up();
}

/* A program that ends after it ran out frees its memory: the look is before. */
TEST(what_ran_out_in_the_recording_is_looked_at_there)
{
    const struct fragments *f = &recording.whatif.fragments;

    start();
    segment(A, 300 * MIB);
    block(A, 300 * MIB);
    segment(B, 30 * MIB);
    block(B, 30 * MIB);
    BUILD(&trace, OOM, .requested_bytes = 800 * MIB);
    block_free(A, 0);
    CHECK(finish(&plain) == 0);
    CHECK_UINT(played("")->oom_count, 1);
    CHECK(recording.whatif.at_oom);
    CHECK_UINT(f->group_count, 1);
    CHECK_UINT(f->groups[0].allocated_bytes, 330 * MIB);
    CHECK_UINT(f->groups[0].cached_bytes, 0);
    finish_up();
}

static void check_impossible(const char *what)
{
    CHECK(finish(&plain) == -1);
    if (!strstr(err.text, what))
        CHECK_FAIL("'%s' is not in: %s", what, err.text);
    finish_up();
}

TEST(impossible_events_are_refused_with_their_place)
{
    start();
    block_free(A, 0);
    check_impossible(":event 3: free of the unknown address 0x7f0000000000");
    start();
    segment(A, 30 * MIB);
    block(A, 3 * MIB);
    block(A, 0);
    check_impossible(":event 6: an impossible size");
    start();
    BUILD(&trace, BLOCK_ALLOC, .device = 99, .address = A, .requested_bytes = 5,
          .block_bytes = 5);
    check_impossible(":event 3: no such device");
    start();
    BUILD_TEXT(&trace, MEMORY_FRACTION, "nan");
    check_impossible(":event 3: an impossible memory fraction");
    start();
    BUILD_TEXT(&trace, ALLOCATOR_SETTINGS, "expandable_segments:7");
    segment(A, 30 * MIB);
    check_impossible(":event 3: settings that the program made: alloc-conf:21");
}

TEST(an_unknown_torch_is_refused)
{
    struct recording_options old = {.torch = "1.13"};

    start();
    CHECK(finish(&old) == -1);
    CHECK(strstr(err.text, "older than the allocators known") != NULL);
    finish_up();
}
