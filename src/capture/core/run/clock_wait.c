/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/run/clock_wait.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <threads.h>
#include <unistd.h>

#include "capture/core/base/core.h"
#include "capture/core/base/lock.h"
#include "capture/core/run/clock.h"
#include "capture/core/run/clock_gap.h"
#include "capture/core/run/live.h"
#include "capture/core/run/loader.h"
#include "capture/core/run/meeting.h"
#include "capture/core/run/record_put.h"

/* A program that does nothing but look at a clock that stands still
 * (--host-speed 0) waits for a time: after so many looks each takes SPIN_NS. */
#define SPIN_LOOKS 10000
#define SPIN_NS    1000

/* A process that has not used the GPU for so long is not waited for. */
#define PATIENCE_NS CLOCK_S

/* The least wait for what is left of one; where the clock has stopped. */
#define PART_NS    20000
#define STOPPED_NS 200000

/* So long it holds that a thread of the process was seen to run. */
#define SEEN_NS 1000000

/* So long at least, in milliseconds, a rank is prepared to wait for others; the
 * most between two looks. */
#define RANKS_MS 1000
#define LOOK_MS  100

/* A program that looks at the time after a long gap is to see it without what
 * clock_gap.h takes out of it: the next record would be too late. Not from a
 * signal's handler that interrupts the writer of records, nor from a thread
 * that has not worked with the GPU: the gap is not its own. */
static void gap_look(uint64_t host_ns)
{
    uint64_t held_ns =
        atomic_load_explicit(&clock_held_ns, memory_order_relaxed);

    if ((record_worker != record_thread() && !clock_gap_knows()) ||
        !core_trylock(LOCK_RECORD))
        return;
    uint64_t now_ns = host_ns - held_ns;
    if (clock_gap_is_long(record_writer.time_ns, now_ns)) {
        clock_gap(record_writer.time_ns, now_ns);
        clock_set_back(clock_host(CLOCK_MONOTONIC),
                       atomic_load_explicit(&clock_held_ns,
                                            memory_order_relaxed) -
                           held_ns);
    }
    core_unlock(LOCK_RECORD);
}

/* The clock at NOW_NS, which it may have been at all the time while this thread
 * looked: it goes on where the process does not use the GPU. */
static uint64_t spin_once(uint64_t now_ns)
{
    static _Thread_local uint64_t looked_ns; /* at last ... */
    static _Thread_local uint32_t looks;     /* ... so many times */

    looks = now_ns == looked_ns ? looks + 1 : 0;
    looked_ns = now_ns;
    if (looks <= SPIN_LOOKS || clock_is_stopped() || clock_is_frozen() ||
        clock_host(CLOCK_MONOTONIC) < clock_published() + CLOCK_GAP_NS)
        return now_ns;
    looked_ns += SPIN_NS;
    clock_put_forward(looked_ns);
    return looked_ns;
}

static uint64_t look_at_clock(uint64_t (*now)(uint64_t host_ns))
{
    uint64_t host_ns = clock_host(CLOCK_MONOTONIC);

    if (__builtin_expect(clock_is_stopped(), false))
        clock_sleep_serve_idle();
    if (clock_line_is_old(host_ns))
        gap_look(host_ns);
    return now(host_ns);
}

uint64_t clock_user_now(void)
{
    return spin_once(look_at_clock(clock_tell));
}

uint64_t clock_user_peek(void)
{
    return look_at_clock(clock_peek);
}

/* --- waits ---------------------------------------------------------------- */

clockid_t clock_of(const struct timespec *t)
{
    return clock_ns_of(t) > clock_host(CLOCK_REALTIME) / 2 ? CLOCK_REALTIME
                                                           : CLOCK_MONOTONIC;
}

uint64_t clock_wait_left(const struct clock_wait *w)
{
    uint64_t now_ns = look_at_clock(clock_peek);

    return w->until_ns > now_ns ? w->until_ns - now_ns : 0;
}

uint64_t clock_wait_host(const struct clock_wait *w)
{
    uint64_t left_ns = clock_wait_left(w), factor = clock_line_factor();

    if (factor > CLOCK_ONE)
        left_ns = (uint64_t)(((unsigned __int128)left_ns << CLOCK_FACTOR_BITS) /
                             factor);
    bool stands = clock_is_stopped() || clock_is_frozen();
    uint64_t least_ns = stands ? STOPPED_NS : PART_NS;
    return left_ns && left_ns < least_ns ? least_ns : left_ns;
}

static void part_begin(struct clock_wait *w)
{
    w->from_ns = clock_host(CLOCK_MONOTONIC);
    w->end_ns = w->from_ns + clock_wait_host(w);
    w->cpu_ns = clock_host(CLOCK_PROCESS_CPUTIME_ID);
}

struct clock_wait clock_wait_for(uint64_t for_ns, enum sleep_way way)
{
    struct clock_wait w = {.until_ns = look_at_clock(clock_peek) + for_ns,
                           .for_ns = for_ns,
                           .way = way};

    part_begin(&w);
    if (way == SLEEP_SIGNAL && for_ns)
        clock_sleep_begin(w.until_ns, way, NULL, NULL);
    return w;
}

struct clock_wait clock_wait_until(clockid_t clock, const struct timespec *t,
                                   enum sleep_way way)
{
    uint64_t at_ns = clock_ns_of(t), behind_ns = clock_distance(clock);
    struct clock_wait w = {.until_ns = at_ns > behind_ns ? at_ns - behind_ns
                                                         : 0,
                           .way = way};

    part_begin(&w);
    if (way == SLEEP_SIGNAL && w.until_ns > look_at_clock(clock_peek))
        clock_sleep_begin(w.until_ns, way, NULL, NULL);
    return w;
}

struct clock_wait clock_wait_cond(clockid_t clock, const struct timespec *t,
                                  void *cond, int (*broadcast)(void *cond))
{
    struct clock_wait w = clock_wait_until(clock, t, SLEEP_COND);

    clock_sleep_begin(w.until_ns, SLEEP_COND, cond, broadcast);
    return w;
}

struct timespec clock_wait_deadline(const struct clock_wait *w, clockid_t clock)
{
    return clock_timespec(clock_host(clock) + clock_wait_host(w));
}

/* When a thread of the process was last seen to run, of the host's time. */
static _Atomic uint64_t ran_ns;

/* Whether no thread runs, or has been seen to just now: of many that wait, one
 * looks. */
static bool threads_rest(uint64_t now_ns)
{
    if (now_ns <
        atomic_load_explicit(&ran_ns, memory_order_relaxed) + SEEN_NS)
        return false;
    if (!clock_process_runs())
        return true;
    atomic_store_explicit(&ran_ns, now_ns, memory_order_relaxed);
    return false;
}

/* Whether the process did nothing since this part of W began, and waits for no
 * CPU. Where it works, but has not come to the GPU for long, a faster host is
 * not waited for. */
static bool process_rests(const struct clock_wait *w)
{
    uint64_t used_ns = clock_published(), now_ns = clock_host(CLOCK_MONOTONIC);
    uint64_t cpu_ns = clock_host(CLOCK_PROCESS_CPUTIME_ID) - w->cpu_ns;

    return now_ns - used_ns > PATIENCE_NS ||
           (used_ns < w->from_ns && cpu_ns < (now_ns - w->from_ns) / 8 &&
            threads_rest(now_ns));
}

/* The host's deadline of W has come. Where the user clock's has not, another
 * part of W begins, unless nothing would end that. */
static bool is_over(struct clock_wait *w)
{
    if (!clock_wait_left(w))
        return true;
    if (clock_host(CLOCK_MONOTONIC) < w->end_ns) /* a slice of it is over */
        return false;
    if (clock_line_factor() < CLOCK_ONE && !clock_is_stopped() &&
        !clock_is_frozen() && process_rests(w)) {
        clock_put_forward(w->until_ns);
        return true;
    }
    part_begin(w);
    return false;
}

bool clock_wait_again(struct clock_wait *w, bool timed_out)
{
    int saved = errno;
    uint64_t host_ns = clock_host(CLOCK_MONOTONIC) - w->from_ns;

    if (timed_out) {
        clock_slept(host_ns);
        if (!is_over(w)) {
            errno = saved;
            return true;
        }
    }
    w->woken = w->way != SLEEP_ALONE && clock_sleep_end();
    if (w->woken || timed_out) {
        if (w->for_ns)
            clock_told_passed(w->for_ns);
        else
            clock_told(w->until_ns);
    }
    errno = saved;
    return false;
}

/* --- sleeping ------------------------------------------------------------- */

static int sleep_wait(struct clock_wait *w)
{
    struct timespec at;

    return CLOCK_WAIT(
        *w, rc,
        (at = clock_wait_deadline(w, CLOCK_MONOTONIC),
         REAL(clock_nanosleep)(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL)),
        rc == 0, rc == EINTR, rc = 0);
}

CORE_API int clock_nanosleep(clockid_t clock, int flags,
                             const struct timespec *t, struct timespec *left)
{
    if (!clock_may_move() || !clock_is_moved(clock) || !clock_is_time(t))
        return REAL(clock_nanosleep)(clock, flags, t, left);
    bool absolute = flags & TIMER_ABSTIME;
    struct clock_wait w = absolute
                              ? clock_wait_until(clock, t, SLEEP_SIGNAL)
                              : clock_wait_for(clock_ns_of(t), SLEEP_SIGNAL);
    int rc = sleep_wait(&w);
    if (rc == EINTR && left && !absolute)
        *left = clock_timespec(clock_wait_left(&w));
    return rc;
}

CORE_API int nanosleep(const struct timespec *t, struct timespec *left)
{
    if (!clock_may_move() || !clock_is_time(t))
        return REAL(nanosleep)(t, left);
    int rc = clock_nanosleep(CLOCK_MONOTONIC, 0, t, left);
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

CORE_API int thrd_sleep(const struct timespec *t, struct timespec *left)
{
    if (!clock_may_move() || !clock_is_time(t))
        return REAL(thrd_sleep)(t, left);
    int rc = clock_nanosleep(CLOCK_MONOTONIC, 0, t, left);
    return rc == EINTR ? -1 : -2 * (rc != 0);
}

/* --- files ---------------------------------------------------------------- */

/* A wait for no file is one for a time alone. */
static enum sleep_way way_of(bool files)
{
    return files ? SLEEP_ALONE : SLEEP_SIGNAL;
}

/* CALL, which uses MS_, T_ or TV_: what is left of a wait of FOR_NS. */
#define FILES_WAIT(for_ns, files, call)                                        \
    ({                                                                         \
        struct clock_wait w_ = clock_wait_for(for_ns, way_of(files));          \
        struct timespec t_;                                                    \
        struct timeval tv_;                                                    \
        int ms_;                                                               \
        CLOCK_WAIT(w_, rc_, (left_set(&w_, &t_, &tv_, &ms_), call), rc_ == 0,  \
                   rc_ == -1 && errno == EINTR, rc_ = 0);                      \
    })

static void left_set(const struct clock_wait *w, struct timespec *t,
                     struct timeval *tv, int *ms)
{
    uint64_t left_ns = clock_wait_host(w);

    *t = clock_timespec(left_ns);
    *tv = (struct timeval){t->tv_sec, (t->tv_nsec + 999) / 1000};
    *ms = (int)((left_ns + 999999) / 1000000);
}

static uint64_t ns_of_ms(int ms)
{
    return (uint64_t)ms * 1000000;
}

/* Whether FILES are one connection to another program by TCP, as that to the
 * store of a job's ranks is: this process goes on when another one acts. */
static bool is_of_ranks(const struct pollfd *files, nfds_t count, int ms)
{
    struct sockaddr_storage peer;
    socklen_t bytes = sizeof peer;

    return ms >= RANKS_MS && count == 1 && meeting_is_open() &&
           !core_locks_held &&
           !getpeername(files->fd, (struct sockaddr *)&peer, &bytes) &&
           (peer.ss_family == AF_INET || peer.ss_family == AF_INET6);
}

/* As poll(2); ranks that sleep in a meeting learn that this one waits. */
static int ranks_poll(struct pollfd *files, nfds_t count, int ms)
{
    int rc = 0, soon_ms, old_errno = errno;

    if (!is_of_ranks(files, count, ms)) {
        errno = old_errno;
        return REAL(poll)(files, count, ms);
    }
    for (uint32_t looks = 0; ms > 0 && !rc; looks++, ms -= soon_ms) {
        soon_ms = (int)memsim_live_lacks(
            looks, ms < LOOK_MS ? (unsigned)ms : LOOK_MS);
        rc = REAL(poll)(files, count, soon_ms);
    }
    old_errno = errno;
    meeting_has();
    errno = old_errno;
    return rc;
}

CORE_API int poll(struct pollfd *files, nfds_t count, int ms)
{
    if (!clock_may_move() || ms <= 0)
        return REAL(poll)(files, count, ms);
    return FILES_WAIT(ns_of_ms(ms), count, ranks_poll(files, count, ms_));
}

CORE_API int ppoll(struct pollfd *files, nfds_t count, const struct timespec *t,
                   const sigset_t *mask)
{
    if (!clock_may_move() || !clock_is_time(t) || !clock_ns_of(t))
        return REAL(ppoll)(files, count, t, mask);
    return FILES_WAIT(clock_ns_of(t), count || mask,
                      REAL(ppoll)(files, count, &t_, mask));
}

CORE_API int epoll_wait(int file, struct epoll_event *events, int most, int ms)
{
    if (!clock_may_move() || ms <= 0)
        return REAL(epoll_wait)(file, events, most, ms);
    return FILES_WAIT(ns_of_ms(ms), true,
                      REAL(epoll_wait)(file, events, most, ms_));
}

CORE_API int epoll_pwait(int file, struct epoll_event *events, int most, int ms,
                         const sigset_t *mask)
{
    if (!clock_may_move() || ms <= 0)
        return REAL(epoll_pwait)(file, events, most, ms, mask);
    return FILES_WAIT(ns_of_ms(ms), true,
                      REAL(epoll_pwait)(file, events, most, ms_, mask));
}

/* The sets that select() found nothing in are empty: they are kept for the
 * next part of the wait. */
struct sets {
    fd_set *of[3];
    fd_set kept[3];
};

static struct sets sets_keep(fd_set *in, fd_set *out, fd_set *other)
{
    struct sets s = {.of = {in, out, other}};

    for (int i = 0; i < 3; i++)
        if (s.of[i])
            s.kept[i] = *s.of[i];
    return s;
}

static void sets_give(const struct sets *s)
{
    for (int i = 0; i < 3; i++)
        if (s->of[i])
            *s->of[i] = s->kept[i];
}

CORE_API int select(int count, fd_set *in, fd_set *out, fd_set *other,
                    struct timeval *t)
{
    if (!clock_may_move() || !t || t->tv_sec < 0 || t->tv_usec < 0 ||
        !(t->tv_sec || t->tv_usec))
        return REAL(select)(count, in, out, other, t);
    const struct timespec most = {t->tv_sec, t->tv_usec * 1000};
    const struct sets sets = sets_keep(in, out, other);
    return FILES_WAIT(clock_ns_of(&most), count,
                      (sets_give(&sets),
                       REAL(select)(count, in, out, other, &tv_)));
}

CORE_API int pselect(int count, fd_set *in, fd_set *out, fd_set *other,
                     const struct timespec *t, const sigset_t *mask)
{
    if (!clock_may_move() || !clock_is_time(t) || !clock_ns_of(t))
        return REAL(pselect)(count, in, out, other, t, mask);
    const struct sets sets = sets_keep(in, out, other);
    return FILES_WAIT(clock_ns_of(t), count || mask,
                      (sets_give(&sets),
                       REAL(pselect)(count, in, out, other, &t_, mask)));
}
