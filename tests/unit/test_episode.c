/* SPDX-License-Identifier: Apache-2.0
 * What a moment of a trace is a part of: evaluations, checkpoints. */
#include "common/trace/episode.h"

#include <string.h>

#include "check.h"
#include "trace_build.h"

/* After all of B's records; *T is what they leave behind. */
static struct episode_moment play(const struct build *b,
                                  struct episode_tracker *t)
{
    struct trace_reader r;
    struct trace_item item;
    struct err err = {""};

    *t = (struct episode_tracker){.domain = 0};
    CHECK(!trace_reader_open_memory(&r, b->data, b->bytes, "built", &err));
    while (trace_reader_next(&r, &item, &err) > 0)
        episode_take(t, &item);
    trace_reader_close(&r);
    return t->now;
}

static enum episode episode_at(const struct build *b)
{
    struct episode_tracker t;
    struct episode_moment moment = play(b, &t);

    return episode_of(&t, moment);
}

static void call(struct build *b, uint64_t module, uint64_t learns)
{
    BUILD(b, PHASE, .phase = TRACE_PHASE_FORWARD);
    BUILD(b, BATCH, .module = module, .samples = 8, .learns = learns);
}

TEST(what_was_trained_is_evaluated_without_gradients)
{
    struct build b = build_start();

    call(&b, 1, TRACE_LEARNS);
    CHECK(episode_at(&b) == EPISODE_NONE);
    BUILD(&b, PHASE, .phase = TRACE_PHASE_OPTIMIZER);
    call(&b, 2, TRACE_LEARNS_NOT); /* a teacher */
    CHECK(episode_at(&b) == EPISODE_NONE);
    call(&b, 1, TRACE_LEARNS_NOT);
    CHECK(episode_at(&b) == EPISODE_EVALUATION);
    BUILD(&b, PHASE, .phase = TRACE_PHASE_BACKWARD);
    CHECK(episode_at(&b) == EPISODE_NONE);
    free(b.data);
}

/* The trial evaluation before a training. */
TEST(a_module_that_is_trained_later_was_evaluated)
{
    struct build b = build_start();
    struct episode_tracker t;

    call(&b, 1, TRACE_LEARNS_NOT);
    struct episode_moment moment = play(&b, &t);
    CHECK(episode_of(&t, moment) == EPISODE_NONE);
    call(&b, 1, TRACE_LEARNS);
    play(&b, &t);
    CHECK(episode_of(&t, moment) == EPISODE_EVALUATION);
    free(b.data);
}

TEST(a_call_that_is_told_lasts_until_its_end)
{
    struct build b = build_start();

    BUILD_TEXT(&b, RANGE_PUSH, "memsim episode saving", .domain = 7);
    BUILD_TEXT(&b, RANGE_PUSH, "the program's own", .domain = 0);
    CHECK(episode_at(&b) == EPISODE_SAVING);
    BUILD(&b, RANGE_POP, .domain = 0);
    CHECK(episode_at(&b) == EPISODE_SAVING);
    BUILD(&b, RANGE_POP, .domain = 7);
    CHECK(episode_at(&b) == EPISODE_NONE);
    BUILD_TEXT(&b, RANGE_PUSH, "memsim episode of another version",
               .domain = 7);
    CHECK(episode_at(&b) == EPISODE_NONE);
    free(b.data);
}
