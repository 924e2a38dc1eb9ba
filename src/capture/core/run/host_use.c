/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/run/host_use.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "capture/core/base/lock.h"
#include "capture/core/base/pages.h"
#include "capture/core/run/clock.h"
#include "capture/core/run/host_heap.h"
#include "capture/core/run/host_pages.h"

#define PLACES      (UINT64_C(1) << 22) /* of ranges; a power of two */
#define PLACES_LARGE (UINT64_C(1) << 17)
/* How much more may be known than at the last look before a higher peak is
 * looked at: a part of it, or so many bytes. The rest of then may have memory
 * that was free in the heap and is a tensor's now; where much is free, less. */
#define RISE_PART      16
#define RISE_MIN       (UINT64_C(16) << 20)
#define RISE_PART_FREE 64
#define RISE_MIN_FREE  (UINT64_C(4) << 20)
#define LOOKS_NS    UINT64_C(1000000000) /* between looks without a rise */
#define LOOK_SHARE  200 /* the pause after a look, in its own times */
#define SHM_NS      UINT64_C(50000000)

static struct ranges small = {.places = PLACES},
                          large = {.places = PLACES_LARGE};
static struct session *session; /* NULL: no run */
static struct session_host *mine; /* NULL: not joined, or there is no room */
static bool refused;
static uint64_t level[SESSION_HOST_KINDS];
static uint32_t rounds; /* that ended (kept.h) */
static uint64_t young;  /* bytes of tensors that were made in this one */
static uint64_t known;  /* bytes of LARGE that would all be resident */
static uint64_t looked; /* what it was at the last look */
static uint64_t rest;   /* resident beside them, then */
static uint64_t unused; /* free in the heap, then */
static uint64_t next_look_ns, next_shm_ns;

/* --- this process's place ------------------------------------------------- */

static void host_join(void)
{
    uint32_t i = session ? atomic_fetch_add(&session->host_count, 1)
                         : SESSION_HOSTS;

    refused = i >= SESSION_HOSTS;
    if (refused)
        return;
    mine = &session->hosts[i];
    mine->pid = (uint32_t)getpid();
    mine->parent = (uint32_t)getppid();
    strncpy(mine->program, program_invocation_short_name,
            sizeof mine->program - 1);
    atomic_store(&mine->forked, host_pages_forked());
    atomic_store(&mine->state, SESSION_RUNNING);
}

static bool is_joined(void)
{
    if (!mine && !refused)
        host_join();
    return mine;
}

/* --- looking -------------------------------------------------------------- */

static void shm_look(uint64_t now_ns)
{
    struct statfs st;

    if (now_ns < next_shm_ns)
        return;
    next_shm_ns = now_ns + SHM_NS;
    if (!syscall(SYS_statfs, "/dev/shm", &st))
        session_raise(&session->shm_peak, (uint64_t)(st.f_blocks - st.f_bfree) *
                                              (uint64_t)st.f_bsize);
}

/* Its cost is time of the processor: on a busy machine the thread may wait for
 * one for long. */
static void pages_look(void)
{
    uint64_t cpu_ns = clock_host(CLOCK_THREAD_CPUTIME_ID);
    uint64_t resident = host_pages_resident();
    uint64_t inside = host_pages_within(&large);

    rest = resident > inside ? resident - inside : 0;
    looked = known;
    unused = host_heap_look().free_bytes;
    uint64_t cost_ns = clock_host(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
    uint64_t pause_ns = LOOK_SHARE * cost_ns;
    next_look_ns = clock_host(CLOCK_MONOTONIC) +
                   (pause_ns > LOOKS_NS ? pause_ns : LOOKS_NS);
}

/* Whether a peak with the rest of the last look may be wrong by much. */
static bool is_stale(void)
{
    bool much = unused > RISE_MIN_FREE && unused > looked / RISE_PART_FREE;
    uint64_t rise = looked / (much ? RISE_PART_FREE : RISE_PART);
    uint64_t least = much ? RISE_MIN_FREE : RISE_MIN;

    return known > looked + (rise > least ? rise : least);
}

/* After something was taken. A peak that is no higher needs no look. */
static void look_at_host(void)
{
    uint64_t now_ns = clock_host(CLOCK_MONOTONIC_COARSE);

    shm_look(now_ns);
    if (now_ns >= next_look_ns ||
        (rest + known > atomic_load(&mine->peak) && is_stale()))
        pages_look();
    session_raise(&mine->peak, rest + known);
}

/* --- what is known -------------------------------------------------------- */

static void level_change(enum session_host_kind kind, uint64_t bytes)
{
    level[kind] += bytes;
    atomic_store_explicit(&mine->level[kind], level[kind],
                          memory_order_relaxed);
    session_raise(&mine->high[kind], level[kind]);
}

/* Registered memory is the program's own: it is resident, or a tensor. */
static bool is_large(const struct range *r)
{
    return r->bytes >= HOST_LARGE && r->kind != SESSION_HOST_REGISTERED;
}

static void young_change(const struct range *r, uint64_t bytes)
{
    if (r->kind == SESSION_HOST_TENSORS && r->born == rounds)
        young += bytes;
}

static void range_take(const struct range *r)
{
    struct ranges *to = is_large(r) ? &large : &small;

    if (!is_joined() || !ranges_add(to, r))
        return;
    level_change(r->kind, r->bytes);
    young_change(r, r->bytes);
    if (to == &large)
        known += r->bytes;
    look_at_host();
}

static void give_back(uint64_t address)
{
    struct range old;
    bool found = ranges_remove(&small, address, &old);
    bool was_large = !found && ranges_remove(&large, address, &old);

    if (!found && !was_large)
        return;
    level_change(old.kind, -old.bytes);
    young_change(&old, -old.bytes);
    if (was_large)
        known -= old.bytes;
}

void memsim_host_takes(enum session_host_kind kind, uint64_t address,
                       uint64_t bytes)
{
    if (!address || !bytes || !session)
        return;
    core_lock(LOCK_HOST);
    range_take(&(struct range){address, bytes, kind, rounds});
    core_unlock(LOCK_HOST);
}

void memsim_host_gives(uint64_t address)
{
    if (!address || !mine)
        return;
    core_lock(LOCK_HOST);
    give_back(address);
    core_unlock(LOCK_HOST);
}

void memsim_host_state(uint64_t parameters, uint64_t gradients,
                       uint64_t optimizer)
{
    core_lock(LOCK_HOST);
    if (is_joined()) {
        session_raise(&mine->state_bytes[0], parameters);
        session_raise(&mine->state_bytes[1], gradients);
        session_raise(&mine->state_bytes[2], optimizer);
    }
    core_unlock(LOCK_HOST);
}

uint64_t host_use_level(enum session_host_kind kind)
{
    return mine ? atomic_load_explicit(&mine->level[kind], memory_order_relaxed)
                : 0;
}

uint64_t host_use_round(void)
{
    core_lock(LOCK_HOST);
    uint64_t old = level[SESSION_HOST_TENSORS] - young;
    young = 0;
    rounds++;
    core_unlock(LOCK_HOST);
    return old;
}

/* --- the process ---------------------------------------------------------- */

void host_use_begin(struct session *run)
{
    session = run;
}

void host_use_join(void)
{
    core_lock(LOCK_HOST);
    is_joined();
    core_unlock(LOCK_HOST);
}

/* The peak of a process that no look saw is the kernel's, who does not know
 * what a fork shares. */
static void last_look(void)
{
    core_lock(LOCK_HOST);
    next_look_ns = 0;
    look_at_host();
    if (!host_pages_forked()) {
        session_raise(&mine->peak, host_pages_peak());
        atomic_store(&mine->own, host_pages_own(&large, session->directory));
    }
    core_unlock(LOCK_HOST);
}

void host_use_end(void)
{
    if (!mine || mine->pid != (uint32_t)getpid() ||
        atomic_load(&mine->state) == SESSION_EXITED)
        return;
    if (!core_locks_held) /* else in a signal's handler: see process_end */
        last_look();
    atomic_store(&mine->state, SESSION_EXITED);
}

void memsim_host_leave(void)
{
    mine = NULL;
    refused = true;
}

/* What the parent has is the parent's: it is given back here without a trace.
 */
void host_use_after_fork(void)
{
    mine = NULL;
    refused = false;
    ranges_clear(&small);
    ranges_clear(&large);
    memset(level, 0, sizeof level);
    known = looked = rest = next_look_ns = young = 0;
    host_pages_after_fork();
}

void host_use_alone(void)
{
    host_pages_alone();
}
