/* SPDX-License-Identifier: Apache-2.0
 * Communicators made of others: how many ranks they have, and how far a
 * collective of theirs reaches.
 * Status: 122, for its processes are ranks that wait for others which never
 * come. */
#include <cuda_runtime_api.h>
#include <nccl.h>

#include "capture/core/torch/process_group.h"
#include "carried.h"
#include "check.h"
#include "common/base/range.h"
#include "cudnn_trace.h"

#define WORLD 16

/* On a GPU this process is the only rank. */
#pragma weak memsim_group_tell

/* NCCL 2.29 and 2.30 have these, only. */
#pragma weak ncclCommGetUniqueId
#pragma weak ncclCommGrow
#pragma weak ncclCommSuspend
#pragma weak ncclCommResume
#pragma weak ncclCommMemStats
#pragma weak ncclPutSignal
#pragma weak ncclSignal
#pragma weak ncclWaitSignal
#pragma weak ncclGetPeerDevicePointer
#pragma weak ncclGetLsaMultimemDevicePointer
#pragma weak ncclDevCommCreate
#pragma weak ncclDevCommDestroy
#pragma weak ncclWinGetUserPtr
#pragma weak ncclTeamLsa
#pragma weak ncclTeamRail
#pragma weak ncclTeamRankToLsa

static ncclComm_t world_comm(int rank)
{
    need_fake("ranks without processes");
    ncclUniqueId id;
    ncclComm_t comm;

    CHECK(!ncclGetUniqueId(&id));
    CHECK(!ncclCommInitRank(&comm, WORLD, id, rank));
    return comm;
}

static void is_rank(ncclComm_t comm, int rank, int ranks)
{
    int value;

    CHECK(!ncclCommUserRank(comm, &value));
    CHECK_UINT((unsigned)value, (unsigned)rank);
    CHECK(!ncclCommCount(comm, &value));
    CHECK_UINT((unsigned)value, (unsigned)ranks);
}

/* Every value of an all-gather over 4 ranks arrives, and nothing behind it. */
static void gathers_four(ncclComm_t comm)
{
    int share = 7, whole[5] = {0, 0, 0, 0, -1}, *p;

    CHECK(!cudaMalloc((void **)&p, 6 * sizeof *p));
    CHECK(!cudaMemcpy(p, &share, sizeof share, cudaMemcpyHostToDevice));
    CHECK(!cudaMemcpy(p + 1, whole, sizeof whole, cudaMemcpyHostToDevice));
    CHECK(!ncclAllGather(p, p + 1, 1, ncclInt32, comm, 0));
    CHECK(!cudaMemcpy(whole, p + 1, sizeof whole, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 4; i++)
        CHECK(whole[i] == 7);
    CHECK(whole[4] == -1);
    CHECK(!cudaFree(p));
}

TEST(the_first_communicator_takes_memory_even_of_one_rank)
{
    size_t before, after, again, total;
    ncclUniqueId id;
    ncclComm_t comm;

    CHECK(!cudaMemGetInfo(&before, &total));
    CHECK(!ncclGetUniqueId(&id));
    CHECK(!ncclCommInitRank(&comm, 1, id, 0));
    CHECK(!cudaMemGetInfo(&after, &total));
    CHECK(!ncclCommInitRank(&comm, 1, id, 0));
    CHECK(!cudaMemGetInfo(&again, &total));
    answer((int64_t)(before - after), "bytes of NCCL's first communicator");
    answer((int64_t)(after - again), "bytes of NCCL's second communicator");
    CHECK(before > after);
    if (gpu_capability() == HOPPER && !is_real())
        CHECK_UINT(before - after, 486 << 20);
    CHECK(again == after || is_real());
}

/* A rank that is alone: what it sends comes back. */
TEST(one_rank_has_all)
{
    int numbers[2] = {3, -1}, got[2] = {0}, rank = 9, *p;
    ncclUniqueId id;
    ncclComm_t comm;

    CHECK(!ncclGetUniqueId(&id));
    CHECK_CODE(ncclCommInitRank(&comm, 1, id, 1), ncclInvalidArgument);
    CHECK_CODE(ncclCommInitRank(&comm, 0, id, 0), ncclInvalidArgument);
    CHECK(!ncclCommInitRank(&comm, 1, id, 0));
    CHECK(!ncclCommUserRank(comm, &rank) && rank == 0);
    CHECK(!ncclCommCount(comm, &rank) && rank == 1);
    CHECK(!cudaMalloc((void **)&p, 1024));
    CHECK(!cudaMemcpy(p, numbers, sizeof numbers, cudaMemcpyHostToDevice));
    CHECK(!ncclAllReduce(p, p + 4, 2, ncclInt32, ncclSum, comm, 0));
    CHECK(!ncclAllGather(p + 4, p + 8, 2, ncclInt32, comm, 0));
    CHECK(!ncclBroadcast(p + 8, p + 12, 2, ncclInt32, 0, comm, 0));
    CHECK(!cudaMemcpy(got, p + 12, sizeof got, cudaMemcpyDeviceToHost));
    CHECK(got[0] == 3 && got[1] == -1);
    CHECK_CODE(ncclAllReduce(p, p, 2, (ncclDataType_t)99, ncclSum, comm, 0),
               ncclInvalidArgument);
    CHECK_CODE(ncclBroadcast(p, p, 2, ncclInt32, 1, comm, 0),
               ncclInvalidArgument);
    CHECK_CODE(ncclCommCount(NULL, &rank), ncclInvalidArgument);
    CHECK(!ncclCommDestroy(comm));
}

/* What every rank of 16 holds alike. */
TEST(sums_are_of_all_ranks)
{
    ncclComm_t comm = world_comm(5);
    int64_t counts[2] = {3, -1}, got[2];
    float ones[2] = {1, 0.5f}, *p;

    need_carried();
    CHECK(!cudaMalloc((void **)&p, 1024));
    CHECK(!cudaMemcpy(p, counts, sizeof counts, cudaMemcpyHostToDevice));
    CHECK(!ncclAllReduce(p, p, 2, ncclInt64, ncclSum, comm, 0));
    CHECK(!cudaMemcpy(got, p, sizeof got, cudaMemcpyDeviceToHost));
    CHECK(got[0] == 48 && got[1] == -16);
    CHECK(!ncclAllReduce(p, p, 2, ncclInt64, ncclMax, comm, 0));
    CHECK(!cudaMemcpy(got, p, sizeof got, cudaMemcpyDeviceToHost));
    CHECK(got[0] == 48 && got[1] == -16);
    CHECK(!cudaMemcpy(p, ones, sizeof ones, cudaMemcpyHostToDevice));
    CHECK(!ncclReduce(p, p + 8, 2, ncclFloat32, ncclSum, 5, comm, 0));
    CHECK(!cudaMemcpy(ones, p + 8, sizeof ones, cudaMemcpyDeviceToHost));
    CHECK(ones[0] == 16 && ones[1] == 8);
}

/* As PyTorch 2.15 gathers a list: a broadcast from each rank in turn. */
TEST(a_group_of_broadcasts_gathers)
{
    ncclComm_t comm = world_comm(5);
    int numbers[2] = {3, -1}, got[2 * WORLD], *p;

    need_carried();
    need_fake("ranks that are not there");
    CHECK(!cudaMalloc((void **)&p, sizeof got + sizeof numbers));
    CHECK(!cudaMemset(p, 0, sizeof got));
    CHECK(!cudaMemcpy(p + 2 * WORLD, numbers, sizeof numbers,
                      cudaMemcpyHostToDevice));
    CHECK(!ncclGroupStart());
    for (int i = 0; i < WORLD; i++)
        CHECK(!ncclBroadcast(i == 5 ? p + 2 * WORLD : p + 2 * i, p + 2 * i, 2,
                             ncclInt32, i, comm, 0));
    CHECK(!ncclGroupEnd());
    CHECK(!cudaMemcpy(got, p, sizeof got, cudaMemcpyDeviceToHost));
    for (int i = 0; i < WORLD; i++)
        CHECK(got[2 * i] == 3 && got[2 * i + 1] == -1);
}

TEST(a_split_has_the_ranks_that_were_told)
{
    static const uint32_t column[] = {1, 5, 9, 13}, row[] = {4, 5, 6, 7};
    ncclComm_t all = world_comm(5), child;

    memsim_group_tell(77, column, 4);
    CHECK(!ncclCommSplit(all, 77, 1, &child, NULL));
    is_rank(child, 1, 4);
    gathers_four(child);
    CHECK(!ncclCommDestroy(child));
    memsim_group_tell(GROUP_NEXT, row, 4);
    CHECK(!ncclCommSplit(all, 0, 1, &child, NULL));
    is_rank(child, 1, 4);
    memsim_group_tell(GROUP_NEXT, NULL, 0);
    CHECK(!ncclCommSplit(child, 9, 0, &all, NULL)); /* of a child, not told */
    is_rank(all, 1, 4);
}

TEST(a_split_that_was_not_told_keeps_all)
{
    static const uint32_t other[] = {0, 4}, outside[] = {5, WORLD};
    ncclComm_t all = world_comm(5), child;

    memsim_group_tell(78, other, 2);
    memsim_group_tell(79, outside, 2);
    for (int color = 78; color < 81; color++) {
        CHECK(!ncclCommSplit(all, color, 0, &child, NULL));
        is_rank(child, 5, WORLD);
    }
    CHECK(!ncclCommSplit(all, NCCL_SPLIT_NOCOLOR, 0, &child, NULL));
    CHECK(!child);
    CHECK_CODE(ncclCommSplit(NULL, 1, 0, &child, NULL), ncclInvalidArgument);
}

/* 20,000 ranks are two ranges, not a list that has no place in a record. */
TEST(a_large_one_s_members_are_recorded_as_ranges)
{
    enum { RANKS = 20000 };
    static int gone[RANKS];
    struct range ranges[2];
    need_fake("ranks without processes");
    ncclUniqueId id;
    ncclComm_t all, child;

    CHECK(!ncclGetUniqueId(&id));
    CHECK(!ncclCommInitRank(&all, RANKS, id, 5));
    gone[0] = RANKS / 2;
    CHECK(!ncclCommShrink(all, gone, 1, &child, NULL, NCCL_SHRINK_DEFAULT));
    struct seen seen = trace_seen(TRACE_COMMUNICATOR);
    const struct trace_communicator *made = (const void *)seen.fields;
    CHECK_UINT(made->ranks, RANKS - 1);
    CHECK_UINT(made->ranges, 2);
    memcpy(ranges, seen.text + 24, sizeof ranges);
    CHECK_UINT(ranges[0].count, RANKS / 2);
    CHECK_UINT(ranges[1].first, RANKS / 2 + 1);
    CHECK_UINT(ranges[1].count, RANKS / 2 - 1);
}

TEST(a_shrunk_one_closes_the_gaps)
{
    int gone[] = {0, 3, 9}, self = 5;
    ncclComm_t all = world_comm(5), child;

    CHECK(!ncclCommShrink(all, gone, 3, &child, NULL, NCCL_SHRINK_DEFAULT));
    is_rank(child, 3, WORLD - 3);
    CHECK_CODE(ncclCommShrink(all, &self, 1, &child, NULL, 0),
               ncclInvalidArgument);
}

/* --- two ranks of one process --------------------------------------------- */

struct pair {
    ncclComm_t comm[2];
    int32_t *at[2]; /* 64 numbers each: what is sent, then what comes */
};

static struct pair pair_new(int first, int second)
{
    need_fake("two ranks on one GPU");
    struct pair p;
    ncclUniqueId id;
    int numbers[64] = {0};

    CHECK(!ncclGetUniqueId(&id));
    for (int i = 0; i < 2; i++) {
        CHECK(!ncclCommInitRank(&p.comm[i], 2, id, i));
        CHECK(!cudaMalloc((void **)&p.at[i], sizeof numbers));
        for (int j = 0; j < 32; j++)
            numbers[j] = (i ? second : first) + j;
        CHECK(!cudaMemcpy(p.at[i], numbers, sizeof numbers,
                          cudaMemcpyHostToDevice));
    }
    return p;
}

static void pair_end(struct pair *p)
{
    for (int i = 0; i < 2; i++) {
        CHECK(!ncclCommDestroy(p->comm[i]));
        CHECK(!cudaFree(p->at[i]));
    }
}

/* The N-th number that came to RANK. */
static int came(const struct pair *p, int rank, int n)
{
    int value;

    CHECK(!cudaMemcpy(&value, p->at[rank] + 32 + n, sizeof value,
                      cudaMemcpyDeviceToHost));
    return value;
}

#define EACH(p, call)                                                          \
    for (int i = 0; i < 2; i++) {                                              \
        const int32_t *from = (p).at[i];                                       \
        int32_t *to = (p).at[i] + 32;                                          \
        ncclComm_t comm = (p).comm[i];                                         \
        CHECK(!call);                                                          \
    }

TEST(each_rank_gets_what_the_other_sent)
{
    struct pair p = pair_new(10, 100);

    EACH(p, ncclAllGather(from, to, 2, ncclInt32, comm, 0));
    for (int i = 0; i < 2; i++)
        CHECK(came(&p, i, 0) == 10 && came(&p, i, 1) == 11 &&
              came(&p, i, 2) == 100 && came(&p, i, 3) == 101);
    EACH(p, ncclBroadcast(from, to, 2, ncclInt32, 1, comm, 0));
    CHECK(came(&p, 0, 0) == 100 && came(&p, 1, 1) == 101);
    EACH(p, ncclAlltoAll(from, to, 2, ncclInt32, comm, 0));
    CHECK(came(&p, 0, 0) == 10 && came(&p, 0, 2) == 100);
    CHECK(came(&p, 1, 0) == 12 && came(&p, 1, 2) == 102);
    EACH(p, ncclReduceScatter(from, to, 2, ncclInt32, ncclSum, comm, 0));
    CHECK(came(&p, 0, 0) == 110 && came(&p, 1, 0) == 114);
    EACH(p, ncclScatter(from, to, 2, ncclInt32, 0, comm, 0));
    CHECK(came(&p, 0, 0) == 10 && came(&p, 1, 0) == 12);
    pair_end(&p);
}

TEST(reductions_are_of_both)
{
    static const struct {
        ncclRedOp_t op;
        int sum;
    } wanted[] = {{ncclSum, 9},
                  {ncclProd, 20},
                  {ncclMax, 5},
                  {ncclMin, 4},
                  {ncclAvg, 4}};
    struct pair p = pair_new(4, 5);
    ncclRedOp_t own;
    int three = 3;

    for (size_t n = 0; n < sizeof wanted / sizeof *wanted; n++) {
        EACH(p, ncclAllReduce(from, to, 1, ncclInt32, wanted[n].op, comm, 0));
        CHECK(came(&p, 0, 0) == wanted[n].sum);
        CHECK(came(&p, 1, 0) == wanted[n].sum);
    }
    CHECK(!ncclRedOpCreatePreMulSum(&own, &three, ncclInt32,
                                    ncclScalarHostImmediate, p.comm[0]));
    EACH(p, ncclAllReduce(from, to, 1, ncclInt32, own, comm, 0));
    CHECK(came(&p, 0, 0) == 27);
    CHECK(!ncclRedOpDestroy(own, p.comm[0]));
    CHECK_CODE(ncclRedOpDestroy(own, p.comm[0]), ncclInvalidArgument);
    pair_end(&p);
}

/* A receive may be asked for before what is sent, and nobody waits for it
 * until it is read. */
TEST(a_message_may_be_received_before_it_is_sent)
{
    struct pair p = pair_new(1, 2);
    cudaStream_t stream;
    cudaEvent_t event;

    CHECK(!cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(!cudaEventCreate(&event));
    CHECK(!ncclRecv(p.at[0] + 32, 1, ncclInt32, 1, p.comm[0], stream));
    CHECK(!cudaEventRecord(event, stream));
    CHECK_CODE(cudaEventQuery(event), cudaErrorNotReady);
    CHECK_CODE(cudaStreamQuery(stream), cudaErrorNotReady);
    CHECK(!ncclSend(p.at[1], 1, ncclInt32, 0, p.comm[1], 0));
    CHECK(!cudaEventQuery(event));
    CHECK(came(&p, 0, 0) == 2);
    CHECK(!cudaEventDestroy(event));
    CHECK(!cudaStreamDestroy(stream));
    pair_end(&p);
}

/* What is not known of one rank's is not known of the sum; and memory that was
 * handed out anew keeps what it holds. */
TEST(what_is_not_known_stays_so)
{
    struct pair p = pair_new(1, 2);
    size_t large = 4 << 20;
    void *unknown;
    int value = 7;

    CHECK(!cudaMalloc(&unknown, large)); /* nothing was written to it */
    CHECK(!ncclAllReduce(unknown, p.at[0] + 32, 1, ncclInt32, ncclSum,
                         p.comm[0], 0));
    CHECK(!ncclAllReduce(p.at[1], p.at[1] + 32, 1, ncclInt32, ncclSum,
                         p.comm[1], 0));
    CHECK(came(&p, 1, 0) == 0);
    CHECK(!ncclRecv(p.at[0] + 40, 1, ncclInt32, 1, p.comm[0], 0));
    CHECK(!ncclSend(p.at[1], 1, ncclInt32, 0, p.comm[1], 0));
    CHECK(!cudaMemcpy(p.at[0] + 40, &value, sizeof value,
                      cudaMemcpyHostToDevice));
    CHECK(came(&p, 0, 8) == 7);
    CHECK(!cudaFree(unknown));
    pair_end(&p);
}

/* NCCL 2.29 and 2.30; the headers may be older. */
ncclResult_t ncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId *id);
ncclResult_t ncclCommGrow(ncclComm_t comm, int ranks, const ncclUniqueId *id,
                          int rank, ncclComm_t *grown, ncclConfig_t *config);
ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags);
ncclResult_t ncclCommResume(ncclComm_t comm);
ncclResult_t ncclCommMemStats(ncclComm_t comm, int stat, uint64_t *value);

TEST(a_grown_one_joins_old_and_new_ranks)
{
    struct pair p = pair_new(3, 4);
    ncclComm_t old, fresh;
    ncclUniqueId id;

    CHECK(!ncclCommGetUniqueId(p.comm[0], &id));
    CHECK(!ncclCommGrow(NULL, 3, &id, 2, &fresh, NULL));
    is_rank(fresh, 2, 3);
    CHECK(!ncclCommGrow(p.comm[1], 3, NULL, -1, &old, NULL));
    is_rank(old, 1, 3);
    CHECK(!ncclCommDestroy(old));
    CHECK(!ncclCommGrow(p.comm[0], 3, &id, -1, &old, NULL));
    is_rank(old, 0, 3);
    CHECK_CODE(ncclCommGrow(p.comm[1], 2, NULL, -1, &old, NULL),
               ncclInvalidArgument);
    CHECK_CODE(ncclCommGrow(NULL, 3, NULL, 2, &fresh, NULL),
               ncclInvalidArgument);
    CHECK(!ncclCommDestroy(fresh));
    CHECK(!ncclCommDestroy(old));
    pair_end(&p);
}

TEST(memory_is_counted_and_a_suspended_one_refuses_calls)
{
    ncclComm_t comm = world_comm(5);
    uint64_t before, after, suspended;
    float *p;

    CHECK(!cudaMalloc((void **)&p, 1 << 22));
    CHECK(!ncclCommMemStats(comm, 0, &before));
    CHECK(!ncclAllReduce(p, p, 1 << 20, ncclFloat, ncclSum, comm, 0));
    CHECK(!ncclCommMemStats(comm, 0, &after));
    CHECK(after > before);
    CHECK(!ncclCommSuspend(comm, 1));
    CHECK_CODE(ncclAllReduce(p, p, 4, ncclFloat, ncclSum, comm, 0),
               ncclInvalidUsage);
    CHECK(!ncclCommMemStats(comm, 3, &suspended));
    CHECK_UINT(suspended, 1);
    CHECK(!ncclCommResume(comm));
    CHECK_CODE(ncclCommResume(comm), ncclInvalidArgument);
    CHECK(!ncclAllReduce(p, p, 4, ncclFloat, ncclSum, comm, 0));
    CHECK_CODE(ncclCommMemStats(comm, 9, &after), ncclInvalidArgument);
    CHECK(!cudaFree(p));
    CHECK(!ncclCommDestroy(comm));
}

TEST(buffers_and_windows_are_registered)
{
    ncclComm_t comm = world_comm(3);
    ncclWindow_t window;
    void *p, *handle;
    int host;

    CHECK(!ncclMemAlloc(&p, 1 << 20));
    CHECK(!ncclCommRegister(comm, p, 1 << 20, &handle));
    CHECK(!ncclCommDeregister(comm, handle));
    CHECK(!ncclCommWindowRegister(comm, p, 1 << 20, &window,
                                  NCCL_WIN_COLL_SYMMETRIC));
    CHECK(!ncclCommWindowDeregister(comm, window));
    CHECK_CODE(ncclCommRegister(comm, &host, 4, &handle), ncclInvalidArgument);
    CHECK_CODE(ncclCommWindowRegister(NULL, p, 4, &window, 0),
               ncclInvalidArgument);
    CHECK(!ncclMemFree(p));
    CHECK(!ncclCommDestroy(comm));
}

/* --- NCCL 2.29 and 2.30: one-sided calls, and what kernels need ----------- */

struct wait_signal {
    int count, peer, signal, context;
};

struct team {
    int ranks, rank, stride;
};

ncclResult_t ncclPutSignal(const void *buffer, size_t count,
                           ncclDataType_t type, int peer, ncclWindow_t window,
                           size_t offset, int signal, int context,
                           unsigned flags, ncclComm_t comm,
                           cudaStream_t stream);
ncclResult_t ncclSignal(int peer, int signal, int context, unsigned flags,
                        ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclWaitSignal(int count, struct wait_signal *waits,
                            ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclGetPeerDevicePointer(ncclWindow_t window, size_t offset,
                                      int peer, void **pointer);
ncclResult_t ncclGetLsaMultimemDevicePointer(ncclWindow_t window, size_t offset,
                                             void **pointer);
ncclResult_t ncclDevCommCreate(ncclComm_t comm, const void *requirements,
                               void *made);
ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const void *made);
ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t window,
                               void **pointer);
struct team ncclTeamLsa(ncclComm_t comm);
struct team ncclTeamRail(ncclComm_t comm);
int ncclTeamRankToLsa(ncclComm_t comm, struct team team, int rank);

#define NUMBERS 1024

/* COMM's window over NUMBERS numbers of a GPU's memory, at *P. */
static ncclWindow_t window_new(ncclComm_t comm, int **p)
{
    ncclWindow_t window;

    void *own;

    CHECK(!ncclMemAlloc((void **)p, NUMBERS * sizeof **p));
    CHECK(!ncclCommWindowRegister(comm, *p, NUMBERS * sizeof **p, &window,
                                  NCCL_WIN_COLL_SYMMETRIC));
    CHECK(!ncclWinGetUserPtr(comm, window, &own));
    CHECK(own == *p);
    return window;
}

static const struct trace_collective *last_call(int *count)
{
    static struct seen seen;

    seen = trace_seen(TRACE_COLLECTIVE);
    *count = seen.count;
    return (const void *)seen.fields;
}

TEST(puts_and_signals_are_recorded)
{
    ncclComm_t comm = world_comm(5);
    struct wait_signal waits[] = {{2, 4, 0, 0}, {1, 6, 0, 0}};
    int *p, before, after;
    ncclWindow_t window = window_new(comm, &p);

    last_call(&before);
    CHECK(!ncclPutSignal(p, 100, ncclInt32, 6, window, 64, 0, 0, 0, comm, 0));
    const struct trace_collective *call = last_call(&after);
    CHECK(after == before + 1);
    CHECK_UINT(call->bytes, 400);
    CHECK_UINT(call->root, 6);
    CHECK_UINT(call->ranks, WORLD);
    CHECK(!ncclSignal(4, 0, 0, 0, comm, 0));
    CHECK_UINT(last_call(&after)->bytes, 0);
    CHECK(!ncclWaitSignal(2, waits, comm, 0));
    CHECK_UINT(last_call(&after)->root, 4);
    CHECK(after == before + 3);
    CHECK(!ncclCommWindowDeregister(comm, window));
    CHECK(!ncclCommDestroy(comm));
}

/* NCCL refuses these, too. */
TEST(puts_outside_of_windows_are_refused)
{
    ncclComm_t comm = world_comm(5), other = world_comm(5);
    struct wait_signal none = {0, 4, 0, 0}, second = {1, 4, 1, 0};
    int *p, *q, *outside;
    ncclWindow_t window = window_new(comm, &p), foreign = window_new(other, &q);

    CHECK(!cudaMalloc((void **)&outside, 1024));
#define PUT(from, count, peer, to, offset, signal, flags)                      \
    ncclPutSignal(from, count, ncclInt32, peer, to, offset, signal, 0, flags,  \
                  comm, 0)
    CHECK_CODE(PUT(outside, 1, 6, window, 0, 0, 0), ncclInvalidArgument);
    CHECK_CODE(PUT(p, 1, 6, foreign, 0, 0, 0), ncclInvalidArgument);
    CHECK_CODE(PUT(p, 1, WORLD, window, 0, 0, 0), ncclInvalidArgument);
    CHECK_CODE(PUT(p, 1, 6, window, 0, 1, 0), ncclInvalidArgument);
    CHECK_CODE(PUT(p, 1, 6, window, 0, 0, 1), ncclInvalidArgument);
    CHECK_CODE(PUT(p, 2, 6, window, NUMBERS * 4 - 4, 0, 0),
               ncclInvalidArgument);
    CHECK_CODE(PUT(p, 1, 6, NULL, 0, 0, 0), ncclInvalidArgument);
    CHECK_CODE(ncclSignal(-1, 0, 0, 0, comm, 0), ncclInvalidArgument);
    CHECK_CODE(ncclWaitSignal(0, &none, comm, 0), ncclInvalidArgument);
    CHECK_CODE(ncclWaitSignal(1, &none, comm, 0), ncclInvalidArgument);
    CHECK_CODE(ncclWaitSignal(1, &second, comm, 0), ncclInvalidArgument);
    CHECK(!ncclCommWindowDeregister(comm, window));
    CHECK_CODE(PUT(p, 1, 6, window, 0, 0, 0), ncclInvalidArgument);
    CHECK(!cudaFree(outside));
    CHECK(!ncclCommDestroy(comm));
    CHECK(!ncclCommDestroy(other));
}

/* To itself a rank's numbers arrive. What others put is not known, and reads as
 * zeros. */
TEST(a_wait_forgets_what_the_windows_held)
{
    ncclComm_t comm = world_comm(5);
    struct wait_signal own = {1, 5, 0, 0}, others = {1, 4, 0, 0};
    int numbers[] = {7, 8}, *p, got;
    ncclWindow_t window = window_new(comm, &p);

    CHECK(!cudaMemcpy(p, numbers, sizeof numbers, cudaMemcpyHostToDevice));
    CHECK(!ncclPutSignal(p, 2, ncclInt32, 5, window, 64, 0, 0, 0, comm, 0));
    CHECK(!ncclWaitSignal(1, &own, comm, 0));
    CHECK(!cudaMemcpy(&got, p + 17, sizeof got, cudaMemcpyDeviceToHost));
    CHECK(got == 8);
    CHECK(!ncclWaitSignal(1, &others, comm, 0));
    CHECK(!cudaMemcpy(&got, p + 17, sizeof got, cudaMemcpyDeviceToHost));
    CHECK(got == 0);
    CHECK(!ncclCommWindowDeregister(comm, window));
    CHECK(!ncclMemFree(p));
    CHECK(!ncclCommDestroy(comm));
}

/* Machines have eight ranks. */
TEST(pointers_reach_the_ranks_of_the_machine)
{
    ncclComm_t comm = world_comm(5);
    char made[512];
    void *to[WORLD], *cast;
    int *p;
    ncclWindow_t window = window_new(comm, &p);

    for (int i = 0; i < WORLD; i++)
        CHECK(!ncclGetPeerDevicePointer(window, 8, i, &to[i]));
    CHECK(to[5] == p + 2);
    for (int i = 0; i < 8; i++)
        CHECK(to[i] && (!i || to[i] != to[i - 1]) && !to[8 + i]);
    CHECK((char *)to[2] - (char *)to[1] >= NUMBERS * 4);
    CHECK_CODE(ncclGetPeerDevicePointer(window, 0, WORLD, &to[0]),
               ncclInvalidArgument);
    CHECK(!ncclGetLsaMultimemDevicePointer(window, 0, &cast));
    CHECK(!cast);
    CHECK(!ncclDevCommCreate(comm, made, made));
    CHECK(!ncclDevCommDestroy(comm, made));
    CHECK_CODE(ncclDevCommCreate(NULL, made, made), ncclInvalidArgument);
    CHECK(!ncclCommWindowDeregister(comm, window));
    CHECK(!ncclMemFree(p));
    CHECK(!ncclCommDestroy(comm));
}

TEST(teams_are_the_machines)
{
    ncclComm_t comm = world_comm(13);
    struct team lsa = ncclTeamLsa(comm), rail = ncclTeamRail(comm);

    CHECK(lsa.ranks == 8 && lsa.rank == 5 && lsa.stride == 1);
    CHECK(rail.ranks == 2 && rail.rank == 1 && rail.stride == 8);
    CHECK(ncclTeamRankToLsa(comm, lsa, 3) == 3);
    CHECK(!ncclCommDestroy(comm));
}
