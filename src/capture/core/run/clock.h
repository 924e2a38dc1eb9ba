/* SPDX-License-Identifier: Apache-2.0
 * What time it is for the program: the times of records and events, and
 * whether work is done, all come from here. It is the host's monotonic clock
 * unless another one is set: a simulated clock is plugged in at this place
 * alone. All times are in nanoseconds. */
#ifndef MEMSIM_CAPTURE_CLOCK_H
#define MEMSIM_CAPTURE_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "capture/core/base/core.h"

/* Another clock. Both functions are called from any thread, at any time, with
 * locks of the core held. */
struct clock_source {
    uint64_t (*now)(void);              /* never decreases on one thread */
    void (*wait_until)(uint64_t at_ns); /* the calling thread waits */
};

/* NULL: the host's clock. Set it before the process's first record. */
extern const struct clock_source *clock_source;

/* The host's own clocks, whatever is set: for figures that other processes
 * compare with theirs. CLOCK is CLOCK_MONOTONIC or the like. */
static inline uint64_t clock_host(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static inline uint64_t clock_now(void)
{
    if (clock_source)
        return clock_source->now();
    return clock_host(CLOCK_MONOTONIC);
}

/* The same; of the host's clock one that is some milliseconds behind, and
 * cheaper. */
static inline uint64_t clock_now_coarse(void)
{
    if (clock_source)
        return clock_source->now();
    return clock_host(CLOCK_MONOTONIC_COARSE);
}

/* The calling thread waits until AT_NS. Nothing waits for the host's clock:
 * where no other one is set, work is done when it is given. */
static inline void clock_wait_until(uint64_t at_ns)
{
    if (clock_source)
        clock_source->wait_until(at_ns);
}

/* For the fake libraries: clock_now(), and the same moment since 1970. */
CORE_API uint64_t memsim_clock_now(void);
CORE_API uint64_t memsim_clock_unix(void);

#endif
