/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/run/clock_gap.h"

#include <stdbool.h>

#include "capture/core/run/clock.h"
#include "capture/core/run/host_cpus.h"
#include "capture/core/run/instance.h"
#include "common/base/clamp.h"

#define JUMP_NS   100000 /* of the clock, after which the CPU time is sampled */

/* Who waits for a CPU does so for longer. To look takes a few us. */
#define SKIP_NS 100000

/* What data loaders can have done ahead: they stop at a few batches. */
#define CREDIT_MOST_NS UINT64_C(10000000000)

/* Of this thread, at its last sample. */
static _Thread_local bool is_known;
static _Thread_local uint64_t delay_ns, asleep_ns;

/* Of the process, at its last sample. */
static uint64_t host_ns, cpu_ns;
static uint64_t looked_ns; /* the record clock there */

static uint64_t waited_ns; /* by the simulation's host */
static uint64_t credit_ns; /* of that, since the process last waited */

void clock_slept(uint64_t ns)
{
    asleep_ns += ns;
}

static void process_sample(uint64_t now_ns)
{
    host_ns = now_ns;
    cpu_ns = clock_host(CLOCK_PROCESS_CPUTIME_ID);
}

static void sample_delay(uint64_t delay, uint64_t now_ns)
{
    is_known = true;
    delay_ns = delay;
    asleep_ns = 0;
    process_sample(now_ns);
}

/* How long, since the last sample, no thread of the process worked, was ready
 * to, or slept. */
static uint64_t idle_since(uint64_t now_ns, uint64_t delayed_ns)
{
    uint64_t worked_ns =
        minus_or_zero(clock_host(CLOCK_PROCESS_CPUTIME_ID), cpu_ns);

    return minus_or_zero(minus_or_zero(now_ns, host_ns),
                         worked_ns + delayed_ns + asleep_ns);
}

bool clock_gap_knows(void)
{
    return is_known;
}

bool clock_gap_is_long(uint64_t last_ns, uint64_t now_ns)
{
    return minus_or_zero(now_ns, most_u64(last_ns, looked_ns)) > CLOCK_GAP_NS;
}

uint64_t clock_gap(uint64_t last_ns, uint64_t now_ns)
{
    if (INSTANCE_IS_REAL || !clock_gap_is_long(last_ns, now_ns))
        return now_ns;
    uint64_t start_ns = clock_host(CLOCK_MONOTONIC);
    uint64_t gap_ns = now_ns - most_u64(last_ns, looked_ns);
    uint64_t delay = host_cpus_waited();
    uint64_t delayed_ns = is_known ? minus_or_zero(delay, delay_ns) : 0;
    uint64_t held_ns = 0;

    if (last_ns && is_known) {
        held_ns = least_u64(delayed_ns, gap_ns);
        uint64_t idle_ns = idle_since(start_ns, delayed_ns);
        idle_ns = least_u64(idle_ns, gap_ns - held_ns);
        if (idle_ns > CLOCK_GAP_NS) {
            held_ns += least_u64(idle_ns, credit_ns);
            credit_ns = 0;
        }
    }
    sample_delay(delay, start_ns);
    clock_gap_skip(clock_host(CLOCK_MONOTONIC) - start_ns);
    uint64_t own_ns = clock_host(CLOCK_MONOTONIC) - start_ns;
    atomic_fetch_add_explicit(&clock_held_ns, held_ns + own_ns,
                              memory_order_relaxed);
    looked_ns = now_ns - held_ns;
    return looked_ns;
}

void clock_gap_skip(uint64_t own_ns)
{
    if (own_ns >= SKIP_NS && is_known)
        sample_delay(host_cpus_waited(), clock_host(CLOCK_MONOTONIC));
}

void clock_waited(uint64_t ns)
{
    bool jumped = ns - waited_ns > JUMP_NS;

    credit_ns = least_u64(credit_ns + ns - waited_ns, CREDIT_MOST_NS);
    waited_ns = ns;
    if (jumped)
        process_sample(clock_host(CLOCK_MONOTONIC));
}
