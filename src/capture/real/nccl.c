/* SPDX-License-Identifier: Apache-2.0
 * Taps of NCCL: communicators, collectives, messages. The kernels that NCCL
 * launches for a call are a part of it; those of a group are launched by its
 * end, and are a part of that. */
#include <nccl.h>
#include <stdbool.h>
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

/* Communicators, by handle; of one that is not blocking the rank is not known
 * until it has been made, but where the program has named it. */
static struct member {
    ncclComm_t comm;
    int rank, ranks;   /* RANKS 0: not known yet */
    uint64_t calls;    /* collectives so far */
} members[COMMUNICATORS];

/* The call succeeded, or goes on: the communicator is not blocking. */
static bool went_well(ncclResult_t rc)
{
    return rc == ncclSuccess || rc == ncclInProgress;
}

/* Under LOCK_HANDLE: COMM's place, or a free one; NULL: there is none. */
static struct member *member_find(ncclComm_t comm)
{
    struct member *free_one = NULL;

    for (int i = 0; i < COMMUNICATORS; i++) {
        if (members[i].comm == comm)
            return &members[i];
        if (!members[i].comm && !free_one)
            free_one = &members[i];
    }
    return free_one;
}

static void member_put(ncclComm_t comm, const struct member *member)
{
    core_lock(LOCK_HANDLE);
    struct member *m = member_find(comm);
    if (m)
        *m = *member;
    core_unlock(LOCK_HANDLE);
}

/* What NCCL says of COMM, if it is ready. */
static void member_ask(ncclComm_t comm, struct member *m)
{
    if (REAL_FUNCTION(ncclCommCount)(comm, &m->ranks) ||
        REAL_FUNCTION(ncclCommUserRank)(comm, &m->rank))
        m->ranks = m->rank = 0;
}

static bool member_get(ncclComm_t comm, struct member *member)
{
    core_lock(LOCK_HANDLE);
    const struct member *known = member_find(comm);
    bool found = known && known->comm;
    if (found)
        *member = *known;
    core_unlock(LOCK_HANDLE);
    return found;
}

/* The number of the call of COMM that comes next. */
static uint64_t call_number(ncclComm_t comm)
{
    uint64_t number = 1;

    core_lock(LOCK_HANDLE);
    struct member *m = member_find(comm);
    if (m && m->comm)
        number = ++m->calls;
    core_unlock(LOCK_HANDLE);
    return number;
}

/* Its handle may be another's later. */
static void member_end(ncclComm_t comm)
{
    core_lock(LOCK_HANDLE);
    struct member *m = member_find(comm);
    if (m)
        *m = (struct member){0};
    core_unlock(LOCK_HANDLE);
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

/* COMM is there, of RANKS, or of as many as it says itself: 0. */
static void note_created(ncclComm_t comm, const void *id, int rank, int ranks)
{
    char text[ID_BYTES] = {0};
    int device = card_current();

    if (device < 0 || !comm)
        return;
    struct member m = {.comm = comm, .rank = rank, .ranks = ranks};
    if (!ranks)
        member_ask(comm, &m);
    member_put(comm, &m);
    if (id)
        memcpy(text, id, sizeof text);
    card_look(device);
    RECORD_TEXT(COMMUNICATOR, text, sizeof text, .device = (uint64_t)device,
                .communicator = HANDLE(comm), .rank = (uint64_t)m.rank,
                .ranks = (uint64_t)(m.ranks ? m.ranks : 1));
}

/* What is known of COMM. Where COMM did not exist yet when the call that makes
 * it returned, its making is recorded now. */
static struct member member_of(ncclComm_t comm)
{
    struct member m = {.comm = comm};

    if (!member_get(comm, &m)) {
        note_created(comm, NULL, 0, 0);
        member_get(comm, &m);
    } else if (!m.ranks) {
        member_ask(comm, &m);
        member_put(comm, &m);
    }
    m.ranks += !m.ranks;
    return m;
}

static void created_in_world(ncclComm_t comm, const ncclUniqueId *id, int rank,
                             int ranks)
{
    memsim_process_world((uint32_t)rank, (uint32_t)ranks);
    note_created(comm, id->internal, rank, ranks);
}

/* The body of a tap that makes a communicator: what follows records it. */
#define MAKES(name, arguments, ...)                                            \
    REAL_CALL(name, arguments, if (went_well(rc)) { __VA_ARGS__; })

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id,
                              int rank)
{
    MAKES(ncclCommInitRank, (comm, ranks, id, rank),
          created_in_world(*comm, &id, rank, ranks));
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks,
                                    ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    MAKES(ncclCommInitRankConfig, (comm, ranks, id, rank, config),
          created_in_world(*comm, &id, rank, ranks));
}

ncclResult_t ncclCommInitRankScalable(ncclComm_t *comm, int ranks, int rank,
                                      int count, ncclUniqueId *ids,
                                      ncclConfig_t *config)
{
    MAKES(ncclCommInitRankScalable, (comm, ranks, rank, count, ids, config),
          created_in_world(*comm, &ids[0], rank, ranks));
}

ncclResult_t ncclCommInitAll(ncclComm_t *comms, int count, const int *devices)
{
    MAKES(ncclCommInitAll, (comms, count, devices),
          for (int i = 0; i < count; i++)
              note_created(comms[i], NULL, i, count));
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key,
                           ncclComm_t *child, ncclConfig_t *config)
{
    MAKES(ncclCommSplit, (comm, color, key, child, config),
          note_created(*child, NULL, 0, 0));
}

ncclResult_t ncclCommShrink(ncclComm_t comm, int *excluded, int count,
                            ncclComm_t *child, ncclConfig_t *config, int flags)
{
    MAKES(ncclCommShrink, (comm, excluded, count, child, config, flags),
          note_created(*child, NULL, 0, 0));
}

/* Of NCCL 2.30; nccl.h may be older. */
ncclResult_t ncclCommGrow(ncclComm_t comm, int ranks, const ncclUniqueId *id,
                          int rank, ncclComm_t *grown, ncclConfig_t *config);
ncclResult_t ncclCommGrow(ncclComm_t comm, int ranks, const ncclUniqueId *id,
                          int rank, ncclComm_t *grown, ncclConfig_t *config)
{
    const int own = comm ? member_of(comm).rank : rank;

    MAKES(ncclCommGrow, (comm, ranks, id, rank, grown, config),
          note_created(*grown, NULL, own, ranks));
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    member_end(comm);
    return REAL_FUNCTION(ncclCommDestroy)(comm);
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    member_end(comm);
    return REAL_FUNCTION(ncclCommAbort)(comm);
}

/* --- collectives ---------------------------------------------------------- */

struct collective {
    const char *name;
    const void *send, *receive;
    uint64_t count, bytes; /* of a share */
    bool for_each;         /* there is a share for each rank */
    int type, operation, root;
    ncclComm_t comm;
    cudaStream_t stream;
};

static void note_called(const struct real_call *call,
                        const struct collective *c)
{
    const struct member m = member_of(c->comm);

    TAP_ON(call, c->stream, COLLECTIVE, .name = memsim_name(c->name),
            .communicator = HANDLE(c->comm), .rank = (uint64_t)m.rank,
            .ranks = (uint64_t)m.ranks, .count = c->count,
            .type = (uint64_t)c->type, .operation = (uint64_t)c->operation,
            .root = (uint64_t)c->root,
            .bytes = c->bytes * (uint64_t)(c->for_each ? m.ranks : 1),
            .send = HANDLE(c->send), .receive = HANDLE(c->receive),
            .group = group_depth ? group : 0,
            .sequence = call_number(c->comm));
}

/* The body of a tap of NAME. */
#define COLLECTIVE(name_, arguments, ...)                                      \
    MAKES(name_, arguments, {                                                  \
        const struct collective c = {.name = #name_,                           \
                                     .count = count,                           \
                                     .bytes = count * type_bytes(type),        \
                                     .type = (int)type,                        \
                                     .comm = comm,                             \
                                     .stream = stream,                         \
                                     __VA_ARGS__};                             \
        note_called(&call, &c);                                                \
    })

ncclResult_t ncclAllReduce(const void *send, void *receive, size_t count,
                           ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream)
{
    COLLECTIVE(ncclAllReduce, (send, receive, count, type, op, comm, stream),
               .send = send, .receive = receive, .operation = (int)op);
}

ncclResult_t ncclReduce(const void *send, void *receive, size_t count,
                        ncclDataType_t type, ncclRedOp_t op, int root,
                        ncclComm_t comm, cudaStream_t stream)
{
    COLLECTIVE(ncclReduce, (send, receive, count, type, op, root, comm, stream),
               .send = send, .receive = receive, .operation = (int)op,
               .root = root);
}

ncclResult_t ncclBroadcast(const void *send, void *receive, size_t count,
                           ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream)
{
    COLLECTIVE(ncclBroadcast, (send, receive, count, type, root, comm, stream),
               .send = send, .receive = receive, .root = root);
}

/* As NCCL has it. */
ncclResult_t ncclBcast(void *buffer, size_t count, ncclDataType_t type,
                       int root, ncclComm_t comm, cudaStream_t stream)
{
    return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

ncclResult_t ncclAllGather(const void *send, void *receive, size_t count,
                           ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream)
{
    COLLECTIVE(ncclAllGather, (send, receive, count, type, comm, stream),
               .send = send, .receive = receive, .for_each = true);
}

ncclResult_t ncclAlltoAll(const void *send, void *receive, size_t count,
                          ncclDataType_t type, ncclComm_t comm,
                          cudaStream_t stream)
{
    COLLECTIVE(ncclAlltoAll, (send, receive, count, type, comm, stream),
               .send = send, .receive = receive, .for_each = true);
}

ncclResult_t ncclGather(const void *send, void *receive, size_t count,
                        ncclDataType_t type, int root, ncclComm_t comm,
                        cudaStream_t stream)
{
    COLLECTIVE(ncclGather, (send, receive, count, type, root, comm, stream),
               .send = send, .receive = receive, .root = root,
               .for_each = true);
}

ncclResult_t ncclScatter(const void *send, void *receive, size_t count,
                         ncclDataType_t type, int root, ncclComm_t comm,
                         cudaStream_t stream)
{
    COLLECTIVE(ncclScatter, (send, receive, count, type, root, comm, stream),
               .send = send, .receive = receive, .root = root,
               .for_each = true);
}

ncclResult_t ncclReduceScatter(const void *send, void *receive, size_t count,
                               ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream)
{
    COLLECTIVE(ncclReduceScatter,
               (send, receive, count, type, op, comm, stream), .send = send,
               .receive = receive, .operation = (int)op, .for_each = true);
}

ncclResult_t ncclSend(const void *send, size_t count, ncclDataType_t type,
                      int peer, ncclComm_t comm, cudaStream_t stream)
{
    COLLECTIVE(ncclSend, (send, count, type, peer, comm, stream),
               .send = send, .root = peer);
}

ncclResult_t ncclRecv(void *receive, size_t count, ncclDataType_t type,
                      int peer, ncclComm_t comm, cudaStream_t stream)
{
    COLLECTIVE(ncclRecv, (receive, count, type, peer, comm, stream),
               .receive = receive, .root = peer);
}

/* --- one-sided calls ------------------------------------------------------ */

/* Of NCCL 2.29 and later; nccl.h may be older. */
#if NCCL_VERSION_CODE < NCCL_VERSION(2, 29, 0)
typedef struct wait_signal ncclWaitSignalDesc_t;
#endif
#if NCCL_VERSION_CODE < NCCL_VERSION(2, 27, 0)
typedef struct window *ncclWindow_t;
#endif
ncclResult_t ncclPutSignal(const void *buffer, size_t count,
                           ncclDataType_t type, int peer, ncclWindow_t window,
                           size_t offset, int signal, int context,
                           unsigned flags, ncclComm_t comm,
                           cudaStream_t stream);
ncclResult_t ncclSignal(int peer, int signal, int context, unsigned flags,
                        ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclWaitSignal(int count, ncclWaitSignalDesc_t *waits,
                            ncclComm_t comm, cudaStream_t stream);

/* They have no number among the communicator's calls: the ranks do not make
 * them together. */
static void one_sided(const struct real_call *call, const struct collective *c)
{
    const struct member m = member_of(c->comm);

    TAP_ON(call, c->stream, COLLECTIVE, .name = memsim_name(c->name),
           .communicator = HANDLE(c->comm), .rank = (uint64_t)m.rank,
           .ranks = (uint64_t)m.ranks, .count = c->count,
           .type = (uint64_t)c->type, .root = (uint64_t)c->root,
           .bytes = c->bytes, .send = HANDLE(c->send),
           .group = group_depth ? group : 0);
}

#define ONE_SIDED(name_, arguments, ...)                                       \
    MAKES(name_, arguments, {                                                  \
        const struct collective c = {                                          \
            .name = #name_, .comm = comm, .stream = stream, __VA_ARGS__};      \
        one_sided(&call, &c);                                                  \
    })

ncclResult_t ncclPutSignal(const void *buffer, size_t count,
                           ncclDataType_t type, int peer, ncclWindow_t window,
                           size_t offset, int signal, int context,
                           unsigned flags, ncclComm_t comm, cudaStream_t stream)
{
    ONE_SIDED(ncclPutSignal,
              (buffer, count, type, peer, window, offset, signal, context,
               flags, comm, stream),
              .send = buffer, .count = count,
              .bytes = count * type_bytes(type), .type = (int)type,
              .root = peer);
}

ncclResult_t ncclSignal(int peer, int signal, int context, unsigned flags,
                        ncclComm_t comm, cudaStream_t stream)
{
    ONE_SIDED(ncclSignal, (peer, signal, context, flags, comm, stream),
              .root = peer);
}

/* For whom it waits is in a list of a later header's. */
ncclResult_t ncclWaitSignal(int count, ncclWaitSignalDesc_t *waits,
                            ncclComm_t comm, cudaStream_t stream)
{
    ONE_SIDED(ncclWaitSignal, (count, waits, comm, stream),
              .count = (uint64_t)count);
}

/* --- groups --------------------------------------------------------------- */

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
