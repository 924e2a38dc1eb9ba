/* SPDX-License-Identifier: Apache-2.0
 * Delays of one process: which step it is in, and what its calls get. */
#include "playback/simulator.h"

void simulator_delay_init(struct simulator *r)
{
    const struct simulation_delays *d = r->options.delays;

    r->delay = (struct delay_state){.delays = d->table,
                                    .ranks = d->ranks,
                                    .library = d->library};
    r->marks = delays_need_steps(d->table);
}

/* The step that the host is in, or comes to; returns whether it has begun. The
 * rule of optimizers and of --step-mark is known while a program runs; steps
 * by another one are those that were found in the trace. */
static bool step_now(const struct simulator *r, uint32_t *step)
{
    bool known = step_tracker_begun(&r->marked);

    *step = known ? step_tracker_step(&r->marked) : r->step;
    return known || r->in_step;
}

/* Of a profile, each thread's calls come later. */
static void host_late(struct simulator *r, uint64_t ns)
{
    r->host_ns += ns;
    for (uint32_t i = 0; r->imported && i < PROFILE_THREADS; i++)
        r->drifts[i] += (int64_t)ns;
}

static void host_dies(struct simulator *r, uint32_t rank, uint32_t step)
{
    const struct simulation_delays *d = r->options.delays;

    r->dead = true;
    r->in_step = false;
    r->t->dead_rank = rank + 1;
    r->t->dead_step = step;
    if (r->t->steps.count > r->step)
        r->t->steps.count = r->step;
    if (d->died)
        d->died(d->context, rank, step);
}

void simulator_delay_record(struct simulator *r, const struct trace_item *item)
{
    uint32_t step;

    step_tracker_take(&r->marked, item);
    if (!step_now(r, &step) || step + 1 == r->delay_step)
        return;
    r->delay_step = step + 1;
    uint32_t rank = delay_death(&r->delay, step);
    if (rank != DELAY_ANY)
        host_dies(r, rank, step);
    else
        host_late(r, delay_of_step(&r->delay, step));
}

struct delay_effect simulator_delay_of(struct simulator *r,
                                       const struct op *op,
                                       const struct price *price)
{
    bool talks = op->record == TRACE_COLLECTIVE;
    uint32_t step;

    if (!r->delay.delays)
        return (struct delay_effect){.factor = 1};
    step_now(r, &step);
    const struct delay_call call = {
        .name = trace_names_get(op_trace_names(r->ops), op->name),
        .kind = op->kind,
        .engine = price->engine,
        .link = price->link,
        .duration_ns = price->answer.ns,
        .bytes = talks ? op_as_collective(op)->bytes : 0,
        .ranks = talks ? (uint32_t)op_as_collective(op)->ranks : 0,
        .step = step,
    };
    return delay_of(&r->delay, &call);
}
