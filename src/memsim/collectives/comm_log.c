/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/collectives/comm_log.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/clamp.h"
#include "common/base/range.h"
#include "common/base/xmalloc.h"

#define RANKS_MAX (1u << 20) /* of a communicator */

/* In this order: the name of one may be a part of another's. */
static const struct {
    const char *word;
    enum comm_kind kind;
} words[] = {
    {"AllReduce", COMM_ALL_REDUCE},
    {"AllGather", COMM_ALL_GATHER},
    {"ReduceScatter", COMM_REDUCE_SCATTER},
    {"Broadcast", COMM_BROADCAST},
    {"Bcast", COMM_BROADCAST},
    {"AlltoAll", COMM_ALL_TO_ALL},
    {"AllToAll", COMM_ALL_TO_ALL},
    {"Gather", COMM_GATHER},
    {"Scatter", COMM_SCATTER},
    {"Reduce", COMM_REDUCE},
    {"Send", COMM_PAIR},
    {"Recv", COMM_PAIR},
    {"Signal", COMM_ONE_SIDED},
};

enum comm_kind comm_kind_of(const char *name)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(name, words[i].word))
            return words[i].kind;
    return COMM_OTHER;
}

/* --- communicators -------------------------------------------------------- */

static struct comm *comm_add(struct comm_log *log, uint64_t handle,
                             uint64_t rank, uint64_t ranks)
{
    xgrow(&log->comms, log->comm_count, &log->comm_capacity,
          sizeof *log->comms);
    struct comm *c = &log->comms[log->comm_count++];
    *c = (struct comm){.handle = handle};
    c->ranks = clamp_u32(ranks, 1, RANKS_MAX);
    c->rank = clamp_u32(rank, 0, c->ranks - 1);
    map_put(&log->handles, handle, (void *)(uintptr_t)log->comm_count);
    return c;
}

static uint32_t comm_find(const struct comm_log *log, uint64_t handle)
{
    return (uint32_t)(uintptr_t)map_get(&log->handles, handle) - 1;
}

/* From ranks of the communicator that C was split from to those of the world.
 * Returns whether they are known. */
static bool members_of_root(const struct comm_log *log, uint64_t handle,
                            struct comm *c)
{
    uint32_t root = comm_find(log, handle);

    if (root == COMM_NONE || &log->comms[root] == c)
        return false;
    for (uint32_t i = 0; i < c->ranks; i++) {
        if (c->members[i] >= log->comms[root].ranks)
            return false;
        if (log->comms[root].members)
            c->members[i] = log->comms[root].members[c->members[i]];
    }
    return log->comms[root].members || log->comms[root].ranks == log->world;
}

static void members_read(const struct comm_log *log,
                         const struct trace_item *item, struct comm *c)
{
    const struct trace_communicator *made = trace_as_communicator(item);
    size_t bytes = item->head.text_bytes - COMM_ID_BYTES;

    if (!made->ranges || made->ranks != c->ranks ||
        bytes / sizeof(struct range) != made->ranges)
        return;
    c->members = xmalloc(c->ranks * sizeof *c->members);
    if (range_expand(c->members, c->ranks, item->text + COMM_ID_BYTES,
                     made->ranges) &&
        (!made->root || members_of_root(log, made->root, c)))
        return;
    free(c->members);
    c->members = NULL;
}

/* A communicator of all ranks whose members were not told. */
static void members_assume(const struct comm_log *log, struct comm *c)
{
    if (c->members || c->ranks != log->world)
        return;
    c->members = xmalloc(c->ranks * sizeof *c->members);
    for (uint32_t i = 0; i < c->ranks; i++)
        c->members[i] = i;
}

static void on_communicator(struct comm_log *log,
                            const struct trace_item *item)
{
    const struct trace_communicator *made = trace_as_communicator(item);
    struct comm *c =
        comm_add(log, made->communicator, made->rank, made->ranks);

    if (item->head.text_bytes >= sizeof c->id) {
        memcpy(c->id, item->text, sizeof c->id);
        members_read(log, item, c);
    }
    c->guessed = made->root && !c->members;
    members_assume(log, c);
}

void comm_log_record(struct comm_log *log, const struct trace_item *item)
{
    uint32_t parent;

    if (!log->first_ns)
        log->first_ns = item->head.time_ns;
    if (trace_says_imported(item))
        log->imported = true;
    trace_names_add(&log->names, item);
    switch (item->head.kind) {
    case TRACE_PROCESS:
        log->rank = (uint32_t)trace_as_process(item)->rank;
        log->world = (uint32_t)trace_as_process(item)->world_size;
        log->local = (uint32_t)trace_as_process(item)->local_world_size;
        break;
    case TRACE_END:
        log->ended = trace_as_end(item)->reason == TRACE_END_EXIT &&
                     trace_as_end(item)->status == 0;
        break;
    case TRACE_RANGE_PUSH:
        log->script = item->head.thread;
        log->step_first = log->call_count;
        break;
    case TRACE_COMMUNICATOR:
        on_communicator(log, item);
        break;
    case TRACE_MODULE:
        module_table_name(
            &log->modules, (uint32_t)trace_as_module(item)->module,
            (uint32_t)trace_as_module(item)->root,
            trace_names_get(&log->names, trace_as_module(item)->name), &parent);
        break;
    default:
        break;
    }
}

/* --- calls ---------------------------------------------------------------- */

static void parts_add(struct comm_log *log, const struct op *op,
                      struct comm_call *call)
{
    const struct trace_collective *c = op_as_collective(op);
    const struct op_part own = {.peer = (uint32_t)c->root,
                                .receive = c->receive != 0,
                                .bytes = c->bytes};
    const struct op_part *parts = op->part_count ? op->parts : &own;

    call->part_first = (uint32_t)log->part_count;
    call->part_count = op->part_count ? op->part_count : 1;
    for (uint32_t i = 0; i < call->part_count; i++) {
        xgrow(&log->parts, log->part_count, &log->part_capacity,
              sizeof *log->parts);
        log->parts[log->part_count++] = parts[i];
    }
}

/* OP is of a profile, whose backward has a thread of its own: what the script
 * called in this step before a kernel of that thread is of a forward. */
static void forward_mark(struct comm_log *log, const struct op *op)
{
    if (op->kind < OP_LAUNCH || op->kind > OP_LIBRARY_CALL ||
        op->thread == log->script)
        return;
    log->has_backward = true;
    for (size_t i = log->step_first; i < log->call_count; i++)
        log->calls[i].in_forward = log->calls[i].by_script;
    log->step_first = log->call_count;
}

void comm_log_op(struct comm_log *log, const struct op *op)
{
    if (log->imported)
        forward_mark(log, op);
    if (op->kind != OP_COLLECTIVE)
        return;
    const struct trace_collective *c = op_as_collective(op);
    struct comm_call call = {
        .comm = comm_find(log, c->communicator),
        .kind = comm_kind_of(trace_names_get(&log->names, op->name)),
        .name = op->name,
        .module = op->module,
        .operator= op->operator,
        .stack = (uint32_t)c->stack,
        .phase = op->phase,
        .count = c->count,
        .type = c->type,
        .operation = c->operation,
        .root = c->root,
        .bytes = c->bytes,
        .host_ns = op->host_ns,
        .start_ns = op->start_ns,
        .duration_ns = op->duration_ns,
        .by_script = log->imported && op->thread == log->script,
    };

    if (call.comm == COMM_NONE) {
        comm_add(log, c->communicator, c->rank, c->ranks);
        call.comm = (uint32_t)log->comm_count - 1;
    }
    if (call.kind == COMM_PAIR && log->imported && op->measured)
        call.kind = COMM_OTHER; /* a profile's names no peer */
    if (call.kind == COMM_PAIR)
        parts_add(log, op, &call);
    xgrow(&log->calls, log->call_count, &log->call_capacity,
          sizeof *log->calls);
    log->calls[log->call_count++] = call;
}

void comm_log_fini(struct comm_log *log)
{
    for (size_t i = 0; i < log->comm_count; i++)
        free(log->comms[i].members);
    free(log->comms);
    free(log->calls);
    free(log->parts);
    trace_names_fini(&log->names);
    module_table_fini(&log->modules);
    map_fini(&log->handles);
    *log = (struct comm_log){.rank = 0};
}
