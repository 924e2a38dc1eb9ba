/* SPDX-License-Identifier: Apache-2.0
 * Waits until a deadline on the user clock: of POSIX, of C11, and futex(2). */
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "capture/core/base/core.h"
#include "capture/core/base/raw_call.h"
#include "capture/core/run/clock.h"
#include "capture/core/run/clock_wait.h"
#include "capture/core/run/loader.h"

/* A wait that a signal does not end, as for a lock: it looks so often whether
 * the time has come. */
#define SLICE_NS 10000000

/* CALL, which uses AT_, with what is left until the deadline T of CLOCK on the
 * host's clock. */
#define UNTIL(clock_, t, wait_, call, timed_out, interrupted, time_out,        \
              otherwise)                                                       \
    ({                                                                         \
        __typeof__(otherwise) result_;                                         \
        if (!clock_may_move() || !clock_is_time(t)) {                          \
            result_ = otherwise;                                               \
        } else {                                                               \
            const clockid_t on_ = clock_;                                      \
            struct timespec at_;                                               \
            struct clock_wait w_ = wait_;                                      \
            result_ = CLOCK_WAIT(w_, rc_,                                      \
                                 (at_ = clock_wait_deadline(&w_, on_), call),  \
                                 timed_out, interrupted, time_out);            \
        }                                                                      \
        result_;                                                               \
    })

/* Functions that set errno: a signal ends their wait. */
#define UNTIL_SETS(clock, t, call, otherwise)                                  \
    UNTIL(clock, t, clock_wait_until(on_, t, SLEEP_SIGNAL), call,              \
          rc_ == -1 && errno == ETIMEDOUT, rc_ == -1 && errno == EINTR,        \
          errno = ETIMEDOUT, otherwise)

/* Those of condition variables. One that a jump wakes returns as if its
 * condition had been signalled, which may be for no reason; when it waits once
 * more, its deadline has passed. */
#define UNTIL_COND(clock, t, cond, broadcast, timed_out, call, otherwise)      \
    UNTIL(clock, t, clock_wait_cond(on_, t, cond, broadcast), call,            \
          rc_ == (timed_out), false, (void)0, otherwise)

#define UNTIL_SLICES(clock, t, timed_out, call, otherwise)                     \
    UNTIL(clock, t, clock_wait_until(on_, t, SLEEP_ALONE),                     \
          (slice_wait(&at_, on_), call), timed_out, false, (void)0, otherwise)

#define UNTIL_LOCK(clock, t, error, call, otherwise)                           \
    UNTIL_SLICES(clock, t, rc_ == (error), call, otherwise)

/* A queue's calls are made again after a signal. */
#define UNTIL_QUEUE(t, call, otherwise)                                        \
    UNTIL_SLICES(CLOCK_REALTIME, t, rc_ == -1 && errno == ETIMEDOUT, call,     \
                 otherwise)

static void slice_wait(struct timespec *at, clockid_t clock)
{
    uint64_t most_ns = clock_host(clock) + SLICE_NS;

    if (clock_ns_of(at) > most_ns)
        *at = clock_timespec(most_ns);
}

/* A function that this C library may lack, or have in an older version too,
 * which dlsym() might find. */
#define REAL_VERSION(name, version)                                            \
    ({                                                                         \
        static __typeof__(&name) of_version_;                                  \
        if (!of_version_)                                                      \
            of_version_ = (__typeof__(&name))dlvsym(RTLD_NEXT, #name, version);\
        of_version_ ? of_version_ : REAL(name);                                \
    })

/* --- condition variables -------------------------------------------------- */

static int cond_wake(void *cond)
{
    return REAL_VERSION(pthread_cond_broadcast, "GLIBC_2.3.2")(cond);
}

static int cnd_wake(void *cond)
{
    return REAL(cnd_broadcast)(cond);
}

CORE_API int pthread_cond_timedwait(pthread_cond_t *restrict cond,
                                    pthread_mutex_t *restrict mutex,
                                    const struct timespec *restrict t)
{
    __typeof__(&pthread_cond_timedwait) real =
        REAL_VERSION(pthread_cond_timedwait, "GLIBC_2.3.2");

    return UNTIL_COND(clock_of(t), t, cond, cond_wake, ETIMEDOUT,
                      real(cond, mutex, &at_), real(cond, mutex, t));
}

CORE_API int pthread_cond_clockwait(pthread_cond_t *restrict cond,
                                    pthread_mutex_t *restrict mutex,
                                    clockid_t clock,
                                    const struct timespec *restrict t)
{
    __typeof__(&pthread_cond_clockwait) real = REAL(pthread_cond_clockwait);

    if (!real)
        return EINVAL;
    return UNTIL_COND(clock, t, cond, cond_wake, ETIMEDOUT,
                      real(cond, mutex, clock, &at_),
                      real(cond, mutex, clock, t));
}

CORE_API int cnd_timedwait(cnd_t *restrict cond, mtx_t *restrict mutex,
                           const struct timespec *restrict t)
{
    return UNTIL_COND(CLOCK_REALTIME, t, cond, cnd_wake, thrd_timedout,
                      REAL(cnd_timedwait)(cond, mutex, &at_),
                      REAL(cnd_timedwait)(cond, mutex, t));
}

CORE_API int pthread_cond_destroy(pthread_cond_t *cond)
{
    clock_sleep_forget(cond);
    return REAL_VERSION(pthread_cond_destroy, "GLIBC_2.3.2")(cond);
}

CORE_API void cnd_destroy(cnd_t *cond)
{
    clock_sleep_forget(cond);
    REAL(cnd_destroy)(cond);
}

/* --- semaphores and queues ------------------------------------------------ */

CORE_API int sem_timedwait(sem_t *restrict sem,
                           const struct timespec *restrict t)
{
    return UNTIL_SETS(CLOCK_REALTIME, t, REAL(sem_timedwait)(sem, &at_),
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
    return UNTIL_SETS(clock, t, real(sem, clock, &at_), real(sem, clock, t));
}

CORE_API ssize_t mq_timedreceive(mqd_t queue, char *restrict text,
                                 size_t bytes, unsigned *restrict priority,
                                 const struct timespec *restrict t)
{
    return UNTIL_QUEUE(t,
                       REAL(mq_timedreceive)(queue, text, bytes, priority,
                                             &at_),
                       REAL(mq_timedreceive)(queue, text, bytes, priority, t));
}

CORE_API int mq_timedsend(mqd_t queue, const char *text, size_t bytes,
                          unsigned priority, const struct timespec *t)
{
    return UNTIL_QUEUE(t,
                       REAL(mq_timedsend)(queue, text, bytes, priority, &at_),
                       REAL(mq_timedsend)(queue, text, bytes, priority, t));
}

/* --- locks and threads ---------------------------------------------------- */

#define LOCK_UNTIL(name, type)                                                 \
    CORE_API int name(type *restrict lock, const struct timespec *restrict t)  \
    {                                                                          \
        return UNTIL_LOCK(CLOCK_REALTIME, t, ETIMEDOUT,                        \
                          REAL(name)(lock, &at_), REAL(name)(lock, t));        \
    }

#define LOCK_CLOCK(name, type)                                                 \
    CORE_API int name(type *restrict lock, clockid_t clock,                    \
                      const struct timespec *restrict t)                       \
    {                                                                          \
        __typeof__(&name) real = REAL(name);                                   \
                                                                               \
        if (!real)                                                             \
            return EINVAL;                                                     \
        return UNTIL_LOCK(clock, t, ETIMEDOUT, real(lock, clock, &at_),        \
                          real(lock, clock, t));                               \
    }

LOCK_UNTIL(pthread_mutex_timedlock, pthread_mutex_t)
LOCK_UNTIL(pthread_rwlock_timedrdlock, pthread_rwlock_t)
LOCK_UNTIL(pthread_rwlock_timedwrlock, pthread_rwlock_t)
LOCK_CLOCK(pthread_mutex_clocklock, pthread_mutex_t)
LOCK_CLOCK(pthread_rwlock_clockrdlock, pthread_rwlock_t)
LOCK_CLOCK(pthread_rwlock_clockwrlock, pthread_rwlock_t)

CORE_API int mtx_timedlock(mtx_t *restrict lock,
                           const struct timespec *restrict t)
{
    return UNTIL_LOCK(CLOCK_REALTIME, t, thrd_timedout,
                      REAL(mtx_timedlock)(lock, &at_),
                      REAL(mtx_timedlock)(lock, t));
}

CORE_API int pthread_timedjoin_np(pthread_t thread, void **result,
                                  const struct timespec *t)
{
    return UNTIL_LOCK(CLOCK_REALTIME, t, ETIMEDOUT,
                      REAL(pthread_timedjoin_np)(thread, result, &at_),
                      REAL(pthread_timedjoin_np)(thread, result, t));
}

CORE_API int pthread_clockjoin_np(pthread_t thread, void **result,
                                  clockid_t clock, const struct timespec *t)
{
    __typeof__(&pthread_clockjoin_np) real = REAL(pthread_clockjoin_np);

    if (!real)
        return EINVAL;
    return UNTIL_LOCK(clock, t, ETIMEDOUT, real(thread, result, clock, &at_),
                      real(thread, result, clock, t));
}

/* --- timers --------------------------------------------------------------- */

/* A timer that is set to a time is moved to the host's clock; one that waits
 * for so long needs nothing. */
static struct itimerspec timer_moved(const struct itimerspec *t,
                                     clockid_t clock)
{
    struct itimerspec at = *t;
    struct clock_wait w = clock_wait_until(clock, &t->it_value, SLEEP_ALONE);

    at.it_value = clock_wait_deadline(&w, clock);
    return at;
}

CORE_API int timerfd_settime(int file, int flags, const struct itimerspec *t,
                             struct itimerspec *old)
{
    if (!(flags & TFD_TIMER_ABSTIME) || !clock_may_move() || !t ||
        !clock_is_time(&t->it_value) || !clock_ns_of(&t->it_value))
        return REAL(timerfd_settime)(file, flags, t, old);
    const struct itimerspec at = timer_moved(t, clock_of(&t->it_value));
    return REAL(timerfd_settime)(file, flags, &at, old);
}

CORE_API int timer_settime(timer_t timer, int flags,
                           const struct itimerspec *restrict t,
                           struct itimerspec *restrict old)
{
    if (!(flags & TIMER_ABSTIME) || !clock_may_move() || !t ||
        !clock_is_time(&t->it_value) || !clock_ns_of(&t->it_value))
        return REAL(timer_settime)(timer, flags, t, old);
    const struct itimerspec at = timer_moved(t, clock_of(&t->it_value));
    return REAL(timer_settime)(timer, flags, &at, old);
}

/* --- system calls --------------------------------------------------------- */

struct call {
    long number, a[6];
};

/* As the C library's syscall(), which is ours now. */
static long call_make(const struct call *c)
{
    long rc = raw_call(c->number, c->a);

    if (rc > -4096 && rc < 0) {
        errno = (int)-rc;
        return -1;
    }
    return rc;
}

/* Whether C waits for a futex until a time, and for how long or until when. */
static bool futex_waits(const struct call *c, bool *absolute)
{
    int op = (int)c->a[1] & FUTEX_CMD_MASK;

    *absolute = op != FUTEX_WAIT;
    return c->number == SYS_futex && c->a[3] &&
           (op == FUTEX_WAIT || op == FUTEX_WAIT_BITSET ||
            op == FUTEX_LOCK_PI || op == FUTEX_WAIT_REQUEUE_PI);
}

static clockid_t futex_clock(const struct call *c)
{
    int op = (int)c->a[1];

    return op & FUTEX_CLOCK_REALTIME ||
                   (op & FUTEX_CMD_MASK) == FUTEX_LOCK_PI
               ? CLOCK_REALTIME
               : CLOCK_MONOTONIC;
}

/* The kernel takes the time of FUTEX_WAIT as one to wait for. */
static long futex_until(struct call c, bool absolute)
{
    const struct timespec *t = (const struct timespec *)c.a[3];
    const clockid_t clock = futex_clock(&c);
    struct clock_wait w = absolute
                              ? clock_wait_until(clock, t, SLEEP_SIGNAL)
                              : clock_wait_for(clock_ns_of(t), SLEEP_SIGNAL);
    struct timespec at;

    c.a[3] = (long)&at;
    return CLOCK_WAIT(w, rc,
                      (at = absolute ? clock_wait_deadline(&w, clock)
                                     : clock_timespec(clock_wait_host(&w)),
                       call_make(&c)),
                      rc == -1 && errno == ETIMEDOUT,
                      rc == -1 && errno == EINTR, errno = ETIMEDOUT);
}

/* More arguments than were given are read, as the C library's does: of the last
 * one AddressSanitizer would say that it is no part of the stack. */
__attribute__((no_sanitize_address)) CORE_API long syscall(long number, ...)
{
    struct call c = {.number = number};
    bool absolute;
    va_list list;

    va_start(list, number);
    for (int i = 0; i < 6; i++)
        c.a[i] = va_arg(list, long);
    va_end(list);
    if (__builtin_expect(number == SYS_futex, false) && clock_may_move() &&
        futex_waits(&c, &absolute) &&
        clock_is_time((const struct timespec *)c.a[3]))
        return futex_until(c, absolute);
    return call_make(&c);
}
