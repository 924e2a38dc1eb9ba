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
 * Processes that use no GPU have the user clock of that process of the run that
 * is furthest ahead. Without a simulation the user clock is the host's. */
#ifndef MEMSIM_CAPTURE_CLOCK_H
#define MEMSIM_CAPTURE_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "capture/core/base/core.h"

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

/* For the fake libraries: clock_now(), and the user clock since 1970. */
CORE_API uint64_t memsim_clock_now(void);
CORE_API uint64_t memsim_clock_unix(void);

/* --- the user clock ------------------------------------------------------- */

/* Whether the user clock is another one than the host's. */
bool clock_is_ahead(void);

/* The user clock where the host's monotonic one is HOST_NS. */
uint64_t clock_user_at(uint64_t host_ns);

/* The same, returned to the calling thread: it never gets an earlier time
 * later. Nor does another thread, if this one WORKS. One that only waits and
 * looks, like PyTorch's watchdogs, looks while others wait for a CPU: it may be
 * ahead. */
uint64_t clock_tell(uint64_t host_ns, bool works);

/* Whether nothing was published for CLOCK_GAP_NS before HOST_NS. */
#define CLOCK_GAP_NS 500000
bool clock_line_is_old(uint64_t host_ns);

/* --- for live.c, under LOCK_RECORD ---------------------------------------- */

/* From HOST_NS on, which is now, the user clock is USER_NS and goes on by
 * FACTOR, in units of 2^-CLOCK_FACTOR_BITS, for each nanosecond of the host's.
 * Returns USER_NS, or the last time given to the program if that is later. */
#define CLOCK_FACTOR_BITS 32
uint64_t clock_publish(uint64_t host_ns, uint64_t user_ns, uint64_t factor);

/* Likewise: at HOST_NS the clock had passed BY_NS too many. */
void clock_set_back(uint64_t host_ns, uint64_t by_ns);

/* The record clock was RECORD_NS when the host's came to HOST_NS. */
void clock_hold(uint64_t host_ns, uint64_t record_ns);

/* The simulation has ended: the user clock goes on as the host's does. */
void clock_release(void);

/* In a forked child: it has no simulation. */
void clock_after_fork(void);

#endif
