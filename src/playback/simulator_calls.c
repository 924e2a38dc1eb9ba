/* SPDX-License-Identifier: Apache-2.0 */
#include "playback/simulator.h"

#include <string.h>

#include "common/base/xmalloc.h"
#include "runtime/sim/sim_cost.h"

/* --- kinds of calls ------------------------------------------------------- */

/* Calls that are no work: order, waits, what comes and goes. */
static void do_call(struct simulator *r, const struct op *op, uint32_t thread)
{
    switch (op->kind) {
    case OP_EVENT_RECORD:
        sim_record(r->sim, thread, simulator_stream(r, op),
                   simulator_event(r, op->event));
        break;
    case OP_STREAM_WAIT:
        sim_wait_event(r->sim, thread, simulator_stream(r, op),
                       simulator_event(r, op->event));
        break;
    case OP_SYNC_STREAM:
        sim_sync_stream(r->sim, thread, simulator_stream(r, op));
        break;
    case OP_SYNC_EVENT:
        sim_sync_event(r->sim, thread, simulator_event(r, op->event));
        break;
    case OP_SYNC_DEVICE:
    case OP_DEVICE_FREE:
        sim_sync_device(r->sim, thread, simulator_device(r, op->device));
        break;
    case OP_STREAM_CREATE:
        simulator_stream_create(r, op);
        break;
    case OP_STREAM_DESTROY:
        simulator_stream_destroy(r, op);
        break;
    case OP_EVENT_DESTROY:
        map_take(&r->events, op->event);
        break;
    default:
        break;
    }
}

/* Memory calls of pools neither wait nor cost much. */
static enum op_kind call_kind(const struct op *op)
{
    const struct trace_device_malloc *m =
        (const struct trace_device_malloc *)op->fields;

    if ((op->record == TRACE_DEVICE_MALLOC ||
         op->record == TRACE_DEVICE_FREE) &&
        m->how == TRACE_HOW_ASYNC)
        return OP_EVENT_RECORD; /* as cheap, and done with below */
    return op->kind;
}

/* The place of THREAD's last call. */
static uint64_t *last_call(struct simulator *r, uint32_t thread)
{
    uint32_t had = r->last_capacity;

    if (thread >= had) {
        r->last_capacity = 2 * thread + 8;
        r->last_calls = xreallocarray(r->last_calls, r->last_capacity,
                                      sizeof *r->last_calls);
        memset(r->last_calls + had, 0,
               (r->last_capacity - had) * sizeof *r->last_calls);
    }
    return &r->last_calls[thread];
}

static void call_tell(struct simulator *r, const struct unfinished *u)
{
    uint64_t *last = last_call(r, u->thread);
    const struct op *op = u->op;
    struct simulation_call call;

    if (r->sink.call) {
        call = (struct simulation_call){
            .number = r->call,
            .before = *last,
            .start_ns = u->start_ns,
            .end_ns = sim_now(r->sim, u->thread),
            .woken_by = sim_woken_by(r->sim, u->thread),
            .tag = r->tag > u->first_tag ? r->tag : 0,
            .kind = op->kind,
            .thread = op->thread,
            .step = simulator_step(r),
            .device = op->device,
            .stream = op->stream,
            .event = op->event,
        };
        r->sink.call(r->sink.context, &call);
    }
    *last = r->call;
}

/* --- imported profiles ---------------------------------------------------- */

/* A profile has the kernels of libraries by name alone; memsim's own export
 * says what each operation is. */
static enum work_family family_named(struct simulator *r, const struct op *op,
                                     enum work_family found)
{
    const struct trace_names *names = op_trace_names(r->ops);

    if (op->family)
        found = work_family_find(trace_names_get(names, op->family));
    return found == WORK_OTHER ? pricer_family(r->pricer, op->name, names)
                               : found;
}

/* Profilers do not say it of collectives whose call came before they began. */
static bool says_bytes(const struct op *op)
{
    return op->kind != OP_COLLECTIVE || op_as_collective(op)->bytes > 0;
}

bool simulator_reprices(const struct simulator *r, const struct op *op)
{
    const struct simulation_options *o = &r->options;

    return says_bytes(op) &&
           (o->models || (op->kind == OP_COLLECTIVE && o->price.cluster &&
                          !o->as_measured));
}

/* OP, which was measured, gets PRICE's time. */
static void price_keep(struct simulator *r, const struct op *op,
                       const struct price *price)
{
    r->t->measured_ns += op->duration_ns;
    if (price->answer.basis == COST_FALLBACK || !says_bytes(op))
        r->t->unmodelled_ns += op->duration_ns;
}

/* What a measured collective takes where its group has another width: as much
 * more as its price says. */
static uint64_t widen_price(struct simulator *r, const struct op *op,
                            const struct price *price)
{
    struct price own;

    if (op->kind != OP_COLLECTIVE || !r->options.data_parallel)
        return op->duration_ns;
    pricer_price(r->pricer, op, op_trace_names(r->ops), NULL, &own);
    if (!own.answer.ns || !price->answer.ns)
        return op->duration_ns;
    return (uint64_t)((double)op->duration_ns * (double)price->answer.ns /
                      (double)own.answer.ns);
}

/* What was measured, in place of the price. */
static void price_measured(struct simulator *r, const struct op *op,
                           struct price *price)
{
    price->family = family_named(r, op, price->family);
    double scale = r->options.price.scale[price->family];
    uint64_t ns = widen_price(r, op, price);

    if (op->start_ns + op->duration_ns > r->measured_end_ns)
        r->measured_end_ns = op->start_ns + op->duration_ns;
    if (simulator_reprices(r, op) && op->kind != OP_HOST_FUNCTION) {
        price_keep(r, op, price);
        return;
    }
    if (r->options.models && !says_bytes(op))
        price_keep(r, op, price);
    if (r->move.own && op->kind != OP_COLLECTIVE)
        price->answer =
            price_move(&r->move, op, op_trace_names(r->ops), price, ns);
    else
        price->answer = (struct cost_answer){
            .ns = ns, .low_ns = ns, .high_ns = ns, .basis = COST_MEASURED};
    if (scale > 0)
        price_scale(&price->answer, scale);
    if (!r->options.contends)
        price->share = 1;
}

/* THREAD's wait ended: it returns after as long as it did. */
static void profile_return(struct simulator *r, const struct op *op,
                           uint32_t thread)
{
    sim_spend(r->sim, thread, op->return_ns);
    *simulator_drift(r, op->thread) =
        (int64_t)(sim_now(r->sim, thread) + r->origin_ns) -
        (int64_t)(op->host_ns + op->held_ns + r->options.start_ns);
    simulator_profile_from(r, op->thread, op->host_ns + op->held_ns);
}

/* --- calls ---------------------------------------------------------------- */

static bool is_wait(enum op_kind kind)
{
    return kind == OP_SYNC_EVENT || kind == OP_SYNC_STREAM ||
           kind == OP_SYNC_DEVICE;
}

/* The host goes on with the call that it has not done with. */
void simulator_call_finish(struct simulator *r)
{
    struct unfinished *u = &r->unfinished;

    if (!simulator_host_settle(r, u->thread))
        return;
    if (u->blocking) {
        u->blocking = false;
        sim_sync_stream(r->sim, u->thread, u->stream);
        if (!simulator_host_settle(r, u->thread))
            return;
    }
    u->active = false;
    r->t->host_ns = r->host_ns;
    r->waited_ns += sim_now(r->sim, u->thread) - u->called_ns;
    if (r->imported && u->op->measured && is_wait(u->op->kind))
        profile_return(r, u->op, u->thread);
    if (!u->op->capture)
        call_tell(r, u);
}

/* A library's call returns when it has made its last launch. */
static void further_launches(struct simulator *r, const struct op *op,
                             uint32_t thread, const struct price *price)
{
    if (!op->capture && !r->imported && price->launches > 1)
        sim_spend(r->sim, thread,
                  (price->launches - UINT64_C(1)) * SIM_LAUNCH_NS);
}

/* The host makes the call OP, of KIND. */
static void call_make(struct simulator *r, const struct op *op,
                      enum op_kind kind, const struct price *price, bool works)
{
    uint32_t thread = simulator_thread(r, op->thread);
    struct unfinished *u = &r->unfinished;

    u->active = true;
    u->blocking = works && op->blocking;
    u->op = op;
    u->thread = thread;
    u->first_tag = r->tag;
    sim_until(r->sim, thread, r->host_ns);
    u->start_ns = sim_now(r->sim, thread);
    if (!op->capture) {
        r->call++;
        if (!r->imported)
            sim_spend(r->sim, thread, sim_call_ns(kind));
    }
    u->called_ns = sim_now(r->sim, thread);
    if (works) {
        u->stream = simulator_stream(r, op);
        simulator_submit(r, op, thread, u->stream, price);
        further_launches(r, op, thread, price);
    } else if (kind == op->kind) {
        do_call(r, op, thread);
    }
    simulator_call_finish(r);
    if (u->active) {
        u->kept = *op;
        u->op = &u->kept;
    }
}

static void profile_call(struct simulator *r, const struct op *op,
                         struct price *price)
{
    bool works = op->kind > OP_NONE && op->kind <= OP_COLLECTIVE;

    if (op->kind == OP_HOST_JOIN) {
        *simulator_drift(r, op->thread) = *simulator_drift(r, op->joined);
        simulator_profile_from(r, op->thread, op->host_ns);
        return;
    }
    simulator_profile_come(r, op);
    r->host_ns = simulator_profile_ns(r, op->thread, op->host_ns);
    if (works && op->measured)
        price_measured(r, op, price);
    call_make(r, op, op->kind, price, works);
}

static void call_op(struct simulator *r, const struct op *op,
                    struct price *price, bool works)
{
    enum op_kind kind = call_kind(op);

    if (r->imported) {
        profile_call(r, op, price);
        return;
    }
    simulator_host_call(r, op);
    if (!works && kind <= OP_COLLECTIVE && kind != OP_HOST_FUNCTION) {
        r->collective += kind == OP_COLLECTIVE;
        return; /* a setting of a library's */
    }
    call_make(r, op, kind, price, works);
}

/* OP comes when the host has done with those before it. */
static void queue_put(struct simulator *r, const struct op *op,
                      const struct price *price, bool works)
{
    xgrow(&r->queue, r->queue_count, &r->queue_capacity, sizeof *r->queue);
    struct waiting *w = &r->queue[r->queue_count++];
    *w = (struct waiting){.op = *op, .price = *price, .works = works};
    memcpy(w->fields, op->fields, op->field_count * sizeof *w->fields);
}

void simulator_queue_go(struct simulator *r)
{
    while (!r->unfinished.active && r->queue_head < r->queue_count) {
        struct waiting w = r->queue[r->queue_head++];
        w.op.fields = w.fields;
        call_op(r, &w.op, &w.price, w.works);
    }
    if (r->queue_head == r->queue_count)
        r->queue_head = r->queue_count = 0;
}

void simulator_op(void *context, const struct op *op)
{
    struct simulator *r = context;
    struct price price = {.family = WORK_OTHER};
    bool works = simulator_price(r, op, &price);

    if (r->unfinished.active || r->queue_count)
        queue_put(r, op, &price, works);
    else
        call_op(r, op, &price, works);
}
