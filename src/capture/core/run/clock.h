/* SPDX-License-Identifier: Apache-2.0
 * The clocks. There are three, all in nanoseconds:
 *
 *   host      this machine's (clock_host)
 *   record    the host's monotonic clock without memsim's own time and without
 *             delays of the program that a real run does not have (clock_now):
 *             the trace's times
 *   user      the time that the program sees (clock_user): the record clock's
 *             progress times --host-speed. It jumps forward when the program
 *             waits for the GPU or calls the driver, by the simulation's time
 *             (live.h)
 *
 * All threads of a process have one user clock: whatever time one of them was
 * given, none is given an earlier one later. Where the record clock is set back
 * (clock_gap.h) behind such a time, the user clock runs slower until both agree
 * again. Where it jumps, it stops at each time for which a thread waits
 * (clock_sleep.h).
 *
 * Processes that use no GPU have the user clock of that process of the run that
 * is furthest ahead. Without a simulation the user clock is the host's. */
#ifndef MEMSIM_CAPTURE_CORE_RUN_CLOCK_H
#define MEMSIM_CAPTURE_CORE_RUN_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "capture/core/base/core.h"
#include "capture/core/run/clock_log.h"

/* Of the record clock, behind the host's. */
extern _Atomic uint64_t clock_held_ns;

/* clock_gettime(2) of the C library: ours stands before it. */
extern int (*clock_real)(clockid_t clock, struct timespec *t);

/* The host's own clocks, whatever is set: for figures that other processes
 * compare with theirs. CLOCK is CLOCK_MONOTONIC or the like. */
static inline uint64_t clock_host(clockid_t clock)
{
    struct timespec t;

    clock_real(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static inline uint64_t clock_record(clockid_t clock)
{
    uint64_t host_ns = clock_host(clock);

    return host_ns -
           atomic_load_explicit(&clock_held_ns, memory_order_relaxed);
}

static inline uint64_t clock_now(void)
{
    return clock_record(CLOCK_MONOTONIC);
}

/* The same, some milliseconds behind, and cheaper. */
static inline uint64_t clock_now_coarse(void)
{
    return clock_record(CLOCK_MONOTONIC_COARSE);
}

#define CLOCK_S UINT64_C(1000000000)

static inline uint64_t clock_ns_of(const struct timespec *t)
{
    return (uint64_t)t->tv_sec * CLOCK_S + (uint64_t)t->tv_nsec;
}

static inline struct timespec clock_timespec(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / CLOCK_S),
                             .tv_nsec = (long)(ns % CLOCK_S)};
}

/* Whether T can be a time, so that a wait for it has an end. */
static inline bool clock_is_time(const struct timespec *t)
{
    return t && t->tv_sec >= 0 && t->tv_nsec >= 0 &&
           (uint64_t)t->tv_nsec < CLOCK_S &&
           t->tv_sec < (time_t)(INT64_MAX / CLOCK_S);
}

/* For the fake libraries: clock_now(), and the user clock since 1970. */
CORE_API uint64_t memsim_clock_now(void);
CORE_API uint64_t memsim_clock_unix(void);

/* What CLOCK is ahead of the monotonic one, on the host and for the program. */
uint64_t clock_distance(clockid_t clock);

/* USER_NS of the user's monotonic clock, since 1970. */
uint64_t clock_unix_of(uint64_t user_ns);

/* --- the user clock ------------------------------------------------------- */

/* Whether the user clock is another one than the host's. */
bool clock_is_ahead(void);

/* Whether it is, or may be once a process uses the GPU: a wait that begins
 * before is to be woken by a jump, too. */
bool clock_may_move(void);

/* The user clock where the host's monotonic one is HOST_NS. */
uint64_t clock_user_at(uint64_t host_ns);

/* The line that it is on, from now on. */
struct clock_line clock_line_now(void);

/* The user clock, given to the calling thread: no thread gets an earlier time
 * later. */
uint64_t clock_tell(uint64_t host_ns);

/* What clock_tell would give. */
uint64_t clock_peek(uint64_t host_ns);

/* The same now, a gap before it looked into (clock_wait.c). */
uint64_t clock_user_peek(void);

/* The calling thread knows that it is USER_NS at least; that NS have passed
 * since it was given a time at last. */
void clock_told(uint64_t user_ns);
void clock_told_passed(uint64_t ns);

/* The time until USER_NS has passed, which the simulation does not know: the
 * user clock goes on from there. */
void clock_put_forward(uint64_t user_ns);

/* Whether nothing was published for CLOCK_GAP_NS before HOST_NS. */
bool clock_line_is_old(uint64_t host_ns);

/* When a line was published at last, on the host's clock: the process used the
 * GPU. 0: it never did. */
uint64_t clock_published(void);

/* How fast the user clock is: of CLOCK_ONE. */
#define CLOCK_ONE (UINT64_C(1) << CLOCK_FACTOR_BITS)
uint64_t clock_line_factor(void);

/* The calling thread, which holds no lock, waits for other ranks, in this
 * machine's time; or does so no more since START_NS, which the first returned.
 * The user clock stands still meanwhile, and nobody puts it forward. */
uint64_t clock_waits_begin(void);
void clock_waits_end(uint64_t start_ns);
bool clock_is_frozen(void);

/* --- for clock_sleep.c ---------------------------------------------------- */

#define CLOCK_NEVER UINT64_MAX

/* The first time for which a thread waits. */
extern _Atomic uint64_t clock_waited_ns;

/* The user clock does not pass USER_NS; CLOCK_NEVER: it goes on. */
void clock_stop_at(uint64_t user_ns);
bool clock_is_stopped(void);

/* The user clock at HOST_NS, if it had not stopped. */
uint64_t clock_line_end(uint64_t host_ns);

/* --- for live.c, under LOCK_RECORD ---------------------------------------- */

/* The user clock is on LINE from its HOST_NS on, which is now. Returns the
 * USER_NS: later by what the clock was put forward, and where it is PROFILED by
 * its lead, too. Where a thread waits for a time before it, the clock has
 * stopped there: clock_sleep_serve() lets it go on. */
uint64_t clock_publish(const struct clock_line *line, bool profiled);

/* Likewise: the user clock stands still until a line is published, or until it
 * goes on after memsim's own SLEPT_NS. */
void clock_freeze(void);
void clock_go_on(uint64_t slept_ns);

/* Likewise: at HOST_NS the clock had passed BY_NS too many. Not where there is
 * no simulation. */
void clock_set_back(uint64_t host_ns, uint64_t by_ns);

/* The record clock was RECORD_NS when the host's came to HOST_NS. */
void clock_hold(uint64_t host_ns, uint64_t record_ns);

/* The simulation has ended: the user clock goes on as the host's does. */
void clock_release(void);

/* In a forked child: it has no simulation. */
void clock_after_fork(void);

#endif
