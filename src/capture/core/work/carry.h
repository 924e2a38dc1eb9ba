/* SPDX-License-Identifier: Apache-2.0
 * Kernels that run on the host: the interface through which the folder compute
 * adds them. Without that folder (make COMPUTE=0) every kernel is only a launch
 * in the trace. */
#ifndef MEMSIM_CAPTURE_CORE_WORK_CARRY_H
#define MEMSIM_CAPTURE_CORE_WORK_CARRY_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/core/base/core.h"
#include "capture/core/base/launch.h"
#include "kernels/kernel.h"

#define CARRY_ARGUMENTS 11 /* of a kernel that are read, at most */

struct carry {
    /* What is known of the kernel NAME, whose computation is HOST's, kept for
     * ever, and the function that carries out a launch of it; NULL where it is
     * not carried out. */
    const struct compute *(*find)(const char *name, enum kernel_host host,
                                  compute_run **run);

    /* How many bytes of argument I are read of LAUNCH; 0: it is not. */
    uint32_t (*argument_bytes)(const struct compute *compute,
                               const struct kernel_launch *launch, int i);

    /* A kernel that PyTorch does not have itself is used for the first time. */
    void (*meet)(void);
};

/* Carries LAUNCH out by RUN, without its time in the record clock: a launch on
 * a GPU takes the host no longer if the kernel is large. The caller holds no
 * lock. */
void carry_run(const struct compute *compute, compute_run *run,
               const struct kernel_launch *launch);

/* NULL: nothing is carried out. Set when the core is loaded. */
extern const struct carry *carry;

/* Of this thread: launches that were carried out, from 1. */
extern _Thread_local uint64_t carry_launches;

/* Whether anything is carried out: for tests. */
CORE_API bool memsim_carries(void);

#endif
