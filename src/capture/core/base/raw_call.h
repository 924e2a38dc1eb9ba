/* SPDX-License-Identifier: Apache-2.0
 * System calls past the C library's syscall(), nanosleep() and the like, which
 * ours stand before: for waits that are not the program's. */
#ifndef MEMSIM_CAPTURE_CORE_BASE_RAW_CALL_H
#define MEMSIM_CAPTURE_CORE_BASE_RAW_CALL_H

#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>

/* Returns the kernel's result: below 0 it is -errno. */
static inline long raw_call(long number, const long a[6])
{
    register long r10 __asm__("r10") = a[3];
    register long r8 __asm__("r8") = a[4];
    register long r9 __asm__("r9") = a[5];
    long rc;

    __asm__ volatile("syscall"
                     : "=a"(rc)
                     : "a"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10),
                       "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return rc;
}

/* futex(2) with OP; MOST: how long to wait, NULL: without end. */
static inline long raw_futex(_Atomic uint32_t *word, int op, uint32_t value,
                             const struct timespec *most)
{
    const long a[6] = {(long)word, op, (long)value, (long)most, 0, 0};

    return raw_call(SYS_futex, a);
}

#endif
