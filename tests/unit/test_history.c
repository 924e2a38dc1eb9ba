/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/attribution/history.h"

#include <stdlib.h>

#include "check.h"

struct job {
    struct history history;
    struct moment now;
    uint64_t held[64]; /* bytes by address */
    struct history_block blocks[64];
};

static void job_alloc(struct job *j, unsigned at, uint64_t requested,
                      uint64_t bytes)
{
    j->now.ordinal += 3; /* other records lie between */
    j->now.time_ns += 10;
    j->now.events++;
    j->now.allocated_bytes += bytes;
    j->held[at] = bytes;
    j->blocks[at] = (struct history_block){
        .address = at,
        .bytes = bytes,
        .requested_bytes = requested,
        .born = j->now.events,
        .born_ns = j->now.time_ns,
        .died = UINT64_MAX,
        .category = TRACE_CATEGORY_ACTIVATION,
    };
    history_event(&j->history, &j->now, &j->blocks[at], (int64_t)bytes);
}

static void job_free(struct job *j, unsigned at)
{
    j->now.ordinal += 3;
    j->now.time_ns += 10;
    j->now.events++;
    j->now.allocated_bytes -= j->held[at];
    history_event(&j->history, &j->now, &j->blocks[at], -(int64_t)j->held[at]);
    j->blocks[at].died = j->now.events;
    j->blocks[at].died_ns = j->now.time_ns;
    history_put(&j->history, &j->blocks[at]);
}

static void job_step(struct job *j, unsigned step)
{
    j->now.ordinal++;
    history_step(&j->history, &j->now, step);
}

/* A step that frees what the one before left, and leaves some: six events. */
static void job_train(struct job *j, unsigned step, uint64_t extra)
{
    job_step(j, step);
    job_alloc(j, 1, 900, 1024);
    job_alloc(j, 2, 4000, 4096 + extra);
    if (step)
        job_free(j, 3);
    job_alloc(j, 3, 700, 1024);
    job_free(j, 2);
    job_free(j, 1);
}

static void job_begin(struct job *j)
{
    *j = (struct job){0};
    history_step(&j->history, &j->now, HISTORY_BEFORE);
    job_alloc(j, 0, 8000, 8192);
}

static void job_end(struct job *j)
{
    history_conclude(&j->history, &j->now);
}

TEST(of_steps_that_are_alike_the_first_is_kept)
{
    struct job j;

    job_begin(&j);
    for (unsigned step = 0; step < 10; step++)
        job_train(&j, step, 0);
    job_end(&j);
    CHECK_UINT(j.history.run_count, 3);
    const struct history_run *runs = j.history.runs;
    CHECK_UINT(runs[0].step, HISTORY_BEFORE);
    CHECK_UINT(runs[1].count, 1); /* it frees nothing */
    CHECK_UINT(runs[2].step, 1);
    CHECK_UINT(runs[2].count, 9);
    CHECK_UINT(runs[2].first_end - runs[2].begin, 6);
    CHECK_UINT(runs[2].end - runs[2].begin, 54);
    /* two blocks ended in step 0, three in step 1, and one that it left */
    CHECK_UINT(j.history.count, 6);
    /* all that came after it lies at its end */
    CHECK_UINT(history_place(&j.history, runs[2].end), runs[2].first_end);
    CHECK_UINT(history_place(&j.history, runs[2].first_end + 3),
               runs[2].first_end);
    CHECK_UINT(history_place(&j.history, 3), 3);
    CHECK_UINT(history_place(&j.history, UINT64_MAX), UINT64_MAX);
    history_fini(&j.history);
}

TEST(steps_that_differ_are_all_kept)
{
    struct job j;

    job_begin(&j);
    for (unsigned step = 0; step < 4; step++)
        job_train(&j, step, 0);
    job_alloc(&j, 10, 256, 512); /* the step's end leaks */
    for (unsigned step = 4; step < 6; step++) {
        job_train(&j, step, 0);
        job_alloc(&j, 10 + step, 256, 512);
    }
    job_end(&j);
    /* start, 0, 1-2, 3 with the leak, and 4, 5: each begins with more */
    CHECK_UINT(j.history.run_count, 6);
    CHECK_UINT(j.history.runs[2].count, 2);
    history_fini(&j.history);
}

TEST(a_step_after_kept_ones_comes_right_after_them)
{
    struct job j;

    job_begin(&j);
    for (unsigned step = 0; step < 6; step++)
        job_train(&j, step, 0);
    job_step(&j, 6);
    job_alloc(&j, 5, 100, 512);
    job_end(&j);
    const struct history_run *last = &j.history.runs[3];
    CHECK_UINT(j.history.run_count, 4);
    CHECK_UINT(history_place(&j.history, last->begin),
               j.history.runs[2].first_end);
    CHECK_UINT(history_place(&j.history, j.blocks[5].born),
               j.history.runs[2].first_end + 1);
    history_fini(&j.history);
}

TEST(what_the_allocator_adds_does_not_tell_steps_apart)
{
    struct job j;

    job_begin(&j);
    for (unsigned step = 0; step < 6; step++)
        job_train(&j, step, step == 4 ? 512 : 0);
    job_end(&j);
    CHECK_UINT(j.history.run_count, 3);
    CHECK_UINT(j.history.runs[2].count, 5);
    /* the highest peak is in step 4: the place in step 1 stands for it */
    CHECK_UINT(j.history.peak_event, j.history.runs[2].begin + 2);
    CHECK_UINT(j.history.peak_bytes, 8192 + 1024 + 1024 + 4096 + 512);
    history_fini(&j.history);
}

/* The last point's sum is what is allocated, whatever was left out. */
TEST(points_add_up_without_the_steps_that_are_left_out)
{
    struct job j;
    size_t count;

    job_begin(&j);
    for (unsigned step = 0; step < 50; step++)
        job_train(&j, step, step % 7 * 512);
    job_end(&j);
    struct attribution_point *points =
        memory_curve_conclude(&j.history.points, &count);
    CHECK(count > 6);
    CHECK(count < 30);
    CHECK_UINT(attribution_sum(&points[count - 1].sums),
               j.now.allocated_bytes);
    for (size_t i = 1; i < count; i++)
        CHECK(points[i].events >= points[i - 1].events);
    free(points);
    history_fini(&j.history);
}

TEST(the_number_of_blocks_and_of_steps_has_a_limit)
{
    struct job j;

    job_begin(&j);
    for (unsigned i = 0; i < 3 * HISTORY_BLOCKS; i++) {
        if (i % 20 == 0)
            job_step(&j, i / 20);
        job_alloc(&j, 1, 1000 + i, i % 3 ? 1024 : 4096 + i);
        job_free(&j, 1);
    }
    job_end(&j);
    CHECK(j.history.count < 2 * HISTORY_BLOCKS);
    CHECK_UINT(j.history.count + j.history.left_out, 3 * HISTORY_BLOCKS);
    CHECK(j.history.least_bytes > 1024);
    CHECK_UINT(j.history.run_count, HISTORY_RUNS);
    CHECK_UINT(j.history.runs[HISTORY_RUNS - 1].first_end, j.now.events);
    CHECK_UINT(j.history.runs[HISTORY_RUNS - 1].count,
               3 * HISTORY_BLOCKS / 20 - (HISTORY_RUNS - 2));
    history_fini(&j.history);
}
