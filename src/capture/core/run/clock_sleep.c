/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/run/clock_sleep.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "capture/core/base/core.h"
#include "capture/core/base/lock.h"
#include "capture/core/base/raw_call.h"
#include "capture/core/run/clock.h"
#include "capture/core/run/record.h"

/* Threads. Of more than so many, the rest is woken by this machine's clock. */
#define SLEEPERS 512

/* A thread that was woken gets so long until it waits again, of this machine's
 * time and of its own CPU time: one that works for longer does what takes the
 * host's time. */
#define SETTLE_NS     50000000
#define SETTLE_CPU_NS 2000000
#define LOOK_NS       100000 /* between looks at it */

/* A wait for a condition that is so short is one for a lock mostly, as
 * Python's for its interpreter (5 ms): who has it is at work. */
#define BRIEF_NS 10000000

/* A jump ends after so long, whoever still waits. */
#define SERVE_NS UINT64_C(10000000000)

/* Under LOCK_SLEEP. */
struct sleeper {
    pid_t thread;      /* 0: free */
    uint64_t until_ns; /* CLOCK_NEVER: it does not wait, or is not woken */
    void *cond;
    int (*broadcast)(void *cond); /* NULL: by a signal */
    _Atomic uint32_t waits;       /* that it has begun, brief ones left out */
    _Atomic bool brief;           /* it waits as briefly as for a lock */
    bool woken;
    uint32_t sent; /* signals, in this wait */
};

static struct sleeper sleepers[SLEEPERS];
static uint32_t used;                 /* the first so many of them */
static _Atomic uint32_t server;       /* the thread that wakes; 0: none */
static _Atomic uint32_t arrivals;     /* waits begun while there is one */
static int wake_signal;               /* 0: there is none */
static uint32_t forks;

static _Thread_local struct sleeper *mine;
static _Thread_local uint32_t mine_forks; /* MINE is of that process */
static _Thread_local volatile sig_atomic_t handled; /* signals */

/* --- the table ------------------------------------------------------------ */

static bool is_dead(const struct sleeper *s)
{
    return syscall(SYS_tgkill, getpid(), s->thread, 0) && errno == ESRCH;
}

static struct sleeper *slot_find(void)
{
    for (uint32_t i = 0; i < used; i++)
        if (!sleepers[i].thread)
            return &sleepers[i];
    if (used < SLEEPERS)
        return &sleepers[used++];
    for (uint32_t i = 0; i < used; i++)
        if (sleepers[i].until_ns == CLOCK_NEVER && is_dead(&sleepers[i]))
            return &sleepers[i];
    return NULL;
}

/* The calling thread's; NULL: there is no room. */
static struct sleeper *slot_get(void)
{
    if (mine && mine_forks == forks)
        return mine;
    mine = slot_find();
    mine_forks = forks;
    if (mine)
        *mine = (struct sleeper){.thread = (pid_t)syscall(SYS_gettid),
                                 .until_ns = CLOCK_NEVER};
    return mine;
}

static struct sleeper *first_sleeper(void)
{
    struct sleeper *first = NULL;

    for (uint32_t i = 0; i < used; i++)
        if (sleepers[i].thread && sleepers[i].until_ns != CLOCK_NEVER &&
            (!first || sleepers[i].until_ns < first->until_ns))
            first = &sleepers[i];
    return first;
}

static void next_set(void)
{
    const struct sleeper *first = first_sleeper();

    atomic_store_explicit(&clock_waited_ns,
                          first ? first->until_ns : CLOCK_NEVER,
                          memory_order_release);
}

static bool is_served(void)
{
    return atomic_load_explicit(&server, memory_order_relaxed);
}

void clock_sleep_begin(uint64_t until_ns, enum sleep_way way, void *cond,
                       int (*broadcast)(void *cond))
{
    int saved = errno;
    uint64_t now_ns = clock_user_at(clock_host(CLOCK_MONOTONIC));
    bool brief = way == SLEEP_COND && until_ns < now_ns + BRIEF_NS;
    bool wakes = !brief && way != SLEEP_ALONE;

    if (core_locks_held) /* in a signal's handler, amid work of the core's */
        return;
    core_lock(LOCK_SLEEP);
    struct sleeper *s = slot_get();
    if (s) {
        s->until_ns = wakes ? until_ns : CLOCK_NEVER;
        s->cond = cond;
        s->broadcast = broadcast;
        s->woken = false;
        s->brief = brief;
        s->waits += !brief;
        if (s->until_ns < atomic_load(&clock_waited_ns))
            atomic_store_explicit(&clock_waited_ns, until_ns,
                                  memory_order_release);
    }
    core_unlock(LOCK_SLEEP);
    if (is_served()) {
        atomic_fetch_add(&arrivals, 1);
        raw_futex(&arrivals, FUTEX_WAKE_PRIVATE, 1, NULL);
    }
    errno = saved;
}

/* A signal that was sent is there when LOCK_SLEEP is free again; one that the
 * thread blocks would come in the midst of something else. */
static void signals_take(uint32_t sent)
{
    sigset_t set;

    if ((uint32_t)handled != sent) {
        sigemptyset(&set);
        sigaddset(&set, wake_signal);
        pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    }
    handled = 0;
}

bool clock_sleep_end(void)
{
    struct sleeper *s = mine;
    int saved = errno;

    if (!s || mine_forks != forks || core_locks_held)
        return false;
    core_lock(LOCK_SLEEP);
    bool woken = s->woken, was_first = s->until_ns == clock_waited_ns;
    uint32_t sent = s->sent;
    s->until_ns = CLOCK_NEVER;
    s->woken = s->brief = false;
    s->sent = 0;
    if (was_first)
        next_set();
    core_unlock(LOCK_SLEEP);
    if (sent)
        signals_take(sent);
    errno = saved;
    return woken;
}

void clock_sleep_forget(const void *cond)
{
    core_lock(LOCK_SLEEP);
    for (uint32_t i = 0; i < used; i++)
        if (sleepers[i].cond == cond)
            sleepers[i].until_ns = CLOCK_NEVER;
    next_set();
    core_unlock(LOCK_SLEEP);
}

/* --- waking --------------------------------------------------------------- */

static void on_wake(int number)
{
    (void)number;
    handled++;
}

static bool signal_is_ours(void)
{
    struct sigaction now;

    return wake_signal && !sigaction(wake_signal, NULL, &now) &&
           now.sa_handler == on_wake;
}

/* Under LOCK_SLEEP. */
static void wake_sleeper(struct sleeper *s)
{
    s->woken = true;
    if (s->broadcast)
        s->broadcast(s->cond);
    else if (signal_is_ours() &&
             !syscall(SYS_tgkill, getpid(), s->thread, wake_signal))
        s->sent++;
}

/* Gives up S, which does not wake. */
static void sleeper_drop(struct sleeper *s, uint32_t waits)
{
    core_lock(LOCK_SLEEP);
    if (s->waits == waits)
        s->until_ns = CLOCK_NEVER;
    next_set();
    core_unlock(LOCK_SLEEP);
}

/* Wakes S once more, where it still waits. Returns whether it does. */
static bool still_waits(struct sleeper *s, uint32_t waits)
{
    core_lock(LOCK_SLEEP);
    bool waiting = s->waits == waits && s->woken;
    if (waiting)
        wake_sleeper(s);
    core_unlock(LOCK_SLEEP);
    return waiting;
}

/* Whether THREAD runs, or would if there were a CPU. */
static bool thread_runs(pid_t thread)
{
    char text[512];

    snprintf(text, sizeof text, "/proc/self/task/%d/stat", (int)thread);
    int fd = (int)syscall(SYS_openat, AT_FDCWD, text, O_RDONLY | O_CLOEXEC);
    long n = fd < 0 ? -1 : syscall(SYS_read, fd, text, sizeof text - 1);
    if (fd >= 0)
        syscall(SYS_close, fd);
    if (n <= 0)
        return false;
    text[n] = '\0';
    const char *end = strrchr(text, ')'); /* of its name */
    return end && end[1] && (end[2] == 'R' || end[2] == 'D');
}

/* By system calls: the C library's readdir() takes memory of the heap. */
bool clock_process_runs(void)
{
    struct {
        uint64_t inode;
        int64_t offset;
        uint16_t bytes;
        uint8_t type;
        char name[];
    } * entry;
    _Alignas(8) char list[4096];
    const pid_t self = (pid_t)syscall(SYS_gettid);
    int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/task",
                          O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool found = false;
    long n;

    if (fd < 0)
        return false;
    while (!found && (n = syscall(SYS_getdents64, fd, list, sizeof list)) > 0)
        for (long at = 0; !found && at < n; at += entry->bytes) {
            entry = (void *)(list + at);
            pid_t thread = (pid_t)strtol(entry->name, NULL, 10);
            found = thread && thread != self && thread_runs(thread);
        }
    syscall(SYS_close, fd);
    return found;
}

static uint64_t cpu_of(pid_t thread)
{
    struct timespec t;

    /* The clock of a thread's CPU time, as the kernel numbers them. */
    if (clock_real((clockid_t)(~(unsigned)thread << 3 | 6), &t))
        return 0;
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Waits until S, which was woken from its wait number WAITS, waits again: for a
 * time, or for anything else. */
static void settle_sleeper(struct sleeper *s, uint32_t waits)
{
    const struct timespec look = {0, LOOK_NS};
    const uint64_t start_ns = clock_host(CLOCK_MONOTONIC);
    const uint64_t cpu_ns = cpu_of(s->thread);
    bool left = false;

    for (;;) {
        uint32_t seen = atomic_load(&arrivals);
        if (s->waits != waits && !s->brief)
            return;
        raw_futex(&arrivals, FUTEX_WAIT_PRIVATE, seen, &look);
        if (s->waits != waits && !s->brief)
            return;
        if (clock_host(CLOCK_MONOTONIC) - start_ns > SETTLE_NS ||
            cpu_of(s->thread) - cpu_ns > SETTLE_CPU_NS)
            break;
        left = left || !still_waits(s, waits);
        if (left && !s->brief && !thread_runs(s->thread))
            return;
    }
    sleeper_drop(s, waits);
}

/* --- a jump --------------------------------------------------------------- */

/* The next sleeper before END_NS, woken; NULL: there is none. */
static struct sleeper *next_wake(uint64_t end_ns, uint32_t *waits)
{
    core_lock(LOCK_SLEEP);
    struct sleeper *s = first_sleeper();
    if (s && s->until_ns < end_ns) {
        clock_stop_at(s->until_ns);
        *waits = s->waits;
        wake_sleeper(s);
    } else {
        s = NULL;
    }
    core_unlock(LOCK_SLEEP);
    return s;
}

static void sleepers_serve(void)
{
    const uint64_t start_ns = clock_host(CLOCK_MONOTONIC);
    struct sleeper *s;
    uint32_t waits;

    while ((s = next_wake(clock_line_end(start_ns), &waits))) {
        settle_sleeper(s, waits);
        if (clock_host(CLOCK_MONOTONIC) - start_ns > SERVE_NS)
            break;
    }
    record_skip(start_ns);
    clock_stop_at(CLOCK_NEVER);
}

static bool serve_begin(uint32_t *other)
{
    *other = 0;
    return atomic_compare_exchange_strong(&server, other,
                                          (uint32_t)syscall(SYS_gettid));
}

static void serve_end(void)
{
    atomic_store(&server, 0);
    raw_futex(&server, FUTEX_WAKE_PRIVATE, INT_MAX, NULL);
}

void clock_sleep_serve(void)
{
    int saved = errno;
    uint32_t other;

    while (clock_is_stopped()) {
        if (serve_begin(&other)) {
            sleepers_serve();
            serve_end();
        } else {
            raw_futex(&server, FUTEX_WAIT_PRIVATE, other, NULL);
        }
    }
    errno = saved;
}

void clock_sleep_serve_idle(void)
{
    if (!is_served() && !core_locks_held)
        clock_sleep_serve();
}

/* --- its signal ----------------------------------------------------------- */

/* The last of the signals that nobody uses. It ends what it interrupts only
 * where that waits for a time: other calls are restarted. */
void clock_sleep_start(void)
{
    struct sigaction now, ours = {.sa_handler = on_wake,
                                  .sa_flags = SA_RESTART};

    sigemptyset(&ours.sa_mask);
    for (int number = SIGRTMAX - 1; !wake_signal && number > SIGRTMIN; number--)
        if (!sigaction(number, NULL, &now) && now.sa_handler == SIG_DFL &&
            !sigaction(number, &ours, NULL))
            wake_signal = number;
}

void clock_sleep_after_fork(void)
{
    forks++;
    used = 0;
    memset(sleepers, 0, sizeof sleepers);
    atomic_store(&server, 0);
    atomic_store(&clock_waited_ns, CLOCK_NEVER);
}
