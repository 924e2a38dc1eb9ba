/* SPDX-License-Identifier: Apache-2.0
 * The core's locks, in the order in which they are taken. fork() runs with all
 * of them held, so that every table is consistent in the child. */
#ifndef MEMSIM_CAPTURE_CORE_BASE_LOCK_H
#define MEMSIM_CAPTURE_CORE_BASE_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum core_lock {
    LOCK_AWAIT,  /* work that waits for other processes */
    LOCK_POOL,   /* stream-ordered memory pools */
    LOCK_DEVICE, /* address spaces, contexts */
    LOCK_TABLE,  /* the session's table of processes */
    LOCK_GRAPH,  /* captures, graphs' nodes */
    LOCK_HANDLE, /* handle pools */
    LOCK_KERNEL, /* registered kernels */
    LOCK_NAME,   /* interned names */
    LOCK_RECORD, /* the trace's writer */
    LOCK_RETURN, /* notes of unknown values on the host */
    LOCK_SLEEP,  /* threads that wait for a time */
    LOCK_HOST,   /* what the process has of the host's memory */
    LOCK_KEPT,   /* which blocks outlive their step */
    LOCK_COUNT,
};

/* 0 free, 1 held, 2 held and waited for: Drepper, "Futexes are tricky", 2004,
 * mutex 3. A launch takes one of these; a pthread_mutex_t costs four times the
 * instructions. */
extern _Atomic uint32_t core_locks[LOCK_COUNT];

/* How many of them this thread holds, or is about to take or give back: a
 * signal's handler that comes in between must take none. */
extern _Thread_local uint32_t core_locks_held;

void core_lock_wait(enum core_lock lock);
void core_lock_wake(enum core_lock lock);

static inline void core_locks_count(uint32_t more)
{
    atomic_signal_fence(memory_order_seq_cst);
    core_locks_held += more;
    atomic_signal_fence(memory_order_seq_cst);
}

/* Takes LOCK where nobody holds it. */
static inline bool core_trylock(enum core_lock lock)
{
    uint32_t held = 0;

    core_locks_count(1);
    if (atomic_compare_exchange_strong_explicit(&core_locks[lock], &held, 1,
                                                memory_order_acquire,
                                                memory_order_relaxed))
        return true;
    core_locks_count((uint32_t)-1);
    return false;
}

static inline void core_lock(enum core_lock lock)
{
    uint32_t held = 0;

    core_locks_count(1);
    if (!atomic_compare_exchange_strong_explicit(&core_locks[lock], &held, 1,
                                                 memory_order_acquire,
                                                 memory_order_relaxed))
        core_lock_wait(lock);
}

static inline void core_unlock(enum core_lock lock)
{
    if (atomic_exchange_explicit(&core_locks[lock], 0, memory_order_release) ==
        2)
        core_lock_wake(lock);
    core_locks_count((uint32_t)-1);
}

#endif
