/* SPDX-License-Identifier: Apache-2.0
 * Waits of the program for a time, on the user clock. Such a wait is over when
 * the user clock is there, and where the clock jumps over that time, at once
 * (clock_sleep.h). A wait that this machine's clock ends sooner than the user
 * clock goes on, unless the process does nothing: then the user clock is put
 * forward. */
#ifndef MEMSIM_CAPTURE_CORE_RUN_CLOCK_WAIT_H
#define MEMSIM_CAPTURE_CORE_RUN_CLOCK_WAIT_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "capture/core/run/clock_sleep.h"

/* Whether CLOCK is one that the user clock moves. */
bool clock_is_moved(clockid_t clock);

/* The user clock, and as CLOCK shows it. */
uint64_t clock_user_now(void);
uint64_t clock_user(clockid_t clock);

/* --- for the functions that wait ------------------------------------------ */

struct clock_wait {
    uint64_t until_ns; /* on the user clock */
    uint64_t for_ns;   /* how long that was; 0: until that time */
    uint64_t from_ns;  /* the host's clock, when it or this part of it began */
    uint64_t end_ns;   /* ... and where that ends, by the host's clock alone */
    uint64_t cpu_ns;   /* of the process, there */
    bool woken;        /* a jump has ended it */
    enum sleep_way way;
};

/* For FOR_NS from now on; until the user's CLOCK shows T. */
struct clock_wait clock_wait_for(uint64_t for_ns, enum sleep_way way);
struct clock_wait clock_wait_until(clockid_t clock, const struct timespec *t,
                                   enum sleep_way way);

/* The same in a wait for COND, which BROADCAST(COND) ends. */
struct clock_wait clock_wait_cond(clockid_t clock, const struct timespec *t,
                                  void *cond, int (*broadcast)(void *cond));

/* The clock on which the deadline T is, where the call does not say: those
 * since 1970 are later than those since the start of the machine. */
clockid_t clock_of(const struct timespec *t);

/* Of the user clock, what is left of W; and how long that is, and when it ends,
 * on the host's. */
uint64_t clock_wait_left(const struct clock_wait *w);
uint64_t clock_wait_host(const struct clock_wait *w);
struct timespec clock_wait_deadline(const struct clock_wait *w,
                                    clockid_t clock);

/* The call of the C library's that waited has returned; TIMED_OUT: because the
 * host's deadline has come. Returns true where it is to be made once more. If
 * not, W has ended. */
bool clock_wait_again(struct clock_wait *w, bool timed_out);

/* RC of CALL, which waits until W is over; it TIMED_OUT where that is so. A
 * jump ends it with EINTR, which INTERRUPTED tells: then TIME_OUT. */
#define CLOCK_WAIT(w, rc, call, timed_out, interrupted, time_out)              \
    ({                                                                         \
        __typeof__(call) rc;                                                   \
        do                                                                     \
            rc = call;                                                         \
        while (clock_wait_again(&(w), timed_out));                             \
        if ((w).woken && (interrupted))                                        \
            time_out;                                                          \
        rc;                                                                    \
    })

#endif
