/* SPDX-License-Identifier: Apache-2.0
 * Threads that wait for a time, and jumps of the user clock, which pass it.
 *
 *   user clock  ──────┬───────┬───────────────┬──────►
 *                   come    until of        jump's end
 *                           a sleeper
 *
 * The clock stops (clock_stop_ns) at the first time for which a thread of the
 * process waits. That thread is woken, and does what it does until it waits
 * again; then the clock goes on to the next such time, and only at the jump's
 * end does the thread go on whose call made the clock jump. So a thread that
 * beats each 0.1 s does so 80 times while another one waits 8 s for the GPU.
 *
 * Not woken are waits for files (poll and the like): what they wait for comes
 * from outside, at this machine's pace. */
#ifndef MEMSIM_CAPTURE_CORE_RUN_CLOCK_SLEEP_H
#define MEMSIM_CAPTURE_CORE_RUN_CLOCK_SLEEP_H

#include <stdbool.h>
#include <stdint.h>

enum sleep_way {
    SLEEP_SIGNAL, /* in a system call, which a signal ends with EINTR */
    SLEEP_COND,   /* for a condition variable; is woken as by a signal of it */
    SLEEP_ALONE,  /* it is not woken: the wait ends by this machine's clock */
};

/* The calling thread waits until the user clock is at UNTIL_NS. Of SLEEP_COND:
 * BROADCAST(COND) wakes all that wait for COND. */
void clock_sleep_begin(uint64_t until_ns, enum sleep_way way, void *cond,
                       int (*broadcast)(void *cond));

/* It waits no more. Returns whether a jump woke it. */
bool clock_sleep_end(void);

/* No thread waits for COND, whose memory goes. */
void clock_sleep_forget(const void *cond);

/* The clock has stopped: wakes who waits for a time before the end of the jump,
 * then lets the clock go on. Where another thread does so, waits for it. With
 * no lock of the core's held. */
void clock_sleep_serve(void);

/* Likewise, where no thread does so yet and the caller may. */
void clock_sleep_serve_idle(void);

/* Whether another thread of the process runs, or would if there were a CPU. */
bool clock_process_runs(void);

/* The process has a simulation now. */
void clock_sleep_start(void);

/* In a forked child. */
void clock_sleep_after_fork(void);

#endif
