/* SPDX-License-Identifier: Apache-2.0
 * Taps of NCCL: communicators, collectives, messages. The kernels that NCCL
 * launches for a call are a part of it; those of a group are launched by its
 * end, and are a part of that. */
#include <nccl.h>
#include <string.h>

#include "capture/core/base/lock.h"
#include "capture/core/run/process.h"
#include "capture/core/run/record.h"
#include "capture/real/card.h"
#include "capture/real/tap.h"

#define ID_BYTES        24 /* of the id, as COMMUNICATOR has it */
#define COMMUNICATORS   1024
#define HANDLE(handle)  ((uint64_t)(handle))

/* nccl.h leaves their arguments open. */
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);

static _Thread_local uint64_t group, group_depth;
static _Atomic uint64_t groups;

/* The collectives so far of each communicator, by handle. */
static struct {
    ncclComm_t comm;
    uint64_t count;
} counts[COMMUNICATORS];

static uint64_t call_number(ncclComm_t comm)
{
    uint64_t number = 0;

    core_lock(LOCK_HANDLE);
    for (int i = 0; i < COMMUNICATORS && !number; i++)
        if (counts[i].comm == comm || !counts[i].comm) {
            counts[i].comm = comm;
            number = ++counts[i].count;
        }
    core_unlock(LOCK_HANDLE);
    return number;
}

static int ranks_of(ncclComm_t comm)
{
    int ranks = 1;

    REAL_FUNCTION(ncclCommCount)(comm, &ranks);
    return ranks;
}

static int rank_of(ncclComm_t comm)
{
    int rank = 0;

    REAL_FUNCTION(ncclCommUserRank)(comm, &rank);
    return rank;
}

static uint64_t type_bytes(ncclDataType_t type)
{
    static const uint8_t bytes[] = {
        [ncclInt8] = 1,    [ncclUint8] = 1,  [ncclInt32] = 4,
        [ncclUint32] = 4,  [ncclInt64] = 8,  [ncclUint64] = 8,
        [ncclFloat16] = 2, [ncclFloat32] = 4, [ncclFloat64] = 8,
        [ncclBfloat16] = 2, [ncclFloat8e4m3] = 1, [ncclFloat8e5m2] = 1};

    return (unsigned)type < sizeof bytes ? bytes[type] : 1;
}

/* --- communicators -------------------------------------------------------- */

static void created(ncclComm_t comm, const void *id)
{
    char text[ID_BYTES] = {0};
    int device = card_current();

    if (device < 0 || !comm)
        return;
    if (id)
        memcpy(text, id, sizeof text);
    card_look(device);
    RECORD_TEXT(COMMUNICATOR, text, sizeof text, .device = (uint64_t)device,
                .communicator = HANDLE(comm), .rank = (uint64_t)rank_of(comm),
                .ranks = (uint64_t)ranks_of(comm));
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id,
                              int rank)
{
    REAL_TAP(ncclCommInitRank, (comm, ranks, id, rank), {
        memsim_process_world((uint32_t)rank, (uint32_t)ranks);
        created(*comm, id.internal);
    });
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks,
                                    ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    REAL_TAP(ncclCommInitRankConfig, (comm, ranks, id, rank, config), {
        memsim_process_world((uint32_t)rank, (uint32_t)ranks);
        created(*comm, id.internal);
    });
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key,
                           ncclComm_t *child, ncclConfig_t *config)
{
    REAL_TAP(ncclCommSplit, (comm, color, key, child, config),
             created(*child, NULL));
}

/* --- collectives ---------------------------------------------------------- */

struct collective {
    const char *name;
    const void *send, *receive;
    uint64_t count, bytes; /* BYTES: of all shares */
    int type, operation, root;
    ncclComm_t comm;
    cudaStream_t stream;
};

static void called(const struct real_call *call, const struct collective *c)
{
    TAP_ON(call, c->stream, COLLECTIVE, .name = memsim_name(c->name),
            .communicator = HANDLE(c->comm), .rank = (uint64_t)rank_of(c->comm),
            .ranks = (uint64_t)ranks_of(c->comm), .count = c->count,
            .type = (uint64_t)c->type, .operation = (uint64_t)c->operation,
            .root = (uint64_t)c->root, .bytes = c->bytes,
            .send = HANDLE(c->send), .receive = HANDLE(c->receive),
            .group = group_depth ? group : 0,
            .sequence = call_number(c->comm));
}

/* The body of a tap of NAME, which moves SHARES times COUNT elements. */
#define COLLECTIVE(name_, arguments, shares, ...)                              \
    REAL_TAP(name_, arguments, {                                               \
        const struct collective c = {                                          \
            .name = #name_,                                                    \
            .count = count,                                                    \
            .bytes = (uint64_t)(shares)*count * type_bytes(type),              \
            .type = (int)type,                                                 \
            .comm = comm,                                                      \
            .stream = stream,                                                  \
            __VA_ARGS__};                                                      \
        called(&call, &c);                                                     \
    })

ncclResult_t ncclAllReduce(const void *send, void *receive, size_t count,
                           ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream)
{
    COLLECTIVE(ncclAllReduce, (send, receive, count, type, op, comm, stream), 1,
               .send = send, .receive = receive, .operation = (int)op);
}

ncclResult_t ncclReduce(const void *send, void *receive, size_t count,
                        ncclDataType_t type, ncclRedOp_t op, int root,
                        ncclComm_t comm, cudaStream_t stream)
{
    COLLECTIVE(ncclReduce, (send, receive, count, type, op, root, comm, stream),
               1, .send = send, .receive = receive, .operation = (int)op,
               .root = root);
}

ncclResult_t ncclBroadcast(const void *send, void *receive, size_t count,
                           ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream)
{
    COLLECTIVE(ncclBroadcast, (send, receive, count, type, root, comm, stream),
               1, .send = send, .receive = receive, .root = root);
}

ncclResult_t ncclAllGather(const void *send, void *receive, size_t count,
                           ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream)
{
    COLLECTIVE(ncclAllGather, (send, receive, count, type, comm, stream),
               ranks_of(comm), .send = send, .receive = receive);
}

ncclResult_t ncclReduceScatter(const void *send, void *receive, size_t count,
                               ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream)
{
    COLLECTIVE(ncclReduceScatter,
               (send, receive, count, type, op, comm, stream), ranks_of(comm),
               .send = send, .receive = receive, .operation = (int)op);
}

ncclResult_t ncclSend(const void *send, size_t count, ncclDataType_t type,
                      int peer, ncclComm_t comm, cudaStream_t stream)
{
    COLLECTIVE(ncclSend, (send, count, type, peer, comm, stream), 1,
               .send = send, .root = peer);
}

ncclResult_t ncclRecv(void *receive, size_t count, ncclDataType_t type,
                      int peer, ncclComm_t comm, cudaStream_t stream)
{
    COLLECTIVE(ncclRecv, (receive, count, type, peer, comm, stream), 1,
               .receive = receive, .root = peer);
}

ncclResult_t ncclGroupStart(void)
{
    if (!group_depth++)
        group = ++groups;
    return REAL_FUNCTION(ncclGroupStart)();
}

ncclResult_t ncclGroupEnd(void)
{
    group_depth -= group_depth > 0;
    REAL_TAP(ncclGroupEnd, (), );
}
