/* SPDX-License-Identifier: Apache-2.0
 * A process's collectives, from its trace. */
#include "memsim/collectives/traffic.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/clamp.h"
#include "common/base/map.h"
#include "common/base/range.h"
#include "common/base/xmalloc.h"
#include "common/trace/op_trace.h"
#include "common/trace/step.h"

#define RANKS_MAX (1u << 20) /* of a communicator */

/* Sends and receives of one ncclGroup on one communicator, which NCCL carries
 * out at once. */
struct exchange {
    uint64_t sent_bytes, received_bytes;
    uint32_t sends, receives;
    uint32_t to, from; /* the last of them */
};

struct traffic_reading {
    struct traffic_log *log;
    struct map comms;                /* index + 1 by handle */
    struct map calls;                /* struct traffic_call by hash */
    struct op_trace *ops;
    struct step_tracker steps;
};

static uint64_t hash_call(const struct traffic_call *c)
{
    uint64_t h = c->bytes;

    h = h * UINT64_C(0x9e3779b97f4a7c15) + c->coll * 2u + c->in_place;
    return h * UINT64_C(0x9e3779b97f4a7c15) + trace_pack(c->comm, c->peer);
}

static bool call_is(const struct traffic_call *a, const struct traffic_call *b)
{
    return a->coll == b->coll && a->comm == b->comm && a->peer == b->peer &&
           a->from == b->from &&
           a->in_place == b->in_place && a->bytes == b->bytes;
}

/* The log's own of the calls like WANTED. */
static struct traffic_call *call_get(struct traffic_reading *r,
                                     const struct traffic_call *wanted)
{
    struct traffic_log *log = r->log;
    struct traffic_call *first = map_get(&r->calls, hash_call(wanted)),
                        *c = first;

    while (c && !call_is(c, wanted))
        c = c->next;
    if (c)
        return c;
    c = xmalloc(sizeof *c);
    *c = *wanted;
    c->next = first;
    map_put(&r->calls, hash_call(c), c);
    xgrow(&log->calls, log->call_count, &log->call_capacity,
          sizeof(struct traffic_call *));
    return log->calls[log->call_count++] = c;
}

static void call_count(struct traffic_call *c, uint32_t step)
{
    if (step >= c->count_count) {
        size_t wanted = (size_t)step + 1 + step / 2;

        c->counts = xreallocarray(c->counts, wanted, sizeof *c->counts);
        memset(c->counts + c->count_count, 0,
               (wanted - c->count_count) * sizeof *c->counts);
        c->count_count = wanted;
    }
    c->counts[step]++;
}

/* Where calls of now are counted: 0 before the first step. */
static uint32_t step_now(const struct traffic_reading *r)
{
    return r->steps.counter.begun ? r->steps.counter.step + 1 : 0;
}

/* One more such call. */
static void call_make(struct traffic_reading *r,
                      const struct traffic_call *wanted)
{
    call_count(call_get(r, wanted), step_now(r));
}

/* With every other rank both ways it is an all-to-all, one way a scatter or a
 * gather, as PyTorch makes them of sends and receives; others count by the
 * busier direction. */
static enum fit_coll exchange_kind(const struct exchange *x, uint32_t ranks)
{
    bool to_all = ranks > 2 && x->sends + 1 >= ranks;
    bool from_all = ranks > 2 && x->receives + 1 >= ranks;

    if (to_all && from_all)
        return FIT_ALLTOALL;
    if (to_all && x->receives <= 1)
        return FIT_SCATTER;
    return from_all && x->sends <= 1 ? FIT_GATHER : FIT_SENDRECV;
}

/* A root's own share, which it does not send itself, counts too. */
static uint64_t with_own(uint64_t bytes, uint32_t calls, uint32_t ranks)
{
    return calls < ranks ? bytes + bytes / calls : bytes;
}

static void exchange_add(struct exchange *x, const struct op_part *part)
{
    if (part->receive) {
        x->from = part->peer;
        x->receives++;
        x->received_bytes += part->bytes;
    } else {
        x->to = part->peer;
        x->sends++;
        x->sent_bytes += part->bytes;
    }
}

static struct exchange exchange_of(const struct op *op)
{
    const struct trace_collective *call = op_as_collective(op);
    const struct op_part alone = {.peer = (uint32_t)call->root,
                                  .receive = call->receive != 0,
                                  .bytes = call->bytes};
    struct exchange x = {.sends = 0};

    for (uint32_t i = 0; i < op->part_count; i++)
        exchange_add(&x, &op->parts[i]);
    if (!op->part_count)
        exchange_add(&x, &alone);
    if (!x.sends)
        x.to = x.from;
    if (!x.receives)
        x.from = x.to;
    return x;
}

static void on_exchange(struct traffic_reading *r, const struct op *op,
                        unsigned comm)
{
    uint32_t ranks = r->log->comms[comm].ranks;
    const struct exchange x = exchange_of(op);
    struct traffic_call call = {
        .coll = exchange_kind(&x, ranks),
        .comm = comm,
        .bytes =
            x.sent_bytes > x.received_bytes ? x.sent_bytes : x.received_bytes,
    };

    if (call.coll == FIT_SENDRECV) {
        call.peer = x.to;
        call.from = x.from;
    } else if (call.coll == FIT_SCATTER)
        call.bytes = with_own(x.sent_bytes, x.sends, ranks);
    else if (call.coll == FIT_GATHER)
        call.bytes = with_own(x.received_bytes, x.receives, ranks);
    call_make(r, &call);
}

/* Adds COMM, with RANK of RANKS. */
static unsigned comm_add(struct traffic_reading *r, uint64_t handle,
                         uint64_t rank, uint64_t ranks,
                         struct traffic_comm comm)
{
    struct traffic_log *log = r->log;

    comm.ranks = clamp_u32(ranks, 1, RANKS_MAX);
    comm.rank = clamp_u32(rank, 0, comm.ranks - 1);
    xgrow(&log->comms, log->comm_count, &log->comm_capacity,
          sizeof *log->comms);
    log->comms[log->comm_count++] = comm;
    map_put(&r->comms, handle, (void *)(uintptr_t)log->comm_count);
    return (unsigned)log->comm_count - 1;
}

/* The members that RECORD has behind the id. */
static void members_read(struct traffic_reading *r,
                         const struct trace_item *record,
                         struct traffic_comm *comm)
{
    uint64_t root = trace_as_communicator(record)->root;
    uint64_t ranks = trace_as_communicator(record)->ranks;
    uintptr_t known = (uintptr_t)map_get(&r->comms, root);
    uint64_t ranges = trace_as_communicator(record)->ranges;
    size_t bytes = record->head.text_bytes - sizeof comm->id;
    uint32_t most = RANKS_MAX - 1;

    comm->split = root;
    if (!ranks || ranks > RANKS_MAX || !ranges ||
        bytes / sizeof(struct range) != ranges || (root && !known))
        return;
    if (root) {
        comm->root = (unsigned)known - 1;
        most = r->log->comms[comm->root].ranks - 1;
    }
    comm->members = xmalloc(ranks * sizeof *comm->members);
    if (!range_expand(comm->members, ranks, record->text + sizeof comm->id,
                      ranges)) {
        free(comm->members);
        comm->members = NULL;
        return;
    }
    for (uint64_t i = 0; i < ranks; i++)
        comm->members[i] = clamp_u32(comm->members[i], 0, most);
}

static void on_communicator(struct traffic_reading *r,
                            const struct trace_item *item)
{
    const struct trace_communicator *made = trace_as_communicator(item);
    struct traffic_comm comm = {.id = ""};

    if (item->head.text_bytes >= sizeof comm.id) {
        memcpy(comm.id, item->text, sizeof comm.id);
        members_read(r, item, &comm);
    }
    comm_add(r, made->communicator, made->rank, made->ranks, comm);
}

static unsigned comm_of(struct traffic_reading *r,
                        const struct trace_collective *call)
{
    uintptr_t known = (uintptr_t)map_get(&r->comms, call->communicator);

    if (known)
        return (unsigned)known - 1;
    return comm_add(r, call->communicator, call->rank, call->ranks,
                    (struct traffic_comm){.id = ""});
}

/* As nccl.h says for each: where a rank's own share lies in the whole. */
static bool is_in_place(const struct trace_collective *call, enum fit_coll coll)
{
    uint64_t share = call->ranks ? call->bytes / call->ranks : 0;
    uint64_t own = call->rank * share;

    if (coll == FIT_ALL_GATHER || coll == FIT_GATHER)
        return call->send == call->receive + own;
    if (coll == FIT_REDUCE_SCATTER || coll == FIT_SCATTER)
        return call->receive == call->send + own;
    return call->send == call->receive;
}

/* An op_take. */
static void on_op(void *context, const struct op *op)
{
    struct traffic_reading *r = context;

    if (op->kind != OP_COLLECTIVE || op->record != TRACE_COLLECTIVE)
        return;
    const struct trace_collective *call = op_as_collective(op);
    enum fit_coll coll;
    if (fit_coll_of_call(trace_names_get(op_trace_names(r->ops), op->name),
                         &coll))
        return;
    unsigned comm = comm_of(r, call);
    if (coll == FIT_SENDRECV)
        on_exchange(r, op, comm);
    else
        call_make(r, &(struct traffic_call){.coll = coll,
                                            .comm = comm,
                                            .in_place = is_in_place(call, coll),
                                            .bytes = call->bytes});
}

static void on_process(struct traffic_reading *r, const struct trace_item *item)
{
    const struct trace_process *process = trace_as_process(item);

    r->log->rank = clamp_u32(process->rank, 0, RANKS_MAX);
    r->log->world = clamp_u32(process->world_size, 1, RANKS_MAX);
    r->log->local = clamp_u32(process->local_world_size, 0, RANKS_MAX);
}

static void (*const handlers[])(struct traffic_reading *,
                                const struct trace_item *) = {
    [TRACE_PROCESS] = on_process,
    [TRACE_COMMUNICATOR] = on_communicator,
};

static void reading_destroy(struct traffic_reading *r)
{
    op_trace_destroy(r->ops);
    step_tracker_fini(&r->steps);
    map_fini(&r->calls);
    map_fini(&r->comms);
    free(r);
}

static void log_take(void *context, const struct trace_item *item,
                     const struct trace_now *now)
{
    struct traffic_log *log = context;
    unsigned kind = item->head.kind;

    (void)now;
    if (kind == TRACE_GRAPH_LAUNCH) /* what it launches is of its step */
        step_tracker_take(&log->reading->steps, item);
    op_trace_add(log->reading->ops, item);
    if (kind != TRACE_GRAPH_LAUNCH)
        step_tracker_take(&log->reading->steps, item);
    if (kind < sizeof handlers / sizeof *handlers && handlers[kind])
        handlers[kind](log->reading, item);
}

static void log_conclude(void *context, const struct trace_now *now)
{
    struct traffic_log *log = context;

    (void)now;
    op_trace_end(log->reading->ops);
    log->steps = step_tracker_whole(&log->reading->steps);
    reading_destroy(log->reading);
    log->reading = NULL;
}

struct trace_listener traffic_log_init(struct traffic_log *log,
                                       unsigned process)
{
    *log = (struct traffic_log){.process = process,
                                .world = 1,
                                .reading = xcalloc(1, sizeof *log->reading)};
    log->reading->log = log;
    log->reading->ops = op_trace_create(on_op, log->reading);
    return (struct trace_listener){
        .take = log_take, .end = log_conclude, .context = log};
}

int traffic_log_read(struct traffic_log *log, unsigned process,
                     struct trace_reader *reader, struct err *err)
{
    const struct trace_listener listener = traffic_log_init(log, process);
    int rc = trace_play(reader, &listener, 1, err);

    if (rc)
        traffic_log_fini(log);
    return rc;
}

void traffic_log_fini(struct traffic_log *log)
{
    if (log->reading)
        reading_destroy(log->reading);
    for (size_t i = 0; i < log->call_count; i++) {
        free(log->calls[i]->counts);
        free(log->calls[i]);
    }
    for (size_t i = 0; i < log->comm_count; i++)
        free(log->comms[i].members);
    free(log->calls);
    free(log->comms);
    *log = (struct traffic_log){0};
}
