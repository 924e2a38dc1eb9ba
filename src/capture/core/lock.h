/* SPDX-License-Identifier: Apache-2.0
 * The core's locks, in the order in which they are taken. fork() happens with
 * all of them held, so that a child finds every table whole. */
#ifndef MEMSIM_CAPTURE_LOCK_H
#define MEMSIM_CAPTURE_LOCK_H

#include <pthread.h>

enum core_lock {
    LOCK_DEVICE, /* address spaces, contexts */
    LOCK_HANDLE, /* handle pools */
    LOCK_KERNEL, /* registered kernels */
    LOCK_NAME,   /* interned names */
    LOCK_RECORD, /* the trace's writer */
    LOCK_COUNT,
};

extern pthread_mutex_t core_locks[LOCK_COUNT];

static inline void core_lock(enum core_lock lock)
{
    pthread_mutex_lock(&core_locks[lock]);
}

static inline void core_unlock(enum core_lock lock)
{
    pthread_mutex_unlock(&core_locks[lock]);
}

#endif
