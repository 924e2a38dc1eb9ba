/* SPDX-License-Identifier: Apache-2.0
 * The way of work (submit.c), with a model of time and a clock of this test's
 * in place of the host's. White box: what is around it are stand-ins. */
#include "capture/core/run/clock.c"
#include "capture/core/work/done.c"
#include "capture/core/work/submit.c"

#include "check.h"

_Atomic uint32_t capture_count;
_Atomic uint32_t core_locks[LOCK_COUNT];
_Thread_local uint32_t core_locks_held;
struct trace_writer record_writer = TRACE_WRITER_INIT;

static struct op captured, timed; /* the last ones */
static int records, captures, times;
static bool holds;
static uint64_t now_ns = 1000;

void core_lock_wait(enum core_lock lock)
{
    (void)lock;
}

void core_lock_wake(enum core_lock lock)
{
    (void)lock;
}

uint32_t record_thread(void)
{
    return 3;
}

void memsim_record_text(enum trace_kind kind, const uint64_t *fields,
                        size_t count, const char *text, size_t text_bytes)
{
    (void)kind;
    (void)fields;
    (void)count;
    (void)text;
    (void)text_bytes;
    records++;
}

bool capture_work(const struct op *op)
{
    captured = *op;
    captures++;
    return holds;
}

static uint64_t now(void)
{
    return now_ns;
}

static void wait_until(uint64_t at_ns)
{
    if (at_ns > now_ns)
        now_ns = at_ns;
}

static void model_submit(const struct op *op)
{
    timed = *op;
    times++;
}

static uint64_t model_stream(int device, uint64_t stream)
{
    return device == 1 && stream == 5 ? 2000 : DONE_AT_ONCE;
}

static uint64_t model_device(int device)
{
    return device == 1 ? 3000 : DONE_AT_ONCE;
}

static uint64_t model_event(uint64_t event)
{
    return event * 10;
}

static const struct clock_source source = {now, wait_until};
static const struct done_model model = {model_submit, model_stream,
                                        model_device, model_event};

TEST(without_a_model_work_is_done_at_once)
{
    uint64_t before = clock_now();

    SUBMIT(SET, .device = 1, .stream = 5, .bytes = 4);
    CHECK_UINT((uint64_t)records, 1);
    CHECK_UINT((uint64_t)captures, 0);
    CHECK(done_by_now(stream_done_at(1, 5)));
    CHECK(done_by_now(device_done_at(1)));
    CHECK_UINT(event_done_at(7, before), before);
    CHECK(done_by_now(event_done_at(7, before)));
    clock_wait_until(UINT64_MAX); /* nothing waits */
}

TEST(a_model_hears_of_work_and_says_when_it_is_done)
{
    clock_source = &source;
    done_model = &model;
    SUBMIT_TEXT(CONVOLUTION, "dims", 4, .name = 9, .device = 1, .stream = 5);
    CHECK_UINT(timed.kind, OP_CONVOLUTION);
    CHECK_UINT(timed.device, 1);
    CHECK_UINT(timed.stream, 5);
    CHECK_UINT(timed.name, 9);
    CHECK_UINT(timed.thread, 3);
    CHECK_UINT(timed.host_ns, 1000);
    CHECK_UINT(timed.text_bytes, 4);
    CHECK(!done_by_now(stream_done_at(1, 5)));
    CHECK(!done_by_now(device_done_at(1)));
    CHECK(done_by_now(stream_done_at(0, 5)));
    CHECK_UINT(event_done_at(7, 1), 70);
    clock_wait_until(stream_done_at(1, 5));
    CHECK_UINT(clock_now(), 2000);
    CHECK(done_by_now(stream_done_at(1, 5)));
    CHECK(!done_by_now(device_done_at(1)));
}

TEST(a_launch_goes_the_same_way)
{
    const struct kernel_launch l = {{2, 3, 4}, {5, 6, 7}, 8, 9, NULL};
    const uint64_t words[8] = {10, 11, 12, 13};

    done_model = &model;
    submit_launch(14, 1, &l, TRACE_RULE_WORDS, words);
    CHECK_UINT((uint64_t)times, 1);
    CHECK_UINT(timed.kind, OP_LAUNCH);
    CHECK_UINT(timed.stream, 9);
    CHECK_UINT(timed.name, 14);
    CHECK_UINT(timed.field_count, TRACE_WORD_COUNT(LAUNCH));
}

TEST(what_is_captured_is_not_carried_out)
{
    done_model = &model;
    capture_count = 1;
    holds = true;
    SUBMIT(COPY, .device = 1, .stream = 5, .bytes = 4, .blocking = 1);
    CHECK_UINT(captured.kind, OP_COPY);
    CHECK(captured.blocking);
    CHECK_UINT((uint64_t)times, 0);
    holds = false; /* work of another stream */
    SUBMIT(COPY, .device = 1, .stream = 6, .bytes = 4);
    CHECK_UINT((uint64_t)captures, 2);
    CHECK_UINT((uint64_t)times, 1);
    CHECK_UINT((uint64_t)records, 2);
}
