/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/run/clock.h"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/core/run/process.h"

#define FACTOR_ONE (UINT64_C(1) << CLOCK_FACTOR_BITS)

_Atomic uint64_t clock_held_ns;

/* Before our constructor has run, which other libraries' may come before. */
static int clock_by_kernel(clockid_t clock, struct timespec *t)
{
    return (int)syscall(SYS_clock_gettime, clock, t);
}

int (*clock_real)(clockid_t clock, struct timespec *t) = clock_by_kernel;

__attribute__((constructor)) static void clock_start(void)
{
    void *real = dlsym(RTLD_NEXT, "clock_gettime");

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
static session_u64 given_ns; /* the latest time that the program was given */

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

uint64_t clock_user_at(uint64_t host_ns)
{
    for (;;) {
        uint64_t now = atomic_load_explicit(&generation, memory_order_acquire);
        if (!now)
            return host_ns + others_ahead();
        uint64_t user_ns = clock_line_at(&lines[now % 2], host_ns);
        atomic_thread_fence(memory_order_acquire);
        if (atomic_load_explicit(&generation, memory_order_relaxed) == now)
            return user_ns;
    }
}

/* A thread that still reads the old line may get a time that is a few
 * nanoseconds ahead of the new one. */
static uint64_t line_set(const struct clock_line *line)
{
    uint64_t now = atomic_load_explicit(&generation, memory_order_relaxed);
    uint64_t given = atomic_load_explicit(&given_ns, memory_order_relaxed);
    struct clock_line *set = &lines[(now + 1) % 2];

    atomic_thread_fence(memory_order_release);
    *set = *line;
    if (set->come_ns < given) {
        set->user_ns += given - set->come_ns;
        set->come_ns = given;
    }
    atomic_store_explicit(&generation, now + 1, memory_order_release);
    line_ns = line->host_ns;
    if (__builtin_expect(clock_log_is_on, false))
        clock_log_put(set);
    return set->user_ns;
}

struct clock_line clock_line_now(void)
{
    uint64_t host_ns = clock_host(CLOCK_MONOTONIC);
    uint64_t user_ns = clock_user_at(host_ns);
    uint64_t now = atomic_load_explicit(&generation, memory_order_relaxed);

    return (struct clock_line){.host_ns = host_ns,
                               .user_ns = user_ns,
                               .come_ns = user_ns,
                               .factor = now ? lines[now % 2].factor
                                             : FACTOR_ONE};
}

uint64_t clock_publish(const struct clock_line *line)
{
    struct session_process *slot = process_slot();
    uint64_t host_ns = line->host_ns, user_ns = line_set(line);

    if (slot)
        atomic_store_explicit(&slot->clock_ahead_ns,
                              user_ns > host_ns ? user_ns - host_ns : 0,
                              memory_order_relaxed);
    return user_ns;
}

uint64_t clock_tell(uint64_t host_ns, bool works)
{
    static _Thread_local uint64_t mine_ns; /* given to this thread */
    uint64_t user_ns = clock_user_at(host_ns);

    if (user_ns < mine_ns)
        user_ns = mine_ns;
    if (works)
        session_raise(&given_ns, user_ns);
    uint64_t latest_ns = atomic_load_explicit(&given_ns, memory_order_relaxed);
    return mine_ns = user_ns < latest_ns ? latest_ns : user_ns;
}

void clock_put_forward(uint64_t user_ns)
{
    session_raise(&given_ns, user_ns);
}

bool clock_line_is_old(uint64_t host_ns)
{
    return atomic_load_explicit(&generation, memory_order_relaxed) &&
           host_ns > line_ns + CLOCK_GAP_NS;
}

void clock_set_back(uint64_t host_ns, uint64_t by_ns)
{
    uint64_t now = atomic_load_explicit(&generation, memory_order_relaxed);
    struct clock_line l = lines[now % 2];

    if (!now)
        return;
    l.user_ns = l.come_ns = clock_line_at(&l, host_ns - by_ns);
    l.host_ns = host_ns;
    line_set(&l);
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

    line.factor = FACTOR_ONE;
    if (atomic_load_explicit(&generation, memory_order_relaxed))
        line_set(&line);
}

void clock_after_fork(void)
{
    atomic_store(&generation, 0);
    clock_log_after_fork();
}
