/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/base/lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

_Atomic uint32_t core_locks[LOCK_COUNT];
_Thread_local uint32_t core_locks_held;

void core_lock_wait(enum core_lock lock)
{
    int saved = errno;

    while (atomic_exchange_explicit(&core_locks[lock], 2,
                                    memory_order_acquire))
        syscall(SYS_futex, &core_locks[lock], FUTEX_WAIT_PRIVATE, 2, NULL,
                NULL, 0);
    errno = saved;
}

void core_lock_wake(enum core_lock lock)
{
    syscall(SYS_futex, &core_locks[lock], FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
