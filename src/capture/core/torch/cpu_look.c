/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/torch/cpu_look.h"

#include "capture/core/base/lock.h"
#include "capture/core/run/clock.h"
#include "capture/core/run/host_cpus.h"
#include "capture/core/run/record.h"
#include "capture/core/torch/look_pace.h"

static struct look_pace pace; /* under LOCK_KEPT */

/* Whether a look is due at NOW_NS. */
static bool round_begin(uint64_t now_ns)
{
    core_lock(LOCK_KEPT);
    bool due = look_pace_round(&pace, now_ns);
    core_unlock(LOCK_KEPT);
    return due;
}

static void look_end(uint64_t cpu_ns)
{
    uint64_t cost_ns = clock_host(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;

    core_lock(LOCK_KEPT);
    look_pace_looked(&pace, clock_host(CLOCK_MONOTONIC), cost_ns);
    core_unlock(LOCK_KEPT);
}

void cpu_look_round(void)
{
    uint64_t start_ns = clock_host(CLOCK_MONOTONIC);
    struct trace_host_cpus now;

    if (!round_begin(start_ns))
        return;
    uint64_t cpu_ns = clock_host(CLOCK_THREAD_CPUTIME_ID);
    bool known = host_cpus_read(&now);
    look_end(cpu_ns);
    record_skip(start_ns);
    if (known)
        RECORD(HOST_CPUS, .ran_ns = now.ran_ns, .waited_ns = now.waited_ns,
               .process_ns = now.process_ns, .busy_ns = now.busy_ns,
               .idle_ns = now.idle_ns);
}
