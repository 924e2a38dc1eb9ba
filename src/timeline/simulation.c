/* SPDX-License-Identifier: Apache-2.0 */
#include "timeline/simulation.h"

#include <math.h>
#include <string.h>

#include "common/base/map.h"
#include "common/base/xmalloc.h"
#include "timeline/host_times.h"
#include "runtime/sim/sim_cost.h"

#define INFOS_FIRST     4096 /* a power of two */
#define PROFILE_THREADS 1024 /* more share the last one's clock */

#define FACTOR_ONE  (UINT64_C(1) << SIMULATOR_FACTOR_BITS)
#define FACTOR_MOST 1e6

/* Handles of CUDA's default streams. */
enum { STREAM_LEGACY = 1, STREAM_PER_THREAD = 2 };

struct simulator {
    struct simulation *t;
    struct simulation_options options;
    struct simulation_sink sink;
    struct op_trace *ops;
    struct pricer *pricer;
    struct simulation_world *world;
    struct sim *sim; /* the world's */
    struct map streams, events; /* numbers + 1 */
    struct map threads;
    uint32_t devices[SESSION_DEVICES]; /* numbers; SIM_NONE */
    uint32_t numbers[SESSION_DEVICES]; /* the same as they came */
    struct simulation_op *infos;         /* by tag, a ring */
    size_t info_capacity;
    uint64_t tag, call; /* the last given */
    uint64_t collective; /* the next one's place among all */
    uint64_t priced;     /* the same when it gets its price */
    uint64_t under_way;  /* operations that are not done */
    /* of a process among others: the call that its host has not done with,
     * and those of the same record that come after it */
    struct unfinished {
        bool active, works;
        struct op op; /* without what it borrows */
        uint32_t thread, stream;
        uint64_t start_ns, called_ns, first_tag;
    } unfinished;
    struct waiting {
        struct op op;
        struct price price;
        bool works;
        uint64_t fields[TRACE_FIELDS_MAX];
    } *queue;
    size_t queue_head, queue_count, queue_capacity;
    bool ended, concluded;
    struct map last_calls; /* numbers by thread */
    struct map beside; /* streams of what a change lets overlap, by stream */
    bool is_beside;    /* something runs on them that nothing waited for yet */
    uint64_t record;    /* its ordinal in the trace */
    bool begun;         /* there was a record */
    uint64_t record_ns; /* the time of the last one, on the trace's clock */
    uint64_t host_ns;   /* on the simulation's */
    uint64_t come_ns;   /* the same, before what the last record's call took */
    uint64_t waited_ns; /* for the GPU */
    uint64_t factor, lost_ns; /* of the host's times, and what is left of a
                                 nanosecond; in units of 2^-32 */
    const struct host_times *times;
    size_t calls; /* of this step so far */
    uint32_t step;      /* that runs, or comes next */
    bool in_step;
    /* of an imported profile */
    bool imported;
    uint64_t origin_ns;       /* its first record */
    uint64_t measured_end_ns; /* the last end of what was called so far */
    int64_t drifts[PROFILE_THREADS]; /* of threads: simulated less measured */
};

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

/* --- numbers of the simulator's ------------------------------------------- */

static uint32_t device_of(struct simulator *r, uint32_t device)
{
    const struct gpu *gpu = r->options.price.gpu;
    struct cost_gpu limits;
    struct sim_gpu sim_gpu;

    device = device < SESSION_DEVICES ? device : SESSION_DEVICES - 1;
    if (r->devices[device] != SIM_NONE)
        return r->devices[device];
    cost_gpu_set(gpu, &limits);
    sim_gpu_set(&sim_gpu, gpu->sm_count, gpu->nccl_channels, limits.pcie_gbps,
                gpu->memory_gbps);
    if (r->imported && !r->options.models) /* measured times have it all */
        sim_gpu = (struct sim_gpu){.queue_depth = UINT32_MAX};
    r->devices[device] =
        world_device(r->world, &sim_gpu, r, r->t->device_count);
    r->numbers[r->t->device_count++] = r->devices[device];
    return r->devices[device];
}

static uint32_t number_get(const struct map *map, uint64_t key)
{
    return (uint32_t)(uintptr_t)map_get(map, key) - 1; /* SIM_NONE: none */
}

static void number_put(struct map *map, uint64_t key, uint32_t number)
{
    map_put(map, key, (void *)((uintptr_t)number + 1));
}

static uint64_t stream_key(const struct op *op)
{
    uint64_t key = op->stream;

    if (key == STREAM_LEGACY)
        key = 0;
    if (key == STREAM_PER_THREAD)
        key |= (uint64_t)(op->thread + 1) << 8;
    return key ^ (uint64_t)op->device << 56;
}

/* A stream whose creation the trace does not have is PyTorch's or a graph's:
 * they do not wait for the legacy stream. */
static uint32_t stream_of(struct simulator *r, const struct op *op)
{
    uint64_t key = stream_key(op);
    uint32_t stream = number_get(&r->streams, key);
    enum sim_stream_flags flags = SIM_NON_BLOCKING;

    if (stream != SIM_NONE)
        return stream;
    if (op->stream <= STREAM_LEGACY)
        flags = SIM_LEGACY;
    else if (op->stream == STREAM_PER_THREAD)
        flags = SIM_BLOCKING;
    stream = sim_stream(r->sim, device_of(r, op->device), flags, 0);
    number_put(&r->streams, key, stream);
    return stream;
}

static void stream_create(struct simulator *r, const struct op *op)
{
    const struct trace_stream_create *c =
        (const struct trace_stream_create *)op->fields;
    uint32_t stream = sim_stream(r->sim, device_of(r, op->device),
                                 c->flags & 1 ? SIM_NON_BLOCKING : SIM_BLOCKING,
                                 (int32_t)c->priority);

    number_put(&r->streams, stream_key(op), stream);
}

static uint32_t event_of(struct simulator *r, uint64_t event)
{
    uint32_t number = number_get(&r->events, event);

    if (number != SIM_NONE)
        return number;
    number = sim_event(r->sim);
    number_put(&r->events, event, number);
    return number;
}

static uint32_t thread_of(struct simulator *r, uint32_t thread)
{
    uint32_t number = number_get(&r->threads, thread);

    if (number != SIM_NONE)
        return number;
    number = sim_thread(r->sim);
    number_put(&r->threads, thread, number);
    return number;
}

/* --- the host ------------------------------------------------------------- */

/* The host works for NS of this machine's. In integers: however the time is
 * cut into parts, it is the same in all. */
static void host_work(struct simulator *r, uint64_t ns)
{
    unsigned __int128 passed = (unsigned __int128)ns * r->factor + r->lost_ns;

    r->lost_ns = (uint64_t)passed & (FACTOR_ONE - 1);
    r->host_ns += (uint64_t)(passed >> SIMULATOR_FACTOR_BITS);
}

static bool is_typical(const struct simulator *r)
{
    return r->in_step && r->times && r->times->typical[r->step];
}

/* The host comes to what was recorded at TIME_NS. */
static void host_advance(struct simulator *r, uint64_t time_ns)
{
    if (time_ns <= r->record_ns)
        return;
    host_work(r, time_ns - r->record_ns);
    r->record_ns = time_ns;
}

/* The same, of a record and of a call: in a step of typical times the call has
 * its own, and other records have none. */
static void host_record(struct simulator *r, uint64_t time_ns)
{
    if (!is_typical(r))
        host_advance(r, time_ns);
}

static void host_call(struct simulator *r, const struct op *op)
{
    if (!host_call_is(op))
        return;
    if (!is_typical(r)) {
        host_advance(r, op->host_ns);
        return;
    }
    if (r->calls < r->times->gap_count)
        host_work(r, r->times->gaps[r->calls++]);
    if (op->host_ns > r->record_ns)
        r->record_ns = op->host_ns;
}

/* THREAD has made a call; where it has to wait, it does. Returns false where
 * that is left to the world. */
static bool host_settle(struct simulator *r, uint32_t thread)
{
    if (sim_waits(r->sim, thread) && r->world->together)
        return false;
    if (sim_waits(r->sim, thread) && sim_settle(r->sim, thread))
        r->t->stuck = true;
    if (r->host_ns < sim_now(r->sim, thread))
        r->host_ns = sim_now(r->sim, thread);
    return true;
}

static uint32_t step_now(const struct simulator *r)
{
    return r->in_step ? r->step : SIMULATION_NO_STEP;
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

/* Which others OP waits for, and for how long it then runs. */
static void work_meet(struct simulator *r, const struct op *op,
                      struct sim_work *work)
{
    const struct simulation_options *o = &r->options;
    uint64_t place = r->collective;

    r->collective += op->kind == OP_COLLECTIVE;
    if (op->kind != OP_COLLECTIVE || !o->meets ||
        o->meets[place] == SIMULATION_ALONE)
        return;
    work->meet = world_meet(r->world, o->meets[place]);
    work->neighbour = r->world->meets[o->meets[place]].neighbour;
    if (!op->measured || o->models)
        return;
    double scale = o->price.scale[WORK_COLLECTIVE];
    work->apart = true;
    work->duration_ns =
        scale > 0 ? (uint64_t)(scale * (double)o->meet_ns[place])
                  : o->meet_ns[place];
}

/* --- changes of the job --------------------------------------------------- */

#define STREAM_BESIDE (UINT64_C(1) << 54) /* in handles */

static uint64_t scaled(uint64_t ns, double factor)
{
    return (uint64_t)((double)ns * factor + 0.5);
}

static struct simulation_effect effect_of(const struct simulator *r,
                                          const struct op *op)
{
    const struct simulation_change *c = r->options.change;

    return c ? c->effect(c->context, op, op_trace_names(r->ops))
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
    uint32_t beside = number_get(&r->beside, stream);

    if (beside == SIM_NONE) {
        beside = sim_stream(r->sim, device_of(r, op->device), SIM_NON_BLOCKING,
                            0);
        number_put(&r->beside, stream, beside);
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

static void submit(struct simulator *r, const struct op *op, uint32_t thread,
                   const struct price *price)
{
    const struct simulation_effect effect = effect_of(r, op);
    uint32_t stream = stream_of(r, op);
    struct simulation_op *info = info_new(r);
    struct sim_work work = {
        .engine = price->engine,
        .duration_ns = price->answer.ns,
        .share = price->share,
        .link = price->link,
        .gap_ns = op->measured ? (uint32_t)op->gap_ns : SIM_GAP_NS,
        .latency_ns = (uint32_t)op->latency_ns,
        .meet = SIM_NONE,
        .tag = r->tag,
    };

    info->price = *price;
    info->kind = op->kind;
    info->device = op->device;
    info->name = op->name;
    info->module = op->module;
    info->operator = op->operator;
    info->thread = op->thread;
    info->stream = op->stream;
    info->step = step_now(r);
    info->call = r->call;
    info->bytes = op_bytes(op);
    info->capture = op->capture;
    if (r->sink.op)
        op_shape(op, info->shape);
    info->gap_ns = work.gap_ns;
    info->measured_start_ns = op->start_ns;
    info->measured_end_ns = op->start_ns + op->duration_ns;
    r->t->ops++;
    r->under_way++;
    work_meet(r, op, &work);
    work.duration_ns = scaled(work.duration_ns, effect.factor);
    info->price.answer.ns = scaled(price->answer.ns, effect.factor);
    info->price.answer.low_ns = scaled(price->answer.low_ns, effect.factor);
    info->price.answer.high_ns = scaled(price->answer.high_ns, effect.factor);
    beside_join(r, op, thread, stream);
    if (effect.overlaps) {
        stream = stream_beside(r, op, thread, stream);
        info->stream |= STREAM_BESIDE;
    }
    if (sim_submit(r->sim, thread, stream, &work))
        r->t->stuck = true;
}

/* The price of OP; false: it is no work of the device's, and no call. */
static bool price_of(struct simulator *r, const struct op *op,
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
    const struct price_place *places = r->options.places;
    bool collective = op->kind == OP_COLLECTIVE;
    pricer_price(r->pricer, op, op_trace_names(r->ops),
                 places && collective ? &places[r->priced] : NULL, price);
    r->priced += collective;
    return price->family != WORK_NOTHING;
}

/* Calls that are no work: order, waits, what comes and goes. */
static void do_call(struct simulator *r, const struct op *op, uint32_t thread)
{
    switch (op->kind) {
    case OP_EVENT_RECORD:
        sim_record(r->sim, thread, stream_of(r, op), event_of(r, op->event));
        break;
    case OP_STREAM_WAIT:
        sim_wait_event(r->sim, thread, stream_of(r, op),
                       event_of(r, op->event));
        break;
    case OP_SYNC_STREAM:
        sim_sync_stream(r->sim, thread, stream_of(r, op));
        break;
    case OP_SYNC_EVENT:
        sim_sync_event(r->sim, thread, event_of(r, op->event));
        break;
    case OP_SYNC_DEVICE:
    case OP_DEVICE_FREE:
        sim_sync_device(r->sim, thread, device_of(r, op->device));
        break;
    case OP_STREAM_CREATE:
        stream_create(r, op);
        break;
    case OP_STREAM_DESTROY:
        map_take(&r->streams, stream_key(op));
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

static void call_tell(struct simulator *r, const struct op *op, uint32_t thread,
                      uint64_t start_ns, uint64_t first_tag)
{
    struct simulation_call call = {
        .number = r->call,
        .before = (uint64_t)(uintptr_t)map_get(&r->last_calls, thread),
        .start_ns = start_ns,
        .end_ns = sim_now(r->sim, thread),
        .woken_by = sim_woken_by(r->sim, thread),
        .tag = r->tag > first_tag ? first_tag + 1 : 0,
        .kind = op->kind,
        .thread = op->thread,
        .step = step_now(r),
        .device = op->device,
        .stream = op->stream,
        .event = op->event,
    };

    map_put(&r->last_calls, thread, (void *)(uintptr_t)r->call);
    if (r->sink.call)
        r->sink.call(r->sink.context, &call);
}

/* --- imported profiles ----------------------------------------------------
 *
 * A thread's calls come as long after each other as they did, waits left out: a
 * thread is so much earlier or later than it was in the profile, which only a
 * wait changes. */

static int64_t *drift_of(struct simulator *r, uint32_t thread)
{
    return &r->drifts[thread < PROFILE_THREADS ? thread : PROFILE_THREADS - 1];
}

/* When THREAD does what it did at TIME_NS of the profile. */
static uint64_t profile_host_ns(struct simulator *r, uint32_t thread,
                                uint64_t time_ns)
{
    int64_t ns = (int64_t)(time_ns - r->origin_ns + r->options.start_ns) +
                 *drift_of(r, thread);

    return ns > 0 ? (uint64_t)ns : 0;
}

/* A profile has the kernels of libraries by name alone; memsim's own export
 * says what each operation is. */
static enum work_family family_named(const struct trace_names *names,
                                     const struct op *op,
                                     enum work_family found)
{
    static const struct {
        const char *part;
        enum work_family family;
    } families[] = {
        {"flash_fwd", WORK_ATTENTION_FORWARD},
        {"flash_bwd", WORK_ATTENTION_BACKWARD},
        {"fmha_cutlassF", WORK_ATTENTION_FORWARD},
        {"fmha_cutlassB", WORK_ATTENTION_BACKWARD},
        {"fprop", WORK_CONVOLUTION_FORWARD},
        {"convolve", WORK_CONVOLUTION_FORWARD},
        {"dgrad", WORK_CONVOLUTION_DGRAD},
        {"wgrad", WORK_CONVOLUTION_WGRAD},
        {"nvjet", WORK_GEMM},
        {"gemm", WORK_GEMM},
        {"gemv", WORK_GEMM},
        {"splitKreduce", WORK_GEMM},
    };

    const char *name = trace_names_get(names, op->name);

    if (op->family)
        found = work_family_find(trace_names_get(names, op->family));
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (found == WORK_OTHER && strstr(name, families[i].part))
            return families[i].family;
    return found;
}

/* What was measured, in place of the price. */
static void price_measured(struct simulator *r, const struct op *op,
                           struct price *price)
{
    price->family = family_named(op_trace_names(r->ops), op, price->family);
    double scale = r->options.price.scale[price->family];
    uint64_t end_ns = op->start_ns + op->duration_ns;

    if (end_ns > r->measured_end_ns)
        r->measured_end_ns = end_ns;
    if (r->options.models && op->kind != OP_HOST_FUNCTION)
        return;
    uint64_t ns = scale > 0 ? (uint64_t)(scale * (double)op->duration_ns)
                            : op->duration_ns;
    price->answer = (struct cost_answer){
        .ns = ns, .low_ns = ns, .high_ns = ns, .basis = COST_MEASURED};
    price->share = 1;
}

/* THREAD's wait ended: it returns after as long as it did. */
static void profile_return(struct simulator *r, const struct op *op,
                           uint32_t thread)
{
    sim_spend(r->sim, thread, op->return_ns);
    *drift_of(r, op->thread) =
        (int64_t)(sim_now(r->sim, thread) + r->origin_ns) -
        (int64_t)(op->host_ns + op->held_ns + r->options.start_ns);
}

/* --- calls ---------------------------------------------------------------- */

/* The host goes on with the call that it has not done with. */
static void call_finish(struct simulator *r)
{
    struct unfinished *u = &r->unfinished;

    if (!host_settle(r, u->thread))
        return;
    if (u->works && u->op.blocking) {
        u->op.blocking = false;
        sim_sync_stream(r->sim, u->thread, u->stream);
        if (!host_settle(r, u->thread))
            return;
    }
    u->active = false;
    r->t->host_ns = r->host_ns;
    r->waited_ns += sim_now(r->sim, u->thread) - u->called_ns;
    if (r->imported && u->op.kind == OP_SYNC_EVENT)
        profile_return(r, &u->op, u->thread);
    if (!u->op.capture)
        call_tell(r, &u->op, u->thread, u->start_ns, u->first_tag);
}

/* The host makes the call OP, of KIND. */
static void call_make(struct simulator *r, const struct op *op,
                      enum op_kind kind, const struct price *price, bool works)
{
    uint32_t thread = thread_of(r, op->thread);

    r->unfinished = (struct unfinished){.active = true,
                                        .works = works,
                                        .op = *op,
                                        .thread = thread,
                                        .first_tag = r->tag};
    sim_until(r->sim, thread, r->host_ns);
    r->unfinished.start_ns = sim_now(r->sim, thread);
    if (!op->capture) {
        r->call++;
        if (!r->imported)
            sim_spend(r->sim, thread, sim_call_ns(kind));
    }
    r->unfinished.called_ns = sim_now(r->sim, thread);
    if (works) {
        r->unfinished.stream = stream_of(r, op);
        submit(r, op, thread, price);
    } else if (kind == op->kind) {
        do_call(r, op, thread);
    }
    call_finish(r);
}

static void profile_call(struct simulator *r, const struct op *op,
                         struct price *price)
{
    bool works = op->kind > OP_NONE && op->kind <= OP_COLLECTIVE;

    if (op->kind == OP_HOST_JOIN) {
        *drift_of(r, op->thread) = *drift_of(r, op->joined);
        return;
    }
    r->host_ns = profile_host_ns(r, op->thread, op->host_ns);
    if (works)
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
    host_call(r, op);
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

static void queue_go(struct simulator *r)
{
    while (!r->unfinished.active && r->queue_head < r->queue_count) {
        struct waiting w = r->queue[r->queue_head++];
        w.op.fields = w.fields;
        call_op(r, &w.op, &w.price, w.works);
    }
    if (r->queue_head == r->queue_count)
        r->queue_head = r->queue_count = 0;
}

static void on_op(void *context, const struct op *op)
{
    struct simulator *r = context;
    struct price price = {.family = WORK_OTHER};
    bool works = price_of(r, op, &price);

    if (r->unfinished.active || r->queue_count)
        queue_put(r, op, &price, works);
    else
        call_op(r, op, &price, works);
}

/* --- steps ---------------------------------------------------------------- */

static void mark_all(struct simulator *r, uint64_t tag)
{
    uint64_t measured_ns =
        r->record_ns > r->measured_end_ns ? r->record_ns : r->measured_end_ns;

    struct simulation_moment *at =
        &(tag & 1 ? r->t->ends : r->t->begins)[tag / 2];

    at->measured_ns = measured_ns;
    at->host_ns = r->host_ns;
    if (!r->t->device_count) /* nothing was called yet */
        at->ns = r->host_ns;
    for (uint32_t i = 0; i < r->t->device_count; i++)
        sim_mark(r->sim, r->numbers[i], r->host_ns, tag);
}

static void steps_follow(struct simulator *r)
{
    const struct step_list *l = &r->t->steps;

    if (r->in_step && r->record >= l->steps[r->step].end) {
        if (is_typical(r) && r->calls == r->times->gap_count) {
            host_work(r, r->times->after);
            r->record_ns = l->steps[r->step].end_ns;
        }
        mark_all(r, (uint64_t)r->step * 2 + 1);
        r->in_step = false;
        r->step++;
    }
    if (!r->in_step && r->step < l->count &&
        r->record >= l->steps[r->step].first) {
        mark_all(r, (uint64_t)r->step * 2);
        r->in_step = true;
        r->calls = 0;
    }
}

/* What the process's own simulation came to, where ITEM says it. */
static void seen_read(struct simulator *r, const struct trace_item *item)
{
    static const char setting[] = TRACE_SIMULATED;
    size_t at = sizeof setting - 1;
    uint64_t ns = 0;

    if (item->head.kind != TRACE_SETTING || item->head.text_bytes < at ||
        memcmp(item->text, setting, at))
        return;
    for (; at < item->head.text_bytes && item->text[at] >= '0' &&
           item->text[at] <= '9';
         at++)
        ns = ns * 10 + (uint64_t)(item->text[at] - '0');
    r->t->seen_ns = ns;
}

void simulator_add(struct simulator *r, const struct trace_item *item)
{
    r->record = item->ordinal;
    if (!r->begun)
        r->record_ns = r->origin_ns = item->head.time_ns;
    r->begun = true;
    if (trace_says_imported(item))
        r->imported = r->t->imported = true;
    if (r->imported) {
        r->host_ns =
            profile_host_ns(r, item->head.thread, item->head.time_ns);
        r->record_ns = item->head.time_ns;
    } else {
        host_record(r, item->head.time_ns);
    }
    r->come_ns = r->host_ns;
    seen_read(r, item);
    steps_follow(r);
    if (r->sink.record)
        r->sink.record(r->sink.context, item, r->host_ns);
    op_trace_add(r->ops, item);
}

struct simulator *simulator_create(struct simulation *t,
                                   const struct simulation_options *options,
                                   const struct host_times *times,
                                   const struct simulation_sink *sink)
{
    struct simulator *r = xcalloc(1, sizeof *r);
    double factor = options->host_factor;

    r->t = t;
    r->options = *options;
    r->times = times;
    if (sink)
        r->sink = *sink;
    if (factor > 0)
        r->factor = (uint64_t)llround(
            (factor < FACTOR_MOST ? factor : FACTOR_MOST) * FACTOR_ONE);
    r->world = options->world ? options->world : world_create(NULL, false);
    r->sim = r->world->sim;
    r->host_ns = options->start_ns;
    r->ops = op_trace_create(on_op, r);
    r->pricer = pricer_create(&r->options.price);
    r->info_capacity = INFOS_FIRST;
    r->infos = xcalloc(r->info_capacity, sizeof *r->infos);
    for (unsigned i = 0; i < SESSION_DEVICES; i++)
        r->devices[i] = SIM_NONE;
    return r;
}

/* All was called. */
static void host_end(struct simulator *r)
{
    if (r->concluded)
        return;
    r->concluded = true;
    r->record++;
    steps_follow(r);
    if (r->in_step)
        mark_all(r, (uint64_t)r->step * 2 + 1);
    if (r->host_ns > r->t->end_ns)
        r->t->end_ns = r->host_ns;
}

bool simulator_waits(struct simulator *r)
{
    if (r->unfinished.active)
        call_finish(r);
    queue_go(r);
    if (r->unfinished.active)
        return true;
    if (r->ended)
        host_end(r);
    return false;
}

void simulator_conclude(struct simulator *r)
{
    if (r->unfinished.active || r->queue_count || r->under_way)
        r->t->stuck = true;
}

void simulator_end(struct simulator *r)
{
    op_trace_end(r->ops);
    r->ended = true;
    if (simulator_waits(r) || r->world->together)
        return;
    if (!sim_drain(r->sim))
        r->t->stuck = true;
}

uint64_t simulator_factor(const struct simulator *r)
{
    return r->factor;
}

uint64_t simulator_host_ns(const struct simulator *r)
{
    return r->host_ns;
}

uint64_t simulator_come_ns(const struct simulator *r)
{
    return r->come_ns;
}

uint64_t simulator_waited_ns(const struct simulator *r)
{
    return r->waited_ns;
}

bool simulator_event_ns(struct simulator *r, uint64_t event, uint64_t *ns)
{
    uint32_t number = number_get(&r->events, event);

    if (number == SIM_NONE || !sim_event_done(r->sim, number, r->host_ns))
        return false;
    *ns = sim_event_ns(r->sim, number);
    return *ns != UINT64_MAX;
}

void simulator_listen(struct simulator *r, const struct simulation_sink *sink)
{
    r->sink = sink ? *sink : (struct simulation_sink){.op = NULL};
}

void simulator_settle(struct simulator *r)
{
    while (sim_step(r->sim, r->host_ns))
        continue;
}

uint64_t simulator_calls(const struct simulator *r)
{
    return r->call;
}

struct trace_names simulator_names_take(struct simulator *r)
{
    return op_trace_names_take(r->ops);
}

void simulator_destroy(struct simulator *r)
{
    pricer_destroy(r->pricer);
    op_trace_destroy(r->ops);
    xfree(r->infos);
    map_fini(&r->streams);
    map_fini(&r->events);
    map_fini(&r->threads);
    map_fini(&r->last_calls);
    map_fini(&r->beside);
    xfree(r->queue);
    if (!r->options.world)
        world_destroy(r->world);
    xfree(r);
}
