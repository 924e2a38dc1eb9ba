/* SPDX-License-Identifier: Apache-2.0 */
#include "playback/simulator.h"

#include <math.h>
#include <string.h>

#include "common/base/xmalloc.h"
#include "runtime/sim/sim_cost.h"

/* --- what the simulator tells --------------------------------------------- */

static struct simulation_op *info_of(const struct simulator *r, uint64_t tag)
{
    return &r->infos[tag & (r->info_capacity - 1)];
}

void simulator_done(struct simulator *r, const struct sim_done *done)
{
    struct simulation_op *info = info_of(r, done->tag);

    info->done = *done;
    if (done->cause == SIM_BY_PEER)
        info->done.cause_tag = 0; /* its number is the other process's */
    r->under_way--;
    if (done->end_ns > r->t->end_ns)
        r->t->end_ns = done->end_ns;
    if (r->sink.op)
        r->sink.op(r->sink.context, info);
    info->done.tag = 0;
}

void simulator_marked(struct simulator *r, uint32_t index,
                      const struct sim_marked *m)
{
    struct simulation_moment *moments =
        m->tag & 1 ? r->t->ends : r->t->begins;
    struct simulation_moment *at = &moments[m->tag / 2];

    if (m->ns > at->ns)
        at->ns = m->ns;
    memcpy(at->use_ns[index], m->use_ns, sizeof m->use_ns);
}

/* The place of a new operation; those that are not done stay where they are. */
static struct simulation_op *info_new(struct simulator *r)
{
    uint64_t tag = ++r->tag;

    while (info_of(r, tag)->done.tag) {
        size_t capacity = r->info_capacity;
        struct simulation_op *old = r->infos;
        r->info_capacity *= 2;
        r->infos = xcalloc(r->info_capacity, sizeof *r->infos);
        for (size_t i = 0; i < capacity; i++)
            if (old[i].done.tag)
                *info_of(r, old[i].done.tag) = old[i];
        xfree(old);
    }
    *info_of(r, tag) = (struct simulation_op){.done.tag = tag};
    return info_of(r, tag);
}

/* --- operations ----------------------------------------------------------- */

static uint64_t op_bytes(const struct op *op)
{
    switch (op->record) {
    case TRACE_COPY:
        return ((const struct trace_copy *)op->fields)->bytes;
    case TRACE_SET:
        return ((const struct trace_set *)op->fields)->bytes;
    case TRACE_COLLECTIVE:
        return ((const struct trace_collective *)op->fields)->bytes;
    default:
        return 0;
    }
}

/* What of OP's record its listeners are told as it is. */
static void op_shape(const struct op *op, uint64_t shape[4])
{
    if (op->record == TRACE_LAUNCH)
        memcpy(shape, &((const struct trace_launch *)op->fields)->grid_x_y,
               4 * sizeof *shape);
    if (op->record == TRACE_COPY) {
        shape[0] = ((const struct trace_copy *)op->fields)->pinned;
        shape[1] = ((const struct trace_copy *)op->fields)->peer;
    }
    if (op->record == TRACE_SET)
        shape[0] = ((const struct trace_set *)op->fields)->value;
}

/* Which others OP, which INFO is of, waits for, and for how long it then runs.
 */
static void work_meet(struct simulator *r, const struct op *op,
                      struct simulation_op *info, struct sim_work *work)
{
    const struct simulation_options *o = &r->options;
    uint64_t place = r->collective;

    if (op->kind != OP_COLLECTIVE)
        return;
    info->shape[0] = r->collective++;
    if (o->others)
        work->meet = o->others->meet(
            o->others->context, r->sim, op,
            trace_names_get(op_trace_names(r->ops), op->name),
            &work->neighbour);
    if (!o->meets || o->meets[place] == SIMULATION_ALONE)
        return;
    work->meet = world_meet(r->world, o->meets[place]);
    work->neighbour = r->world->meets[o->meets[place]].neighbour;
    if (!op->measured || simulator_reprices(r, op))
        return;
    double scale = op->duration_ns ? (double)info->price.answer.ns /
                                         (double)op->duration_ns
                                   : 1;
    work->apart = true;
    work->duration_ns = (uint64_t)(scale * (double)o->meet_ns[place] + 0.5);
}

/* What the network has to do with OP. Its place is that of INFO. */
static void work_flow(struct simulator *r, const struct op *op,
                      struct simulation_op *info, struct sim_work *work)
{
    const struct simulation_options *o = &r->options;

    if (op->kind != OP_COLLECTIVE || !o->flows || op->measured)
        return;
    const struct simulation_flow *flow = &o->flows[info->shape[0]];
    work->flow = world_flow(r->world, flow, work->duration_ns);
    if (!work->flow)
        return;
    work->duration_ns += flow->added_ns;
    info->price.answer.ns += flow->added_ns;
    info->price.answer.low_ns += flow->added_ns;
    info->price.answer.high_ns += flow->added_ns;
}

/* --- changes of the job --------------------------------------------------- */

#define STREAM_BESIDE (UINT64_C(1) << 54) /* in handles */

static uint64_t scale_time(uint64_t ns, double factor)
{
    return (uint64_t)((double)ns * factor + 0.5);
}

static void op_scale(struct sim_work *work, struct cost_answer *answer,
                     double factor)
{
    work->duration_ns = scale_time(work->duration_ns, factor);
    answer->ns = scale_time(answer->ns, factor);
    answer->low_ns = scale_time(answer->low_ns, factor);
    answer->high_ns = scale_time(answer->high_ns, factor);
}

static struct simulation_effect effect_of(const struct simulator *r,
                                          const struct op *op,
                                          enum work_family family)
{
    const struct simulation_change *c = r->options.change;

    return c ? c->effect(c->context, op, op_trace_names(r->ops), family)
             : (struct simulation_effect){.factor = 1};
}

/* STREAM waits for all that is on OTHER so far. */
static void stream_follows(struct simulator *r, uint32_t thread,
                           uint32_t stream, uint32_t other)
{
    uint32_t event = sim_event(r->sim);

    if (sim_record(r->sim, thread, other, event) ||
        sim_wait_event(r->sim, thread, stream, event))
        r->t->stuck = true;
}

/* The stream beside STREAM, which follows it. */
static uint32_t stream_beside(struct simulator *r, const struct op *op,
                              uint32_t thread, uint32_t stream)
{
    uint32_t beside = simulator_number(&r->beside, stream);

    if (beside == SIM_NONE) {
        beside = sim_stream(r->sim, simulator_device(r, op->device),
                            SIM_NON_BLOCKING, 0);
        simulator_number_put(&r->beside, stream, beside);
    }
    stream_follows(r, thread, beside, stream);
    r->is_beside = true;
    return beside;
}

/* The optimizer needs what ran beside. */
static void beside_join(struct simulator *r, const struct op *op,
                        uint32_t thread, uint32_t stream)
{
    size_t cursor = 0;

    if (!r->is_beside || op->phase != TRACE_PHASE_OPTIMIZER)
        return;
    for (void *number; (number = map_next(&r->beside, &cursor));)
        stream_follows(r, thread, stream, (uint32_t)(uintptr_t)number - 1);
    r->is_beside = false;
}

/* What is known of OP, whose work is WORK. */
static struct simulation_op *info_make(struct simulator *r,
                                       const struct op *op,
                                       const struct price *price)
{
    struct simulation_op *info = info_new(r);

    info->price = *price;
    info->kind = op->kind;
    info->device = op->device;
    info->name = op->name;
    info->module = op->module;
    info->operator = op->operator;
    info->phase = op->phase;
    info->thread = op->thread;
    info->stream = op->stream;
    info->step = simulator_step(r);
    info->call = r->call;
    info->bytes = op_bytes(op);
    info->capture = op->capture;
    if (r->sink.op)
        op_shape(op, info->shape);
    info->measured_start_ns = op->start_ns;
    info->measured_end_ns = op->start_ns + op->duration_ns;
    r->t->ops++;
    r->under_way++;
    return info;
}

/* OP comes LATE_NS later: before it nothing runs on its STREAM, for so long,
 * in place of the gap of WORK. */
static void submit_late(struct simulator *r, const struct op *op,
                        uint32_t thread, uint32_t stream, uint64_t late_ns,
                        struct sim_work *work)
{
    bool talks = op->kind == OP_COLLECTIVE;
    const struct price price = {
        .family = talks ? WORK_COLLECTIVE : WORK_OTHER,
        .engine = talks ? SIM_LATE : SIM_STREAM_ONLY,
        .answer = {.ns = late_ns,
                   .low_ns = late_ns,
                   .high_ns = late_ns,
                   .basis = COST_MEASURED}};
    struct simulation_op *info = info_make(r, op, &price);
    const struct sim_work late = {
        .engine = price.engine,
        .duration_ns = late_ns,
        .gap_ns = work->gap_ns,
        .latency_ns = work->latency_ns,
        .meet = SIM_NONE,
        .tag = r->tag,
    };

    info->kind = OP_HOST_FUNCTION;
    info->delay = true;
    info->bytes = 0;
    info->gap_ns = work->gap_ns;
    info->measured_start_ns = info->measured_end_ns = 0;
    work->gap_ns = 0;
    if (sim_submit(r->sim, thread, stream, &late))
        r->t->stuck = true;
}

/* OP, a delay, is a part of what was before it on its STREAM; one that was
 * measured has its length. */
static void work_longer(const struct simulator *r, const struct op *op,
                        uint32_t stream, struct cost_answer *answer,
                        uint64_t parts, struct sim_work *work)
{
    if (op->measured || stream != r->last_stream)
        return;
    uint64_t ns = (uint64_t)llround((double)r->last_stream_ns * 1e-6 *
                                    (double)parts);
    work->duration_ns += ns;
    answer->ns += ns;
    answer->low_ns += ns;
    answer->high_ns += ns;
}

void simulator_submit(struct simulator *r, const struct op *op,
                      uint32_t thread, uint32_t stream,
                      const struct price *price)
{
    const struct simulation_effect effect = effect_of(r, op, price->family);
    const struct delay_effect delay = simulator_delay_of(r, op, price);
    struct sim_work work = {
        .engine = price->engine,
        .duration_ns = price->answer.ns,
        .share = price->share,
        .link = price->link,
        .gap_ns = op->measured ? (uint32_t)op->gap_ns : SIM_GAP_NS,
        .latency_ns = (uint32_t)op->latency_ns,
        .meet = SIM_NONE,
    };

    beside_join(r, op, thread, stream);
    if (effect.overlaps)
        stream = stream_beside(r, op, thread, stream);
    if (delay.late_ns)
        submit_late(r, op, thread, stream, delay.late_ns, &work);
    struct simulation_op *info = info_make(r, op, price);
    work.tag = r->tag;
    info->gap_ns = work.gap_ns;
    if (r->sink.called)
        r->sink.called(r->sink.context, r->tag, op,
                       trace_names_get(op_trace_names(r->ops), op->name));
    if (effect.overlaps)
        info->stream |= STREAM_BESIDE;
    work_meet(r, op, info, &work);
    if (effect.factor * delay.factor != 1)
        op_scale(&work, &info->price.answer, effect.factor * delay.factor);
    if (price->longer_parts)
        work_longer(r, op, stream, &info->price.answer, price->longer_parts,
                    &work);
    work_flow(r, op, info, &work);
    r->last_stream = stream;
    r->last_stream_ns = work.duration_ns;
    if (sim_submit(r->sim, thread, stream, &work))
        r->t->stuck = true;
}

/* Where the ranks of OP, a collective, are; NULL: that is not known. */
static const struct price_place *place_of(const struct simulator *r,
                                          const struct op *op,
                                          struct price_place *found)
{
    const struct simulation_places *f = r->options.finder;

    if (r->options.places)
        return &r->options.places[r->priced];
    return f && f->find(f->context, op,
                        trace_names_get(op_trace_names(r->ops), op->name),
                        found)
               ? found
               : NULL;
}

/* The price of OP; false: it is no work of the device's, and no call. */
bool simulator_price(struct simulator *r, const struct op *op,
                     struct price *price)
{
    if (op->kind == OP_HOST_FUNCTION) {
        *price = (struct price){.family = WORK_OTHER,
                                .engine = SIM_STREAM_ONLY,
                                .answer = {.ns = SIM_HOST_FUNCTION_NS,
                                           .low_ns = 0,
                                           .high_ns = 2 * SIM_HOST_FUNCTION_NS,
                                           .basis = COST_FALLBACK}};
        return true;
    }
    if (op->kind == OP_NONE || op->kind > OP_COLLECTIVE)
        return false;
    struct price_place found;
    bool collective = op->kind == OP_COLLECTIVE;
    pricer_price(r->pricer, op, op_trace_names(r->ops),
                 collective ? place_of(r, op, &found) : NULL, price);
    r->priced += collective;
    return price->family != WORK_NOTHING;
}
