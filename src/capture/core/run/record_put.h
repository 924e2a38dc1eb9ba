/* SPDX-License-Identifier: Apache-2.0
 * The body of record.c's functions, inline: for the two kinds of record that
 * are too frequent for a call with a count that is not a constant, launches and
 * PyTorch's blocks. */
#ifndef MEMSIM_CAPTURE_CORE_RUN_RECORD_PUT_H
#define MEMSIM_CAPTURE_CORE_RUN_RECORD_PUT_H

#include <stdbool.h>

#include "capture/core/base/lock.h"
#include "capture/core/run/activity.h"
#include "capture/core/run/clock.h"
#include "capture/core/run/clock_gap.h"
#include "capture/core/run/clock_sleep.h"
#include "capture/core/run/live.h"
#include "capture/core/run/record.h"
#include "common/trace/trace_write.h"

/* record.c's, under LOCK_RECORD. */
extern struct trace_writer record_writer;
extern uint32_t record_worker; /* the last thread that did more than ask */
extern _Thread_local bool record_worked; /* the calling thread has */

/* Under LOCK_RECORD: sets R's time, now or a coarse now. R's thread works. */
static inline __attribute__((always_inline)) void
record_stamp(struct trace_put *r, bool coarse)
{
    record_worker = r->thread;
    record_worked = true;
    r->time_ns = coarse ? clock_now_coarse() : clock_now();
    if (r->time_ns < record_writer.time_ns)
        r->time_ns = record_writer.time_ns;
    else if (r->time_ns - record_writer.time_ns > CLOCK_GAP_NS)
        r->time_ns = clock_gap(record_writer.time_ns, r->time_ns);
}

/* Takes the writer, and sets R's thread and time. */
static inline __attribute__((always_inline)) void
record_begin(struct trace_put *r, bool coarse)
{
    r->thread = record_thread();
    core_lock(LOCK_RECORD);
    record_stamp(r, coarse);
}

/* Gives R to the simulation, from a copy with all fields that a record may
 * have: R itself then never has an address, and a launch that nobody simulates
 * keeps its fields in registers. */
static inline __attribute__((always_inline)) void
record_simulate(const struct trace_put *r)
{
    uint64_t fields[TRACE_FIELDS_MAX] = {0};
    struct trace_put copy = {r->kind,  r->thread, r->time_ns, fields,
                             r->count, r->always, r->text,    r->text_bytes};

#pragma GCC unroll 23
    for (size_t i = 0; i < r->count; i++)
        fields[i] = r->fields[i];
    live_take(&copy);
}

/* Appends R, gives it to the simulation, and releases the writer. */
static inline __attribute__((always_inline)) void
record_end(struct trace_put *r)
{
    trace_writer_put(&record_writer, r);
    if (__builtin_expect(live_is_on, false))
        record_simulate(r);
    core_unlock(LOCK_RECORD);
    if (__builtin_expect(clock_is_stopped(), false) && !core_locks_held)
        clock_sleep_serve();
    if (__builtin_expect(memsim_activity_on, false))
        activity_tell();
}

static inline __attribute__((always_inline)) void
record_put(struct trace_put *r, bool coarse)
{
    record_begin(r, coarse);
    record_end(r);
}

/* RECORD, inline: RECORD_PUT(false, ALWAYS, LAUNCH, .name = n, ...). */
#define RECORD_PUT(coarse, always_, kind_, ...)                                \
    record_put(&(struct trace_put){.kind = TRACE_##kind_,                      \
                                   .fields = TRACE_WORDS(kind_, __VA_ARGS__),  \
                                   .count = TRACE_WORD_COUNT(kind_),           \
                                   .always = always_},                         \
               coarse)

#endif
