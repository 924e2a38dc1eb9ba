/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/run/clock_wait.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "capture/core/base/core.h"
#include "capture/core/base/lock.h"
#include "capture/core/run/clock.h"
#include "capture/core/run/clock_gap.h"
#include "capture/core/run/loader.h"
#include "capture/core/run/record_put.h"

#define NS_OF_S UINT64_C(1000000000)

/* A program that does nothing but look at a clock that stands still
 * (--host-speed 0) waits for a time: after so many looks each takes SPIN_NS. */
#define SPIN_LOOKS 10000
#define SPIN_NS    1000

/* What this thread's clock is ahead of the process's. Where the thread works,
 * the process's follows when it is looked at: what a profiler shows of its work
 * is on that one. */
static _Thread_local uint64_t ahead_ns;
static _Thread_local uint64_t looked_ns; /* at last, without AHEAD_NS ... */
static _Thread_local uint32_t looks;     /* ... so many times */

/* A program that looks at the time after a long gap is to see it without what
 * clock_gap.h takes out of it: the next record would be too late. Not from a
 * signal's handler that interrupts the writer of records, nor from a thread
 * other than the last that worked: the gap is not its own. */
static void gap_look(uint64_t host_ns)
{
    uint64_t held_ns =
        atomic_load_explicit(&clock_held_ns, memory_order_relaxed);

    if (record_worker != record_thread() || !core_trylock(LOCK_RECORD))
        return;
    uint64_t now_ns = host_ns - held_ns;
    if (clock_gap_is_long(record_writer.time_ns, now_ns)) {
        clock_gap(record_writer.time_ns, now_ns);
        clock_set_back(host_ns, atomic_load_explicit(&clock_held_ns,
                                                     memory_order_relaxed) -
                                    held_ns);
    }
    core_unlock(LOCK_RECORD);
}

uint64_t clock_user_now(void)
{
    uint64_t host_ns = clock_host(CLOCK_MONOTONIC);

    if (clock_line_is_old(host_ns))
        gap_look(host_ns);
    uint64_t now_ns = clock_tell(host_ns, record_worked);

    looks = now_ns == looked_ns ? looks + 1 : 0;
    looked_ns = now_ns;
    if (looks > SPIN_LOOKS)
        ahead_ns += SPIN_NS;
    now_ns += ahead_ns;
    if (ahead_ns && record_worked) {
        clock_put_forward(now_ns);
        looked_ns = now_ns;
        ahead_ns = 0;
    }
    return now_ns;
}

/* --- what a wait begins and ends with ------------------------------------- */

struct wait {
    uint64_t host_ns, user_ns; /* at its start */
};

static struct wait wait_begin(void)
{
    return (struct wait){clock_host(CLOCK_MONOTONIC), clock_user_now()};
}

/* The wait W, of FOR_NS by the user clock, is over. */
static void wait_passed(const struct wait *w, uint64_t for_ns)
{
    uint64_t now_ns = clock_user_now();
    int error = errno;

    clock_slept(clock_host(CLOCK_MONOTONIC) - w->host_ns);
    if (now_ns - w->user_ns < for_ns)
        ahead_ns += for_ns - (now_ns - w->user_ns);
    errno = error;
}

static uint64_t timespec_ns(const struct timespec *t)
{
    return (uint64_t)t->tv_sec * NS_OF_S + (uint64_t)t->tv_nsec;
}

static bool is_time(const struct timespec *t)
{
    return t && t->tv_sec >= 0 && t->tv_nsec >= 0 &&
           (uint64_t)t->tv_nsec < NS_OF_S &&
           t->tv_sec < (time_t)(INT64_MAX / NS_OF_S);
}

/* From now until DEADLINE, on whichever of the clocks that is. */
static uint64_t left_until(clockid_t clock, const struct timespec *deadline)
{
    uint64_t now_ns = clock_user(clock), at_ns = timespec_ns(deadline);

    return at_ns > now_ns ? at_ns - now_ns : 0;
}

/* DEADLINE of the user's CLOCK, on the host's. */
static struct timespec host_deadline(clockid_t clock,
                                     const struct timespec *deadline)
{
    uint64_t at_ns = clock_host(clock) + left_until(clock, deadline);

    return (struct timespec){.tv_sec = (time_t)(at_ns / NS_OF_S),
                             .tv_nsec = (long)(at_ns % NS_OF_S)};
}

/* --- sleeping ------------------------------------------------------------- */

CORE_API int clock_nanosleep(clockid_t clock, int flags,
                             const struct timespec *t, struct timespec *left)
{
    if (!clock_is_ahead() || !clock_is_moved(clock) || !is_time(t))
        return REAL(clock_nanosleep)(clock, flags, t, left);
    const struct wait w = wait_begin();
    bool absolute = flags & TIMER_ABSTIME;
    struct timespec at = absolute ? host_deadline(clock, t) : *t;
    uint64_t for_ns = absolute ? left_until(clock, t) : timespec_ns(t);
    int rc = REAL(clock_nanosleep)(clock, flags, &at, left);
    if (!rc)
        wait_passed(&w, for_ns);
    return rc;
}

CORE_API int nanosleep(const struct timespec *t, struct timespec *left)
{
    int rc;

    if (!clock_is_ahead() || !is_time(t))
        return REAL(nanosleep)(t, left);
    rc = clock_nanosleep(CLOCK_MONOTONIC, 0, t, left);
    if (rc)
        errno = rc;
    return rc ? -1 : 0;
}

CORE_API int usleep(useconds_t us)
{
    const struct timespec t = {us / 1000000, us % 1000000 * 1000};

    return nanosleep(&t, NULL);
}

CORE_API unsigned sleep(unsigned seconds)
{
    struct timespec t = {seconds, 0};

    return nanosleep(&t, &t) ? (unsigned)t.tv_sec + (t.tv_nsec > 0) : 0;
}

/* --- files ---------------------------------------------------------------- */

/* RESULT of a call that waited for files, MS at most. */
#define TIMED_OUT_MS(w, result, ms)                                            \
    ({                                                                         \
        if ((result) == 0 && (ms) > 0)                                         \
            wait_passed(&(w), (uint64_t)(ms) * 1000000);                       \
        result;                                                                \
    })

#define TIMED_OUT(w, result, t)                                                \
    ({                                                                         \
        if ((result) == 0 && is_time(t))                                       \
            wait_passed(&(w), timespec_ns(t));                                 \
        result;                                                                \
    })

CORE_API int poll(struct pollfd *files, nfds_t count, int ms)
{
    if (!clock_is_ahead())
        return REAL(poll)(files, count, ms);
    const struct wait w = wait_begin();
    int rc = REAL(poll)(files, count, ms);
    return TIMED_OUT_MS(w, rc, ms);
}

CORE_API int ppoll(struct pollfd *files, nfds_t count, const struct timespec *t,
                   const sigset_t *mask)
{
    if (!clock_is_ahead())
        return REAL(ppoll)(files, count, t, mask);
    const struct wait w = wait_begin();
    int rc = REAL(ppoll)(files, count, t, mask);
    return TIMED_OUT(w, rc, t);
}

CORE_API int epoll_wait(int file, struct epoll_event *events, int most, int ms)
{
    if (!clock_is_ahead())
        return REAL(epoll_wait)(file, events, most, ms);
    const struct wait w = wait_begin();
    int rc = REAL(epoll_wait)(file, events, most, ms);
    return TIMED_OUT_MS(w, rc, ms);
}

CORE_API int epoll_pwait(int file, struct epoll_event *events, int most, int ms,
                         const sigset_t *mask)
{
    if (!clock_is_ahead())
        return REAL(epoll_pwait)(file, events, most, ms, mask);
    const struct wait w = wait_begin();
    int rc = REAL(epoll_pwait)(file, events, most, ms, mask);
    return TIMED_OUT_MS(w, rc, ms);
}

CORE_API int select(int count, fd_set *in, fd_set *out, fd_set *other,
                    struct timeval *t)
{
    if (!clock_is_ahead() || !t)
        return REAL(select)(count, in, out, other, t);
    const struct wait w = wait_begin();
    const struct timespec most = {t->tv_sec, t->tv_usec * 1000};
    int rc = REAL(select)(count, in, out, other, t);
    return TIMED_OUT(w, rc, &most);
}

CORE_API int pselect(int count, fd_set *in, fd_set *out, fd_set *other,
                     const struct timespec *t, const sigset_t *mask)
{
    if (!clock_is_ahead())
        return REAL(pselect)(count, in, out, other, t, mask);
    const struct wait w = wait_begin();
    int rc = REAL(pselect)(count, in, out, other, t, mask);
    return TIMED_OUT(w, rc, t);
}

/* --- deadlines ------------------------------------------------------------ */

/* The clock that a deadline is on, where the call does not say: those since
 * 1970 are later than those since the start of the machine. */
static clockid_t clock_of(const struct timespec *deadline)
{
    return timespec_ns(deadline) > clock_user(CLOCK_REALTIME) / 2
               ? CLOCK_REALTIME
               : CLOCK_MONOTONIC;
}

/* CALL, which uses AT_, with the deadline T of CLOCK on the host's clock; where
 * its result is TIMEOUT, the time has passed. */
#define UNTIL(clock_, t, timed_out, call, otherwise)                           \
    ({                                                                         \
        __typeof__(otherwise) rc_;                                             \
        if (!clock_is_ahead() || !is_time(t)) {                                \
            rc_ = otherwise;                                                   \
        } else {                                                               \
            const clockid_t on_ = clock_;                                      \
            const struct wait w_ = wait_begin();                               \
            const uint64_t for_ = left_until(on_, t);                          \
            const struct timespec at_ = host_deadline(on_, t);                 \
            rc_ = call;                                                        \
            if (timed_out)                                                     \
                wait_passed(&w_, for_);                                        \
        }                                                                      \
        rc_;                                                                   \
    })

/* Of functions that return an error, and of those that set errno. */
#define RETURNS rc_ == ETIMEDOUT
#define SETS    rc_ == -1 && errno == ETIMEDOUT

/* A function that this C library may lack, or have in an older version too,
 * which dlsym() might find. */
#define REAL_VERSION(name, version)                                            \
    ({                                                                         \
        static __typeof__(&name) of_version_;                                  \
        if (!of_version_)                                                      \
            of_version_ = (__typeof__(&name))dlvsym(RTLD_NEXT, #name, version);\
        of_version_ ? of_version_ : REAL(name);                                \
    })

CORE_API int pthread_cond_timedwait(pthread_cond_t *restrict cond,
                                    pthread_mutex_t *restrict mutex,
                                    const struct timespec *restrict t)
{
    __typeof__(&pthread_cond_timedwait) real =
        REAL_VERSION(pthread_cond_timedwait, "GLIBC_2.3.2");

    return UNTIL(clock_of(t), t, RETURNS, real(cond, mutex, &at_),
                 real(cond, mutex, t));
}

CORE_API int pthread_cond_clockwait(pthread_cond_t *restrict cond,
                                    pthread_mutex_t *restrict mutex,
                                    clockid_t clock,
                                    const struct timespec *restrict t)
{
    __typeof__(&pthread_cond_clockwait) real = REAL(pthread_cond_clockwait);

    if (!real)
        return EINVAL;
    return UNTIL(clock, t, RETURNS, real(cond, mutex, clock, &at_),
                 real(cond, mutex, clock, t));
}

CORE_API int sem_timedwait(sem_t *restrict sem,
                           const struct timespec *restrict t)
{
    return UNTIL(CLOCK_REALTIME, t, SETS, REAL(sem_timedwait)(sem, &at_),
                 REAL(sem_timedwait)(sem, t));
}

CORE_API int sem_clockwait(sem_t *restrict sem, clockid_t clock,
                           const struct timespec *restrict t)
{
    __typeof__(&sem_clockwait) real = REAL(sem_clockwait);

    if (!real) {
        errno = ENOSYS;
        return -1;
    }
    return UNTIL(clock, t, SETS, real(sem, clock, &at_), real(sem, clock, t));
}

CORE_API int pthread_mutex_timedlock(pthread_mutex_t *restrict mutex,
                                     const struct timespec *restrict t)
{
    return UNTIL(CLOCK_REALTIME, t, RETURNS,
                 REAL(pthread_mutex_timedlock)(mutex, &at_),
                 REAL(pthread_mutex_timedlock)(mutex, t));
}

CORE_API int pthread_mutex_clocklock(pthread_mutex_t *restrict mutex,
                                     clockid_t clock,
                                     const struct timespec *restrict t)
{
    __typeof__(&pthread_mutex_clocklock) real = REAL(pthread_mutex_clocklock);

    if (!real)
        return EINVAL;
    return UNTIL(clock, t, RETURNS, real(mutex, clock, &at_),
                 real(mutex, clock, t));
}

CORE_API int pthread_rwlock_timedrdlock(pthread_rwlock_t *restrict lock,
                                        const struct timespec *restrict t)
{
    return UNTIL(CLOCK_REALTIME, t, RETURNS,
                 REAL(pthread_rwlock_timedrdlock)(lock, &at_),
                 REAL(pthread_rwlock_timedrdlock)(lock, t));
}

CORE_API int pthread_rwlock_timedwrlock(pthread_rwlock_t *restrict lock,
                                        const struct timespec *restrict t)
{
    return UNTIL(CLOCK_REALTIME, t, RETURNS,
                 REAL(pthread_rwlock_timedwrlock)(lock, &at_),
                 REAL(pthread_rwlock_timedwrlock)(lock, t));
}

CORE_API int pthread_timedjoin_np(pthread_t thread, void **result,
                                  const struct timespec *t)
{
    return UNTIL(CLOCK_REALTIME, t, RETURNS,
                 REAL(pthread_timedjoin_np)(thread, result, &at_),
                 REAL(pthread_timedjoin_np)(thread, result, t));
}

/* --- timers --------------------------------------------------------------- */

/* A timer that is set to a time is moved to the host's clock; one that waits
 * for so long needs nothing. */
CORE_API int timerfd_settime(int file, int flags, const struct itimerspec *t,
                             struct itimerspec *old)
{
    struct itimerspec at;

    if (!(flags & TFD_TIMER_ABSTIME) || !clock_is_ahead() || !t ||
        !is_time(&t->it_value) || !timespec_ns(&t->it_value))
        return REAL(timerfd_settime)(file, flags, t, old);
    at = *t;
    at.it_value = host_deadline(clock_of(&t->it_value), &t->it_value);
    return REAL(timerfd_settime)(file, flags, &at, old);
}
