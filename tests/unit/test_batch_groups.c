/* SPDX-License-Identifier: Apache-2.0
 * Which ranks work on one batch. */
#include "memsim/collectives/batch_groups.h"

#include "check.h"

#define MIB (1 << 20)

/* Rank 0 of eight, and rank 7: pairs {0, 1} are tensor parallel, {0, 4} are
 * stages or data parallel. */
struct job {
    uint32_t pair[2][2], far[2][2];
    struct comm comms[2][2];
    struct comm_call calls[2][2];
    struct op_part parts[2][2];
    struct comm_log logs[2];
    const struct comm_log *list[2];
    uint32_t stands[8];
    struct comm_classes classes;
};

static void job_make(struct job *j)
{
    static const uint32_t stands[8] = {0, 0, 0, 0, 7, 7, 7, 7};

    *j = (struct job){.pair = {{0, 1}, {6, 7}}, .far = {{0, 4}, {3, 7}}};
    memcpy(j->stands, stands, sizeof stands);
    j->classes = (struct comm_classes){j->stands, 8};
    for (unsigned i = 0; i < 2; i++) {
        j->comms[i][0] =
            (struct comm){.rank = i, .ranks = 2, .members = j->pair[i]};
        j->comms[i][1] =
            (struct comm){.rank = i, .ranks = 2, .members = j->far[i]};
        j->logs[i] = (struct comm_log){.rank = i ? 7 : 0,
                                       .world = 8,
                                       .comms = j->comms[i],
                                       .comm_count = 2,
                                       .calls = j->calls[i],
                                       .call_count = 2,
                                       .parts = j->parts[i],
                                       .part_count = 2};
        j->list[i] = &j->logs[i];
    }
}

static void call_set(struct job *j, unsigned at, unsigned comm,
                     enum comm_kind kind, uint32_t phase, uint64_t bytes)
{
    for (unsigned i = 0; i < 2; i++) {
        j->calls[i][at] = (struct comm_call){
            .comm = comm, .kind = kind, .phase = phase, .bytes = bytes};
        if (kind == COMM_PAIR) {
            j->calls[i][at].part_first = 0;
            j->calls[i][at].part_count = 1;
            j->parts[i][0] =
                (struct op_part){.peer = 1 - i, .receive = i, .bytes = bytes};
        }
    }
}

TEST(without_shared_work_each_rank_has_a_batch)
{
    const unsigned knows[] = {2, 2};
    uint64_t groups[2];
    struct job j;

    job_make(&j);
    call_set(&j, 0, 0, COMM_ALL_REDUCE, TRACE_PHASE_BACKWARD, MIB);
    call_set(&j, 1, 1, COMM_ALL_GATHER, TRACE_PHASE_FORWARD, MIB);
    CHECK_UINT(batch_groups(j.list, 2, &j.classes, knows, groups), 8);
    CHECK(groups[0] == 4 && groups[1] == 4);
    call_set(&j, 0, 0, COMM_ALL_REDUCE, TRACE_PHASE_FORWARD, 4); /* a loss */
    CHECK_UINT(batch_groups(j.list, 2, &j.classes, knows, groups), 8);
}

TEST(tensor_parallel_ranks_share_one)
{
    const unsigned knows[] = {2, 2};
    uint64_t groups[2];
    struct job j;

    job_make(&j);
    call_set(&j, 0, 0, COMM_REDUCE_SCATTER, TRACE_PHASE_FORWARD, MIB);
    call_set(&j, 1, 1, COMM_ALL_REDUCE, TRACE_PHASE_BACKWARD, MIB);
    CHECK_UINT(batch_groups(j.list, 2, &j.classes, knows, groups), 4);
    CHECK(groups[0] == 2 && groups[1] == 2);
}

/* The second stage sees no ids: the first one's count. */
TEST(stages_share_the_batch_of_the_one_that_knows_it)
{
    const unsigned knows[] = {2, 1}, nothing[] = {0, 0};
    uint64_t groups[2];
    struct job j;

    job_make(&j);
    call_set(&j, 0, 0, COMM_ALL_REDUCE, TRACE_PHASE_FORWARD, MIB);
    call_set(&j, 1, 1, COMM_PAIR, TRACE_PHASE_FORWARD, MIB);
    CHECK_UINT(batch_groups(j.list, 2, &j.classes, knows, groups), 2);
    CHECK(groups[0] == 2 && groups[1] == 0);
    CHECK_UINT(batch_groups(j.list, 2, &j.classes, nothing, groups), 0);
}

/* A ring sends and receives in one call: its ranks have parts of their own. */
TEST(a_ring_is_no_pipeline)
{
    const unsigned knows[] = {2, 2};
    uint64_t groups[2];
    struct job j;

    job_make(&j);
    call_set(&j, 0, 0, COMM_ALL_REDUCE, TRACE_PHASE_BACKWARD, MIB);
    call_set(&j, 1, 1, COMM_PAIR, TRACE_PHASE_FORWARD, MIB);
    for (unsigned i = 0; i < 2; i++) {
        j.calls[i][1].part_count = 2;
        j.parts[i][1] = j.parts[i][0];
        j.parts[i][1].receive = !j.parts[i][0].receive;
    }
    CHECK_UINT(batch_groups(j.list, 2, &j.classes, knows, groups), 8);
}
