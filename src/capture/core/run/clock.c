/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/run/clock.h"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/core/base/lock.h"
#include "capture/core/run/instance.h"
#include "capture/core/run/process.h"
#include "common/base/clamp.h"

_Atomic uint64_t clock_held_ns;

/* Before our constructor has run, which other libraries' may come before. */
static int clock_by_kernel(clockid_t clock, struct timespec *t)
{
    return (int)syscall(SYS_clock_gettime, clock, t);
}

int (*clock_real)(clockid_t clock, struct timespec *t) = clock_by_kernel;

__attribute__((constructor)) static void clock_start(void)
{
    void *real = dlsym(INSTANCE_CLOCK, "clock_gettime");

    if (real)
        clock_real = (int (*)(clockid_t, struct timespec *))real;
}

uint64_t memsim_clock_now(void)
{
    return clock_now();
}

/* --- the user clock ------------------------------------------------------- */

/* The current line is lines[generation % 2]; 0: there is none. A reader takes
 * the line whose generation is still the current one afterwards. A signal's
 * handler that interrupts the writer finds the old line whole. */
static struct clock_line lines[2];
static _Atomic uint64_t generation;

static uint64_t line_ns; /* when the current line was made, of the host's */
static uint64_t published_ns; /* ... and the last one that was published */
static session_u64 given_ns; /* the latest time that the program was given */

/* Where the clock stops. It is set before the line that goes beyond it: who
 * reads the new line reads it, too. */
static _Atomic uint64_t stop_ns = CLOCK_NEVER;

_Atomic uint64_t clock_waited_ns = CLOCK_NEVER;

static _Atomic bool is_frozen;

/* A profiler listens: its times would overlap where the clock runs slower than
 * the simulation. */
static bool is_profiled;

/* What the clock was put forward since the last line was published. */
static uint64_t forward_ns;

static uint64_t given_time(void)
{
    return atomic_load_explicit(&given_ns, memory_order_relaxed);
}

/* How far the first of the processes with a simulation is ahead of the host's
 * clock; one that has ended keeps its place. */
static uint64_t others_ahead(void)
{
    const struct session *session = memsim_session();
    uint64_t ahead_ns = 0;

    if (!session || !session->simulated_clock)
        return 0;
    uint32_t count =
        atomic_load_explicit(&session->slot_count, memory_order_relaxed);
    for (uint32_t i = 0; i < count && i < SESSION_SLOTS; i++) {
        uint64_t ns = atomic_load_explicit(
            &session->processes[i].clock_ahead_ns, memory_order_relaxed);
        ahead_ns = ns > ahead_ns ? ns : ahead_ns;
    }
    return ahead_ns;
}

bool clock_is_ahead(void)
{
    return atomic_load_explicit(&generation, memory_order_relaxed) ||
           others_ahead();
}

bool clock_may_move(void)
{
    const struct session *session = memsim_session();

    return session && session->simulated_clock;
}

uint64_t clock_line_end(uint64_t host_ns)
{
    for (;;) {
        uint64_t now = atomic_load_explicit(&generation, memory_order_acquire);
        if (!now)
            return host_ns + others_ahead();
        uint64_t user_ns = clock_line_shown(&lines[now % 2], host_ns);
        atomic_thread_fence(memory_order_acquire);
        if (atomic_load_explicit(&generation, memory_order_relaxed) == now)
            return user_ns;
    }
}

uint64_t clock_user_at(uint64_t host_ns)
{
    uint64_t user_ns = clock_line_end(host_ns);

    return least_u64(user_ns,
                     atomic_load_explicit(&stop_ns, memory_order_relaxed));
}

/* The clock has come to LINE's COME_NS, or further, where a thread was given a
 * later time or the line before it still has a lead. */
static void lead_set(struct clock_line *line, const struct clock_line *before)
{
    uint64_t come_ns = line->come_ns;

    if (__builtin_expect(!before->lead_ns && given_time() <= come_ns, true)) {
        line->lead_ns = 0;
        return;
    }
    uint64_t passed_ns = come_ns > before->user_ns ? come_ns - before->user_ns
                                                   : 0;
    uint64_t shown_ns = most_u64(
        given_time(), come_ns + clock_lead_after(before->lead_ns, passed_ns));

    line->lead_ns = shown_ns > come_ns ? shown_ns - come_ns : 0;
    if (__builtin_expect(!line->lead_ns, true))
        return;
    if (is_profiled || clock_log_is_on) {
        line->user_ns += line->lead_ns;
        line->come_ns += line->lead_ns;
        line->lead_ns = 0;
    } else {
        line->lead_ns =
            clock_lead_after(line->lead_ns, line->user_ns - line->come_ns);
    }
}

/* A thread that still reads the old line may get a time that is a few
 * nanoseconds ahead of the new one. */
static void line_set(const struct clock_line *line)
{
    uint64_t now = atomic_load_explicit(&generation, memory_order_relaxed);
    struct clock_line *set = &lines[(now + 1) % 2];

    atomic_thread_fence(memory_order_release);
    *set = *line;
    atomic_store_explicit(&generation, now + 1, memory_order_release);
    line_ns = line->host_ns;
    if (__builtin_expect(clock_log_is_on, false))
        clock_log_put(set);
}

static const struct clock_line *line_now(void)
{
    return &lines[atomic_load_explicit(&generation, memory_order_relaxed) % 2];
}

struct clock_line clock_line_now(void)
{
    uint64_t host_ns = clock_host(CLOCK_MONOTONIC);
    uint64_t user_ns = clock_user_at(host_ns);

    return (struct clock_line){.host_ns = host_ns,
                               .user_ns = user_ns,
                               .come_ns = user_ns,
                               .factor = clock_line_factor()};
}

uint64_t clock_published(void)
{
    return published_ns;
}

uint64_t clock_line_factor(void)
{
    return atomic_load_explicit(&generation, memory_order_relaxed)
               ? line_now()->factor
               : CLOCK_ONE;
}

/* L, whose jump passes a time for which a thread waits, is not to be seen
 * beyond that. */
static void stop_for_sleepers(const struct clock_line *l)
{
    uint64_t next_ns =
        atomic_load_explicit(&clock_waited_ns, memory_order_acquire);

    if (__builtin_expect(next_ns < l->user_ns + l->lead_ns, false) &&
        l->user_ns > l->come_ns && !clock_is_stopped())
        clock_stop_at(most_u64(next_ns, l->come_ns));
}

uint64_t clock_publish(const struct clock_line *line, bool profiled)
{
    struct session_process *slot = process_slot();
    struct clock_line l = *line;

    l.user_ns += forward_ns;
    l.come_ns += forward_ns;
    forward_ns = 0;
    atomic_store_explicit(&is_frozen, false, memory_order_relaxed);
    is_profiled = profiled;
    lead_set(&l, line_now());
    stop_for_sleepers(&l);
    line_set(&l);
    published_ns = l.host_ns;
    uint64_t user_ns = l.user_ns + l.lead_ns;
    if (slot)
        atomic_store_explicit(&slot->clock_ahead_ns,
                              user_ns > l.host_ns ? user_ns - l.host_ns : 0,
                              memory_order_relaxed);
    return l.user_ns;
}

static _Thread_local uint64_t told_ns; /* to the calling thread, at last */

uint64_t clock_peek(uint64_t host_ns)
{
    return most_u64(clock_user_at(host_ns), given_time());
}

uint64_t clock_tell(uint64_t host_ns)
{
    uint64_t user_ns = clock_user_at(host_ns), latest_ns = given_time();

    while (user_ns > latest_ns)
        if (atomic_compare_exchange_weak_explicit(&given_ns, &latest_ns,
                                                  user_ns, memory_order_relaxed,
                                                  memory_order_relaxed))
            return told_ns = user_ns;
    return told_ns = latest_ns;
}

void clock_told(uint64_t user_ns)
{
    told_ns = most_u64(told_ns, user_ns);
    session_raise(&given_ns, told_ns);
}

void clock_told_passed(uint64_t ns)
{
    if (told_ns)
        clock_told(told_ns + ns);
}

/* From a signal's handler that interrupts the writer the clock cannot be moved;
 * then only what threads are given is. */
void clock_put_forward(uint64_t user_ns)
{
    if (!atomic_load_explicit(&generation, memory_order_relaxed) ||
        core_locks_held) {
        session_raise(&given_ns, user_ns);
        return;
    }
    core_lock(LOCK_RECORD);
    session_raise(&given_ns, user_ns);
    struct clock_line l = *line_now();
    uint64_t host_ns = clock_host(CLOCK_MONOTONIC);
    uint64_t shown_ns = clock_line_shown(&l, host_ns);
    if (user_ns > shown_ns) {
        forward_ns += user_ns - shown_ns;
        l.user_ns += user_ns - shown_ns;
        l.come_ns = l.user_ns;
        line_set(&l);
    }
    core_unlock(LOCK_RECORD);
}

bool clock_line_is_old(uint64_t host_ns)
{
    return atomic_load_explicit(&generation, memory_order_relaxed) &&
           host_ns > line_ns + CLOCK_GAP_NS;
}

void clock_stop_at(uint64_t user_ns)
{
    atomic_store_explicit(&stop_ns, user_ns, memory_order_release);
}

bool clock_is_stopped(void)
{
    return atomic_load_explicit(&stop_ns, memory_order_acquire) != CLOCK_NEVER;
}

void clock_set_back(uint64_t host_ns, uint64_t by_ns)
{
    struct clock_line l = *line_now();

    if (!atomic_load_explicit(&generation, memory_order_relaxed))
        return;
    l.user_ns = l.come_ns = clock_line_at(&l, host_ns - by_ns);
    l.host_ns = host_ns;
    lead_set(&l, line_now());
    line_set(&l);
}

static uint64_t frozen_factor; /* of the line before */

static _Atomic uint32_t waits_for_ranks; /* threads */

bool clock_is_frozen(void)
{
    return atomic_load_explicit(&is_frozen, memory_order_relaxed) ||
           atomic_load_explicit(&waits_for_ranks, memory_order_relaxed);
}

void clock_freeze(void)
{
    struct clock_line line = clock_line_now();

    if (!atomic_load_explicit(&generation, memory_order_relaxed) ||
        atomic_load_explicit(&is_frozen, memory_order_relaxed))
        return;
    atomic_store_explicit(&is_frozen, true, memory_order_relaxed);
    frozen_factor = line.factor;
    line.factor = 0;
    line_set(&line);
}

void clock_go_on(uint64_t slept_ns)
{
    struct clock_line line = clock_line_now();

    if (!atomic_load_explicit(&is_frozen, memory_order_relaxed))
        return;
    atomic_fetch_add_explicit(&clock_held_ns, slept_ns, memory_order_relaxed);
    line.factor = frozen_factor;
    atomic_store_explicit(&is_frozen, false, memory_order_relaxed);
    line_set(&line);
}

uint64_t clock_waits_begin(void)
{
    atomic_fetch_add_explicit(&waits_for_ranks, 1, memory_order_relaxed);
    core_lock(LOCK_RECORD);
    clock_freeze();
    core_unlock(LOCK_RECORD);
    return clock_host(CLOCK_MONOTONIC);
}

/* Where another thread has made the clock go on, it is looked into by
 * clock_gap(). */
void clock_waits_end(uint64_t start_ns)
{
    atomic_fetch_sub_explicit(&waits_for_ranks, 1, memory_order_relaxed);
    core_lock(LOCK_RECORD);
    clock_go_on(clock_host(CLOCK_MONOTONIC) - start_ns);
    core_unlock(LOCK_RECORD);
}

void clock_hold(uint64_t host_ns, uint64_t record_ns)
{
    uint64_t held_ns = host_ns - record_ns;

    if (held_ns > atomic_load_explicit(&clock_held_ns, memory_order_relaxed))
        atomic_store_explicit(&clock_held_ns, held_ns, memory_order_relaxed);
}

void clock_release(void)
{
    struct clock_line line = clock_line_now();

    line.factor = CLOCK_ONE;
    if (atomic_load_explicit(&generation, memory_order_relaxed))
        line_set(&line);
}

void clock_after_fork(void)
{
    atomic_store(&generation, 0);
    atomic_store(&stop_ns, CLOCK_NEVER);
    atomic_store(&is_frozen, false);
    atomic_store(&waits_for_ranks, 0);
    published_ns = forward_ns = 0;
    clock_log_after_fork();
}
