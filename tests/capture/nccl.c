/* SPDX-License-Identifier: Apache-2.0
 * Communicators made of others: how many ranks they have, and how far a
 * collective of theirs reaches. */
#include <cuda_runtime_api.h>
#include <nccl.h>

#include "capture/core/torch/process_group.h"
#include "carried.h"
#include "check.h"
#include "common/base/range.h"
#include "cudnn_trace.h"

#define WORLD 16

static ncclComm_t world_comm(int rank)
{
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
    CHECK(!ncclReduce(p, p + 8, 2, ncclFloat32, ncclSum, 0, comm, 0));
    CHECK(!cudaMemcpy(ones, p + 8, sizeof ones, cudaMemcpyDeviceToHost));
    CHECK(ones[0] == 16 && ones[1] == 8);
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
    CHECK(ncclCommSplit(NULL, 1, 0, &child, NULL) == ncclInvalidArgument);
}

/* 20,000 ranks are two ranges, not a list that has no place in a record. */
TEST(a_large_one_s_members_are_recorded_as_ranges)
{
    enum { RANKS = 20000 };
    static int gone[RANKS];
    struct range ranges[2];
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
    CHECK(ncclCommShrink(all, &self, 1, &child, NULL, 0) ==
          ncclInvalidArgument);
}
