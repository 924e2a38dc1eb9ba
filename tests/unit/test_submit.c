/* SPDX-License-Identifier: Apache-2.0
 * The way of work (submit.c). White box: what is around it are stand-ins. */
#include "capture/core/run/clock.h"
#include "capture/core/work/submit.c"

#include "check.h"

_Atomic uint32_t capture_count;
_Atomic uint32_t core_locks[LOCK_COUNT];
_Thread_local uint32_t core_locks_held;
struct trace_writer record_writer = TRACE_WRITER_INIT;
uint32_t record_worker;
_Thread_local bool record_worked;
bool memsim_activity_on;

static struct op captured; /* the last one */
static int records, captures, waits;
static bool is_blocking, is_capturing;

_Atomic uint64_t clock_held_ns;
int (*clock_real)(clockid_t clock, struct timespec *t) = clock_gettime;
bool live_is_on;

uint64_t clock_gap(uint64_t last_ns, uint64_t now_ns)
{
    (void)last_ns;
    return now_ns;
}

bool clock_is_stopped(void)
{
    return false;
}

void clock_sleep_serve(void)
{
}

void live_take(const struct trace_put *record)
{
    (void)record;
}

void core_lock_wait(enum core_lock lock)
{
    (void)lock;
}

void core_lock_wake(enum core_lock lock)
{
    (void)lock;
}

void activity_tell(void)
{
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

void memsim_record(enum trace_kind kind, const uint64_t *fields, size_t count)
{
    (void)fields;
    (void)count;
    if (kind == TRACE_SYNC_STREAM)
        waits++;
}

bool fault_is_blocking(void)
{
    return is_blocking;
}

bool memsim_capture_holds(uint64_t stream)
{
    (void)stream;
    return is_capturing;
}

bool capture_work(const struct op *op)
{
    captured = *op;
    captures++;
    return false;
}

TEST(work_is_recorded)
{
    SUBMIT(SET, .device = 1, .stream = 5, .bytes = 4);
    CHECK_UINT((uint64_t)records, 1);
    CHECK_UINT((uint64_t)captures, 0);
}

TEST(a_blocking_launch_waits_for_its_kernel)
{
    is_blocking = true;
    SUBMIT(SET, .device = 1, .stream = 5, .bytes = 4);
    CHECK_UINT((uint64_t)waits, 0);
    SUBMIT_TEXT(CONVOLUTION, "dims", 4, .name = 9, .device = 1, .stream = 5);
    CHECK_UINT((uint64_t)waits, 1);
    is_capturing = true;
    SUBMIT_TEXT(CONVOLUTION, "dims", 4, .name = 9, .device = 1, .stream = 5);
    CHECK_UINT((uint64_t)waits, 1);
    is_blocking = is_capturing = false;
}

TEST(what_is_captured_is_recorded_too)
{
    capture_count = 1;
    SUBMIT_TEXT(CONVOLUTION, "dims", 4, .name = 9, .device = 1, .stream = 5);
    CHECK_UINT(captured.kind, OP_CONVOLUTION);
    CHECK_UINT(captured.device, 1);
    CHECK_UINT(captured.stream, 5);
    CHECK_UINT(captured.name, 9);
    CHECK_UINT(captured.thread, 3);
    CHECK_UINT(captured.text_bytes, 4);
    SUBMIT(COPY, .device = 1, .stream = 5, .bytes = 4, .blocking = 1);
    CHECK_UINT(captured.kind, OP_COPY);
    CHECK(captured.blocking);
    CHECK_UINT((uint64_t)captures, 2);
    CHECK_UINT((uint64_t)records, 2);
}

TEST(a_launch_goes_the_same_way)
{
    const struct kernel_launch l = {{2, 3, 4}, {5, 6, 7}, 8, 9, NULL};
    const uint64_t words[8] = {10, 11, 12, 13};

    capture_count = 1;
    submit_launch(14, 1, &l, TRACE_RULE_WORDS, words);
    CHECK_UINT((uint64_t)captures, 1);
    CHECK_UINT(captured.kind, OP_LAUNCH);
    CHECK_UINT(captured.stream, 9);
    CHECK_UINT(captured.name, 14);
    CHECK_UINT(captured.field_count, TRACE_WORD_COUNT(LAUNCH));
}
