/* SPDX-License-Identifier: Apache-2.0
 * The C library's clocks, as the program sees them: on the user clock. Clocks
 * of CPU time are the host's, and so are the times of files. */
#include <errno.h>
#include <sys/time.h>
#include <time.h>

#include "capture/core/base/core.h"
#include "capture/core/run/clock.h"
#include "capture/core/run/clock_wait.h"

static bool shows_time_of_day(clockid_t clock)
{
    return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE ||
           clock == CLOCK_TAI;
}

bool clock_is_moved(clockid_t clock)
{
    switch (clock) {
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME:
        return true;
    default:
        return shows_time_of_day(clock);
    }
}

/* Found once, so that the program's clocks keep their distance. */
uint64_t clock_distance(clockid_t clock)
{
    static _Atomic uint64_t distances[CLOCK_TAI + 1];
    uint64_t distance =
        atomic_load_explicit(&distances[clock], memory_order_relaxed);

    if (distance || clock == CLOCK_MONOTONIC)
        return distance;
    uint64_t now_ns = clock_host(CLOCK_MONOTONIC);
    distance = clock_host(clock) - now_ns;
    atomic_store_explicit(&distances[clock], distance, memory_order_relaxed);
    return distance;
}

uint64_t clock_user(clockid_t clock)
{
    return clock_user_now() + clock_distance(clock);
}

uint64_t clock_unix_of(uint64_t user_ns)
{
    return user_ns + clock_distance(CLOCK_REALTIME);
}

uint64_t memsim_clock_unix(void)
{
    return clock_is_ahead() ? clock_user(CLOCK_REALTIME)
                            : clock_host(CLOCK_REALTIME);
}

CORE_API int clock_gettime(clockid_t clock, struct timespec *t)
{
    if (!clock_is_ahead() || !clock_is_moved(clock))
        return clock_real(clock, t);
    *t = clock_timespec(clock_user(clock));
    return 0;
}

CORE_API int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
    struct timespec now;

    if (zone)
        *(struct timezone *)zone = (struct timezone){0};
    clock_gettime(CLOCK_REALTIME, &now);
    *t = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return 0;
}

CORE_API time_t time(time_t *t)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    if (t)
        *t = now.tv_sec;
    return now.tv_sec;
}

CORE_API int timespec_get(struct timespec *t, int base)
{
    if (base != TIME_UTC)
        return 0;
    return clock_gettime(CLOCK_REALTIME, t) ? 0 : base;
}
