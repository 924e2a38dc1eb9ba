/* SPDX-License-Identifier: Apache-2.0 */
#include "playback/simulator.h"

#include "playback/host_times.h"

#define FACTOR_ONE (UINT64_C(1) << SIMULATOR_FACTOR_BITS)

/* The host works for NS of this machine's. In integers: however the time is
 * cut into parts, it is the same in all. */
void simulator_host_work(struct simulator *r, uint64_t ns)
{
    unsigned __int128 passed = (unsigned __int128)ns * r->factor + r->lost_ns;

    r->lost_ns = (uint64_t)passed & (FACTOR_ONE - 1);
    r->host_ns += (uint64_t)(passed >> SIMULATOR_FACTOR_BITS);
}

bool simulator_is_typical(const struct simulator *r)
{
    return r->in_step && r->times && r->times->typical[r->step];
}

/* The host comes to what was recorded at TIME_NS. */
static void host_advance(struct simulator *r, uint64_t time_ns)
{
    if (time_ns <= r->record_ns)
        return;
    simulator_host_work(r, time_ns - r->record_ns);
    r->record_ns = time_ns;
}

/* The same, of a record and of a call: in a step of typical times the call has
 * its own, and other records have none. */
void simulator_host_record(struct simulator *r, uint64_t time_ns)
{
    if (!simulator_is_typical(r))
        host_advance(r, time_ns);
}

void simulator_host_call(struct simulator *r, const struct op *op)
{
    if (!host_call_is(op))
        return;
    if (!simulator_is_typical(r)) {
        host_advance(r, op->host_ns);
        return;
    }
    if (r->calls < r->times->gap_count)
        simulator_host_work(r, r->times->gaps[r->calls++]);
    if (op->host_ns > r->record_ns)
        r->record_ns = op->host_ns;
}

/* THREAD has made a call; where it has to wait, it does. Returns false where
 * that is left to the world. */
bool simulator_host_settle(struct simulator *r, uint32_t thread)
{
    if (sim_waits(r->sim, thread) && r->world->together)
        return false;
    if (sim_waits(r->sim, thread) && sim_settle(r->sim, thread))
        r->t->stuck = true;
    if (r->host_ns < sim_now(r->sim, thread))
        r->host_ns = sim_now(r->sim, thread);
    return true;
}

uint32_t simulator_step(const struct simulator *r)
{
    return r->in_step ? r->step : SIMULATION_NO_STEP;
}

/* --- imported profiles ----------------------------------------------------
 *
 * A thread's calls come as long after each other as they did, waits left out: a
 * thread is so much earlier or later than it was in the profile, which a wait
 * changes, and another host. */

static uint32_t profile_thread(uint32_t thread)
{
    return thread < PROFILE_THREADS ? thread : PROFILE_THREADS - 1;
}

int64_t *simulator_drift(struct simulator *r, uint32_t thread)
{
    return &r->drifts[profile_thread(thread)];
}

void simulator_profile_from(struct simulator *r, uint32_t thread,
                            uint64_t time_ns)
{
    r->came[profile_thread(thread)] = time_ns;
}

/* What passed on the thread since its last call is the host's own work: another
 * host needs another time for it. */
void simulator_profile_come(struct simulator *r, const struct op *op)
{
    uint64_t last = r->came[profile_thread(op->thread)];
    uint64_t passed = last && op->host_ns > last ? op->host_ns - last : 0;
    uint64_t own = passed;

    r->t->profiler_ns += op->profiler_ns;
    if (r->options.without_profiler)
        own -= op->profiler_ns < passed ? op->profiler_ns : passed;
    if (r->factor != FACTOR_ONE)
        own = (uint64_t)((double)own * r->options.host_factor);
    *simulator_drift(r, op->thread) += (int64_t)(own - passed);
    simulator_profile_from(r, op->thread, op->host_ns);
}

uint64_t simulator_profile_ns(struct simulator *r, uint32_t thread,
                              uint64_t time_ns)
{
    int64_t ns = (int64_t)(time_ns - r->origin_ns + r->options.start_ns) +
                 *simulator_drift(r, thread);

    return ns > 0 ? (uint64_t)ns : 0;
}
