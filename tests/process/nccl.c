/* SPDX-License-Identifier: Apache-2.0
 * For tests/process/real_nccl. With JOB: a program that calls NCCL, and prints
 * each answer; without: an NCCL that does nothing, whose communicators are not
 * blocking: what makes one answers ncclInProgress, and a split's is there only
 * when the program has asked how far it is. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <nccl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);
ncclResult_t ncclCommGrow(ncclComm_t comm, int ranks, const ncclUniqueId *id,
                          int rank, ncclComm_t *grown, ncclConfig_t *config);
#if NCCL_VERSION_CODE < NCCL_VERSION(2, 29, 0)
typedef struct wait_signal ncclWaitSignalDesc_t;
ncclResult_t ncclPutSignal(const void *send, size_t count, ncclDataType_t type,
                           int peer, ncclWindow_t window, size_t offset,
                           int signal, int context, unsigned flags,
                           ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclSignal(int peer, int signal, int context, unsigned flags,
                        ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclWaitSignal(int count, ncclWaitSignalDesc_t *waits,
                            ncclComm_t comm, cudaStream_t stream);
#endif

#ifdef JOB

#define TYPE ncclFloat32
#define SHOW(call) printf("%s: %d\n", #call, (int)(call))

/* Of NCCLs that have the function. */
#define HAS(name) dlsym(dlopen("libnccl.so.2", RTLD_NOW), #name)
#pragma weak ncclCommInitRankScalable
#pragma weak ncclCommShrink
#pragma weak ncclCommGrow
#pragma weak ncclAlltoAll
#pragma weak ncclGather
#pragma weak ncclScatter
#pragma weak ncclPutSignal
#pragma weak ncclSignal
#pragma weak ncclWaitSignal

static void collectives(ncclComm_t comm, char *p)
{
    SHOW(ncclAllReduce(p, p, 100, TYPE, ncclSum, comm, NULL));
    SHOW(ncclReduce(p, p, 101, TYPE, ncclMax, 3, comm, NULL));
    SHOW(ncclBroadcast(p, p, 102, TYPE, 2, comm, NULL));
    SHOW(ncclBcast(p, 103, TYPE, 1, comm, NULL));
    SHOW(ncclAllGather(p, p, 104, TYPE, comm, NULL));
    SHOW(ncclReduceScatter(p, p, 105, TYPE, ncclSum, comm, NULL));
    SHOW(ncclGroupStart());
    SHOW(ncclSend(p, 106, TYPE, 5, comm, NULL));
    SHOW(ncclRecv(p, 107, TYPE, 6, comm, NULL));
    SHOW(ncclGroupEnd());
    if (HAS(ncclAlltoAll))
        SHOW(ncclAlltoAll(p, p, 108, TYPE, comm, NULL));
    if (HAS(ncclGather))
        SHOW(ncclGather(p, p, 109, TYPE, 0, comm, NULL));
    if (HAS(ncclScatter))
        SHOW(ncclScatter(p, p, 110, TYPE, 0, comm, NULL));
    if (HAS(ncclPutSignal)) {
        SHOW(ncclPutSignal(p, 111, TYPE, 4, NULL, 0, 0, 0, 0, comm, NULL));
        SHOW(ncclSignal(5, 0, 0, 0, comm, NULL));
        SHOW(ncclWaitSignal(2, NULL, comm, NULL));
    }
}

static void communicators(void)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t comm = NULL, child = NULL, other = NULL;
    ncclResult_t state;
    ncclUniqueId id;
    char p[64];

    config.blocking = 0;
    memset(&id, 'i', sizeof id);
    SHOW(ncclCommInitRankConfig(&comm, 8, id, 3, &config));
    collectives(comm, p);
    SHOW(ncclCommSplit(comm, 1, 0, &child, &config));
    SHOW(ncclCommGetAsyncError(comm, &state));
    SHOW(ncclAllReduce(p, p, 200, TYPE, ncclSum, child, NULL));
    if (HAS(ncclCommShrink)) {
        SHOW(ncclCommShrink(comm, &(int){7}, 1, &other, &config, 0));
        SHOW(ncclAllReduce(p, p, 201, TYPE, ncclSum, other, NULL));
        SHOW(ncclCommDestroy(other));
    }
    if (HAS(ncclCommGrow)) {
        SHOW(ncclCommGrow(comm, 12, &id, -1, &other, &config));
        SHOW(ncclAllReduce(p, p, 202, TYPE, ncclSum, other, NULL));
        SHOW(ncclCommDestroy(other));
    }
    SHOW(ncclCommDestroy(child));
    SHOW(ncclCommDestroy(comm));
    if (HAS(ncclCommInitRankScalable)) {
        SHOW(ncclCommInitRankScalable(&comm, 4, 2, 1, &id, &config));
        SHOW(ncclAllReduce(p, p, 203, TYPE, ncclSum, comm, NULL));
        SHOW(ncclCommAbort(comm));
    }
    SHOW(ncclCommInitRank(&comm, 2, id, 1));
    SHOW(ncclAllReduce(p, p, 204, TYPE, ncclSum, comm, NULL));
    SHOW(ncclCommDestroy(comm));
}

/* What a real NCCL answers without a GPU that could do anything. */
static void refused(void)
{
    ncclComm_t comm = NULL;
    ncclUniqueId id;
    int version = 0, count = 0;

    SHOW(ncclGetVersion(&version));
    printf("version %d\n", version);
    memset(&id, 0, sizeof id);
    SHOW(ncclCommInitRank(NULL, 2, id, 0));
    SHOW(ncclCommInitRank(&comm, 2, id, 5));
    SHOW(ncclCommInitRankConfig(&comm, 0, id, 0, NULL));
    SHOW(ncclCommSplit(NULL, 0, 0, &comm, NULL));
    SHOW(ncclCommCount(NULL, &count));
    if (HAS(ncclCommInitRankScalable))
        SHOW(ncclCommInitRankScalable(&comm, 2, 9, 1, &id, NULL));
    collectives(NULL, NULL);
    SHOW(ncclCommDestroy(NULL));
    SHOW(ncclCommAbort(NULL));
}

int main(int argc, char **argv)
{
    int (*count_get)(int *) = dlsym(RTLD_DEFAULT, "cudaGetDeviceCount");
    int (*allocate)(void **, size_t) = dlsym(RTLD_DEFAULT, "cudaMalloc");
    void *p = NULL;
    int count = 0;

    (void)argv;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (count_get && allocate && !count_get(&count))
        allocate(&p, 1 << 20);
    if (argc > 1)
        refused();
    else
        communicators();
    return 3;
}

#else

struct ncclComm {
    int rank, ranks, ready;
};

static struct ncclComm comms[8]; /* a place that was given back comes again */
static ncclComm_t *later, later_comm;

static struct ncclComm *comm_new(int rank, int ranks)
{
    for (int i = 0; i < 8; i++)
        if (!comms[i].ranks) {
            comms[i] = (struct ncclComm){rank, ranks, 0};
            return &comms[i];
        }
    abort();
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks,
                                    ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    *comm = comm_new(rank, ranks);
    return id.internal[127] == 'i' && config->blocking == 0
               ? ncclInProgress
               : ncclInvalidArgument;
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id,
                              int rank)
{
    (void)id;
    *comm = comm_new(rank, ranks);
    (*comm)->ready = 1;
    return ncclSuccess;
}

ncclResult_t ncclCommInitRankScalable(ncclComm_t *comm, int ranks, int rank,
                                      int count, ncclUniqueId *ids,
                                      ncclConfig_t *config)
{
    return count == 1 ? ncclCommInitRankConfig(comm, ranks, *ids, rank, config)
                      : ncclInvalidArgument;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key,
                           ncclComm_t *child, ncclConfig_t *config)
{
    (void)color, (void)key, (void)config;
    later = child;
    later_comm = comm_new(comm->rank / 2, comm->ranks / 2);
    return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state)
{
    if (later)
        *later = later_comm;
    later = NULL;
    comm->ready = 1;
    return *state = ncclSuccess;
}

ncclResult_t ncclCommShrink(ncclComm_t comm, int *excluded, int count,
                            ncclComm_t *child, ncclConfig_t *config, int flags)
{
    (void)excluded, (void)config, (void)flags;
    *child = comm_new(comm->rank, comm->ranks - count);
    (*child)->ready = 1;
    return ncclSuccess;
}

ncclResult_t ncclCommGrow(ncclComm_t comm, int ranks, const ncclUniqueId *id,
                          int rank, ncclComm_t *grown, ncclConfig_t *config)
{
    (void)id, (void)rank, (void)config;
    *grown = comm_new(comm->rank, ranks);
    return ncclInProgress;
}

/* Asked too early, it is not ready. */
ncclResult_t ncclCommCount(const ncclComm_t comm, int *ranks)
{
    *ranks = comm->ranks;
    return comm->ready ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank)
{
    *rank = comm->rank;
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    comm->ranks = 0;
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    return ncclCommDestroy(comm);
}

#define WORK(name, ...)                                                        \
    ncclResult_t name(__VA_ARGS__)                                             \
    {                                                                          \
        comm->ready = 1;                                                       \
        return count % 2 ? ncclInProgress : ncclSuccess;                       \
    }
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define TO_ALL ncclDataType_t type, ncclComm_t comm, cudaStream_t stream
#define TO_ONE                                                                 \
    ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream
WORK(ncclAllReduce, const void *s, void *r, size_t count, ncclDataType_t type,
     ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
WORK(ncclReduce, const void *s, void *r, size_t count, ncclDataType_t type,
     ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream)
WORK(ncclReduceScatter, const void *s, void *r, size_t count,
     ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
WORK(ncclBroadcast, const void *s, void *r, size_t count, TO_ONE)
WORK(ncclBcast, void *r, size_t count, TO_ONE)
WORK(ncclAllGather, const void *s, void *r, size_t count, TO_ALL)
WORK(ncclAlltoAll, const void *s, void *r, size_t count, TO_ALL)
WORK(ncclGather, const void *s, void *r, size_t count, TO_ONE)
WORK(ncclScatter, const void *s, void *r, size_t count, TO_ONE)
WORK(ncclSend, const void *s, size_t count, TO_ONE)
WORK(ncclRecv, void *r, size_t count, TO_ONE)
WORK(ncclPutSignal, const void *s, size_t count, ncclDataType_t type, int peer,
     ncclWindow_t window, size_t offset, int signal, int context,
     unsigned flags, ncclComm_t comm, cudaStream_t stream)
WORK(ncclWaitSignal, int count, ncclWaitSignalDesc_t *waits, ncclComm_t comm,
     cudaStream_t stream)

ncclResult_t ncclSignal(int peer, int signal, int context, unsigned flags,
                        ncclComm_t comm, cudaStream_t stream)
{
    return ncclSuccess;
}

ncclResult_t ncclGetVersion(int *version)
{
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

ncclResult_t ncclGroupStart(void)
{
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    return ncclInProgress;
}

#endif
