/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/work/carry.h"

#include <stddef.h>

#include "capture/core/run/clock.h"
#include "capture/core/run/record.h"

const struct carry *carry;

_Thread_local uint64_t carry_launches = 1;

bool memsim_carries(void)
{
    return carry;
}

void carry_run(const struct compute *compute, compute_run *run,
               const struct kernel_launch *launch)
{
    uint64_t start_ns = clock_host(CLOCK_MONOTONIC);

    run(compute, launch);
    record_skip(start_ns);
}
