/* SPDX-License-Identifier: Apache-2.0
 * The collectives, and messages. */
#include "capture/nccl/gpu.h"

#include "capture/core/base/pages.h"
#include "capture/core/run/differ.h"
#include "capture/core/run/record.h"
#include "capture/nccl/operation.h"
#include "common/trace/session.h"

static _Atomic uint64_t groups;
static _Thread_local uint64_t group; /* of this thread's calls */
static _Thread_local unsigned group_depth;

struct call {
    uint32_t name;
    const char *text; /* the name */
    enum shape shape;
    const void *send;
    void *receive;
    size_t count; /* elements, as the call has them */
    ncclDataType_t type;
    int operation;
    int root; /* or the other rank of a message, or EXCHANGE_ALL */
    uint32_t uses;
    uint8_t directions; /* with PEER, or every rank where it is -1 */
    int peer;
    ncclComm_t comm;
    cudaStream_t stream;
};

static bool is_message(const struct call *call)
{
    return call->shape == SHAPE_SEND || call->shape == SHAPE_RECEIVE;
}

static bool has_root(const struct call *call, const struct communicator *c)
{
    return call->root == EXCHANGE_ALL ||
           (call->root >= 0 && call->root < c->ranks);
}

static ncclResult_t connect_call(struct communicator *c,
                                 const struct call *call)
{
    ncclResult_t result = communicator_connect(c, call->uses);

    if (!result && call->directions)
        result = communicator_meet(c, call->peer, call->directions);
    return result;
}

/* The number of CALL, from 1: among the collectives of C, or among the messages
 * of this direction between the two ranks. All ranks count alike. 0 where there
 * is no memory. */
static uint64_t call_number(struct communicator *c, const struct call *call,
                            bool receives)
{
    if (!is_message(call))
        return ++c->collectives;
    if (!c->messages)
        c->messages =
            memsim_pages_keep((size_t)c->ranks * sizeof *c->messages);
    return c->messages ? ++c->messages[call->peer][receives] : 0;
}

/* Ranks that send each other unequal shares in one group of calls, as experts
 * do, differ. */
static void shares_watch(struct communicator *c, const struct call *call,
                         uint64_t share)
{
    static _Thread_local uint64_t last_group, first_share;
    static _Thread_local const struct communicator *last;

    if (call->shape != SHAPE_SEND || !group_depth || c->told)
        return;
    if (last_group != group || last != c) {
        last_group = group;
        last = c;
        first_share = share;
    } else if (share != first_share) {
        c->told = true;
        memsim_ranks_differ(c->places, (uint32_t)c->ranks, RANK_AXIS_SIZES,
                            "");
    }
}

static struct exchange exchange_of(const struct call *call, uint64_t share,
                                   uint64_t number)
{
    return (struct exchange){.comm = call->comm,
                             .name = call->text,
                             .shape = call->shape,
                             .type = call->type,
                             .operation = call->operation,
                             .root = call->root,
                             .stream = (uint64_t)call->stream,
                             .send = (uint64_t)call->send,
                             .receive = (uint64_t)call->receive,
                             .count = call->count,
                             .share = share,
                             .number = number,
                             .in_group = group_depth};
}

/* How many shares of COUNT elements go out and come in. */
static ncclResult_t collective_run(const struct call *call, int sends,
                                   int receives)
{
    struct communicator *c = communicator_get(call->comm);
    uint64_t share = call->count * nccl_type_bytes((int)call->type);
    int device;

    if (!c || !has_root(call, c) || !nccl_is_type((int)call->type) ||
        !nccl_is_operation(call->operation))
        return ncclInvalidArgument;
    if (c->suspended)
        return ncclInvalidUsage;
    int rc = nccl_gpu_of_stream((uint64_t)call->stream, &device);
    if (rc)
        return nccl_result(rc);
    ncclResult_t connected = connect_call(c, call);
    if (connected)
        return connected;
    uint64_t number = call_number(c, call, receives);
    shares_watch(c, call, share);
    const struct nccl_call made = {
        .exchange = exchange_of(call, share, number),
        .sends = sends,
        .receives = receives,
        .record = {
            .name = call->name,
            .device = (uint64_t)device,
            .stream = (uint64_t)call->stream,
            .communicator = (uint64_t)c,
            .rank = (uint64_t)c->rank,
            .ranks = (uint64_t)c->ranks,
            .count = call->count,
            .type = (uint64_t)call->type,
            .operation = (uint64_t)call->operation,
            .root = call->root == EXCHANGE_ALL ? 0 : (uint64_t)call->root,
            .bytes = share * (uint64_t)(sends > receives ? sends : receives),
            .send = (uint64_t)call->send,
            .receive = (uint64_t)call->receive,
            .group = group_depth ? group : 0,
            .sequence = number,
            .stack = communicator_stack(c)}};
    return nccl_gpu_call(c, &made);
}

static int ranks_of(ncclComm_t comm)
{
    const struct communicator *c = communicator_get(comm);

    return c ? c->ranks : 1;
}

static int rank_of(ncclComm_t comm)
{
    const struct communicator *c = communicator_get(comm);

    return c ? c->rank : 0;
}

/* The rest says what it takes: .uses, or .directions and .peer. */
#define CALL(name_, shape_, send_, receive_, count_, op_, root_, ...)          \
    (&(const struct call){.name = NAME_OF(name_),                              \
                          .text = name_,                                       \
                          .shape = shape_,                                     \
                          .send = send_,                                       \
                          .receive = receive_,                                 \
                          .count = count_,                                     \
                          .type = type,                                        \
                          .operation = (int)(op_),                             \
                          .root = root_,                                       \
                          .comm = comm,                                        \
                          .stream = stream,                                    \
                          __VA_ARGS__})

ncclResult_t ncclAllReduce(const void *send, void *receive, size_t count,
                           ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream)
{
    return collective_run(CALL("ncclAllReduce", SHAPE_REDUCE, send, receive,
                               count, op, EXCHANGE_ALL, .uses = USES_REDUCE),
                          1, 1);
}

ncclResult_t ncclReduce(const void *send, void *receive, size_t count,
                        ncclDataType_t type, ncclRedOp_t op, int root,
                        ncclComm_t comm, cudaStream_t stream)
{
    return collective_run(CALL("ncclReduce", SHAPE_REDUCE, send, receive, count,
                               op, root, .uses = USES_RING),
                          1, 1);
}

ncclResult_t ncclBroadcast(const void *send, void *receive, size_t count,
                           ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream)
{
    return collective_run(CALL("ncclBroadcast", SHAPE_BROADCAST, send, receive,
                               count, 0, root, .uses = USES_RING),
                          1, 1);
}

ncclResult_t ncclBcast(void *buffer, size_t count, ncclDataType_t type,
                       int root, ncclComm_t comm, cudaStream_t stream)
{
    return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

ncclResult_t ncclAllGather(const void *send, void *receive, size_t count,
                           ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream)
{
    return collective_run(CALL("ncclAllGather", SHAPE_GATHER, send, receive,
                               count, 0, EXCHANGE_ALL, .uses = USES_GATHER),
                          1, ranks_of(comm));
}

ncclResult_t ncclReduceScatter(const void *send, void *receive, size_t count,
                               ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream)
{
    return collective_run(CALL("ncclReduceScatter", SHAPE_REDUCE_SCATTER, send,
                               receive, count, op, EXCHANGE_ALL,
                               .uses = USES_GATHER),
                          ranks_of(comm), 1);
}

ncclResult_t ncclAlltoAll(const void *send, void *receive, size_t count,
                          ncclDataType_t type, ncclComm_t comm,
                          cudaStream_t stream)
{
    return collective_run(CALL("ncclAlltoAll", SHAPE_ALL_TO_ALL, send, receive,
                               count, 0, EXCHANGE_ALL,
                               .directions = SENDS | RECEIVES, .peer = -1),
                          ranks_of(comm), ranks_of(comm));
}

ncclResult_t ncclGather(const void *send, void *receive, size_t count,
                        ncclDataType_t type, int root, ncclComm_t comm,
                        cudaStream_t stream)
{
    bool is_root = rank_of(comm) == root;

    return collective_run(CALL("ncclGather", SHAPE_GATHER, send, receive, count,
                               0, root,
                               .directions = is_root ? RECEIVES : SENDS,
                               .peer = is_root ? -1 : root),
                          1, ranks_of(comm));
}

ncclResult_t ncclScatter(const void *send, void *receive, size_t count,
                         ncclDataType_t type, int root, ncclComm_t comm,
                         cudaStream_t stream)
{
    bool is_root = rank_of(comm) == root;

    return collective_run(CALL("ncclScatter", SHAPE_SCATTER, send, receive,
                               count, 0, root,
                               .directions = is_root ? SENDS : RECEIVES,
                               .peer = is_root ? -1 : root),
                          ranks_of(comm), 1);
}

ncclResult_t ncclSend(const void *send, size_t count, ncclDataType_t type,
                      int peer, ncclComm_t comm, cudaStream_t stream)
{
    return collective_run(CALL("ncclSend", SHAPE_SEND, send, NULL, count, 0,
                               peer, .directions = SENDS, .peer = peer),
                          1, 0);
}

ncclResult_t ncclRecv(void *receive, size_t count, ncclDataType_t type,
                      int peer, ncclComm_t comm, cudaStream_t stream)
{
    return collective_run(CALL("ncclRecv", SHAPE_RECEIVE, NULL, receive, count,
                               0, peer, .directions = RECEIVES, .peer = peer),
                          0, 1);
}

ncclResult_t ncclGroupStart(void)
{
    if (!group_depth++)
        group = ++groups;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    if (!group_depth)
        return ncclInvalidUsage;
    return --group_depth ? ncclSuccess : nccl_gpu_group_end();
}

/* How long the group takes the simulator says, not a call. */
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t *info)
{
    if (info)
        info->estimatedTime = 0;
    return ncclGroupEnd();
}
