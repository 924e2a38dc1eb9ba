/* SPDX-License-Identifier: Apache-2.0
 * The collectives. Small payloads arrive as if all ranks had sent the same. */
#include "capture/nccl/nccl_fake.h"

#include "capture/core/base/number.h"
#include "capture/core/base/pages.h"
#include "capture/core/work/carry.h"
#include "capture/core/work/stream_capture.h"
#include "capture/core/work/kernel.h"
#include "capture/core/run/record.h"
#include "capture/core/work/submit.h"
#include "capture/core/work/stream.h"
#include "capture/core/memory/values.h"

static uint64_t type_bytes(ncclDataType_t type)
{
    static const uint8_t bytes[] = {
        [ncclInt8] = 1,     [ncclUint8] = 1,      [ncclInt32] = 4,
        [ncclUint32] = 4,   [ncclInt64] = 8,      [ncclUint64] = 8,
        [ncclFloat16] = 2,  [ncclFloat32] = 4,    [ncclFloat64] = 8,
        [ncclBfloat16] = 2, [ncclFloat8e4m3] = 1, [ncclFloat8e5m2] = 1,
    };

    return (unsigned)type < sizeof bytes ? bytes[type] : 1;
}

static enum number_type number_type(ncclDataType_t type)
{
    static const uint8_t types[] = {
        [ncclInt8] = NUMBER_I8,     [ncclUint8] = NUMBER_U8,
        [ncclInt32] = NUMBER_I32,   [ncclUint32] = NUMBER_NONE,
        [ncclInt64] = NUMBER_I64,   [ncclUint64] = NUMBER_NONE,
        [ncclFloat16] = NUMBER_F16, [ncclFloat32] = NUMBER_F32,
        [ncclFloat64] = NUMBER_F64, [ncclBfloat16] = NUMBER_BF16,
    };

    return (unsigned)type < sizeof types ? types[type] : NUMBER_NONE;
}

static _Atomic uint64_t groups;
static _Thread_local uint64_t group; /* of this thread's calls */
static _Thread_local unsigned group_depth;

struct call {
    uint32_t name;
    const void *send;
    void *receive;
    size_t count; /* elements, as the call has them */
    ncclDataType_t type;
    int operation, root;
    bool reduces; /* by the operation */
    bool is_message; /* to or from PEER */
    uint32_t uses;
    uint8_t directions; /* with PEER, or every rank where it is -1 */
    int peer;
    ncclComm_t comm;
    cudaStream_t stream;
};

static ncclResult_t connect(struct communicator *c, const struct call *call)
{
    ncclResult_t result = communicator_connect(c, call->uses);

    if (!result && call->directions)
        result = communicator_meet(c, call->peer, call->directions);
    return result;
}

/* The share that all ranks sent alike arrives at TO; in a capture, a node is
 * made of it. */
static void arrive(const struct call *call, const struct communicator *c,
                   uint64_t to, uint64_t from)
{
    uint64_t bytes = call->count * type_bytes(call->type);
    const uint64_t step[STEP_WORDS] = {to, from, bytes};

    if (memsim_capture_step((uint64_t)call->stream, STEP_COPY, step))
        return;
    memsim_values_copy(to, from, bytes);
    if (call->reduces && call->operation == ncclSum)
        memsim_carry_sum(to, number_type(call->type), call->count,
                         (unsigned)c->ranks);
}

/* The number of CALL, from 1: among the collectives of C, or among the messages
 * of this direction between the two ranks. All ranks count alike. 0 where there
 * is no memory. */
static uint64_t call_number(struct communicator *c, const struct call *call,
                            bool receives)
{
    if (!call->is_message)
        return ++c->collectives;
    if (!c->messages)
        c->messages =
            memsim_pages_keep((size_t)c->ranks * sizeof *c->messages);
    return c->messages ? ++c->messages[call->peer][receives] : 0;
}

/* How many shares of COUNT elements go out and come in. */
static ncclResult_t run(const struct call *call, int sends, int receives)
{
    struct communicator *c = communicator_get(call->comm);
    uint64_t share = call->count * type_bytes(call->type);
    int device;

    if (!c || (call->is_message && (call->peer < 0 || call->peer >= c->ranks)))
        return ncclInvalidArgument;
    int rc = memsim_stream_given((uint64_t)call->stream, &device, "NCCL");
    if (rc)
        return nccl_result(rc);
    ncclResult_t connected = connect(c, call);
    if (connected)
        return connected;
    for (int i = 0; i < receives && call->receive && call->send; i++)
        arrive(call, c, (uint64_t)call->receive + (uint64_t)i * share,
               (uint64_t)call->send +
                   (sends > 1 ? (uint64_t)c->rank * share : 0));
    memsim_kernel_count(device);
    SUBMIT(COLLECTIVE, .name = call->name, .device = (uint64_t)device,
           .stream = (uint64_t)call->stream, .communicator = (uint64_t)c,
           .rank = (uint64_t)c->rank, .ranks = (uint64_t)c->ranks,
           .count = call->count, .type = (uint64_t)call->type,
           .operation = (uint64_t)call->operation, .root = (uint64_t)call->root,
           .bytes = share * (uint64_t)(sends > receives ? sends : receives),
           .send = (uint64_t)call->send, .receive = (uint64_t)call->receive,
           .group = group_depth ? group : 0,
           .sequence = call_number(c, call, receives));
    return ncclSuccess;
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
#define CALL(name_, send_, receive_, count_, op_, root_, ...)                  \
    (&(const struct call){.name = NAME_OF(name_),                              \
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
    return run(CALL("ncclAllReduce", send, receive, count, op, 0,
                    .uses = USES_REDUCE, .reduces = true),
               1, 1);
}

ncclResult_t ncclReduce(const void *send, void *receive, size_t count,
                        ncclDataType_t type, ncclRedOp_t op, int root,
                        ncclComm_t comm, cudaStream_t stream)
{
    return run(CALL("ncclReduce", send, receive, count, op, root,
                    .uses = USES_RING, .reduces = true),
               1, 1);
}

ncclResult_t ncclBroadcast(const void *send, void *receive, size_t count,
                           ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream)
{
    return run(
        CALL("ncclBroadcast", send, receive, count, 0, root, .uses = USES_RING),
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
    return run(
        CALL("ncclAllGather", send, receive, count, 0, 0, .uses = USES_GATHER),
        1, ranks_of(comm));
}

ncclResult_t ncclReduceScatter(const void *send, void *receive, size_t count,
                               ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream)
{
    return run(CALL("ncclReduceScatter", send, receive, count, op, 0,
                    .uses = USES_GATHER, .reduces = true),
               ranks_of(comm), 1);
}

ncclResult_t ncclAlltoAll(const void *send, void *receive, size_t count,
                          ncclDataType_t type, ncclComm_t comm,
                          cudaStream_t stream)
{
    return run(CALL("ncclAlltoAll", send, receive, count, 0, 0,
                    .directions = SENDS | RECEIVES, .peer = -1),
               ranks_of(comm), ranks_of(comm));
}

ncclResult_t ncclGather(const void *send, void *receive, size_t count,
                        ncclDataType_t type, int root, ncclComm_t comm,
                        cudaStream_t stream)
{
    bool is_root = rank_of(comm) == root;

    return run(CALL("ncclGather", send, receive, count, 0, root,
                    .directions = is_root ? RECEIVES : SENDS,
                    .peer = is_root ? -1 : root),
               1, ranks_of(comm));
}

ncclResult_t ncclScatter(const void *send, void *receive, size_t count,
                         ncclDataType_t type, int root, ncclComm_t comm,
                         cudaStream_t stream)
{
    bool is_root = rank_of(comm) == root;

    return run(CALL("ncclScatter", send, receive, count, 0, root,
                    .directions = is_root ? SENDS : RECEIVES,
                    .peer = is_root ? -1 : root),
               ranks_of(comm), 1);
}

ncclResult_t ncclSend(const void *send, size_t count, ncclDataType_t type,
                      int peer, ncclComm_t comm, cudaStream_t stream)
{
    return run(CALL("ncclSend", send, NULL, count, 0, peer, .directions = SENDS,
                    .peer = peer, .is_message = true),
               1, 0);
}

ncclResult_t ncclRecv(void *receive, size_t count, ncclDataType_t type,
                      int peer, ncclComm_t comm, cudaStream_t stream)
{
    return run(CALL("ncclRecv", NULL, receive, count, 0, peer,
                    .directions = RECEIVES, .peer = peer, .is_message = true),
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
    group_depth--;
    return ncclSuccess;
}
