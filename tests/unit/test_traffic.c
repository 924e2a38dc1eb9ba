/* SPDX-License-Identifier: Apache-2.0
 * Collectives from traces, and what a cluster would take for them. */
#include "memsim/collectives/traffic.h"

#include "check.h"
#include "common/base/range.h"
#include "common/base/units.h"
#include "trace_build.h"

#define SEND    (UINT64_C(1) << 40)
#define RECEIVE (UINT64_C(2) << 40)

static const char *const names[] = {"ncclAllReduce", "ncclAllGather",
                                    "ncclSend",      "ncclRecv",
                                    "ncclBroadcast", "my_kernel"};
enum { ALL_REDUCE = 1, ALL_GATHER, SEND_TO, RECEIVE_FROM, BROADCAST, OTHER };

/* All-reduce: 100 us + S at 10 GB/s on 2 nodes of 4, 10 us + S at 100 GB/s on
 * one; in place a tenth less. */
static struct fit_knot knots[2][2] = {
    {{1e3, {10.01, 9}}, {1e9, {10010, 9009}}},
    {{1e3, {100.1, 90}}, {1e9, {100100, 90090}}},
};
static struct fit_curve curves[2] = {
    {.nodes = 1,
     .bytes_min = 1e3,
     .bytes_max = 1e9,
     .knot_count = 2,
     .knots = knots[0]},
    {.nodes = 2,
     .bytes_min = 1e3,
     .bytes_max = 1e9,
     .knot_count = 2,
     .knots = knots[1]},
};
static struct fit_family families[3] = {
    {FIT_ALL_REDUCE, 4, FIT_MODEL_CURVES, 0, 0, 2, curves,
     .errors = {.size_band = .2}},
    {FIT_ALLTOALL, 4, FIT_MODEL_CURVES, 0, 0, 2, curves, .errors = {.size_band = .3}},
    {FIT_SENDRECV, 4, FIT_MODEL_CURVES, 0, 0, 2, curves, .errors = {.size_band = .4}},
};
static const struct cluster cluster = {
    .name = "mine",
    .gpus_per_node = 4,
    .measured = true,
    .fit = {.family_count = 3, .families = families},
};

static double fit_us(enum fit_coll coll, uint32_t nodes, uint32_t gpus,
                     uint64_t bytes, bool in_place)
{
    const struct cost_nccl_query q = {.coll = coll,
                                      .nodes = nodes,
                                      .gpus_per_node = gpus,
                                      .bytes = (double)bytes,
                                      .in_place = in_place};
    struct cost_nccl_answer a;

    CHECK(!cost_nccl(&cluster.fit, &q, &a));
    return a.us;
}

static struct build start(uint64_t rank, uint64_t world)
{
    struct build b = build_start();

    BUILD_TEXT(&b, PROCESS, "python", .pid = 1, .parent = 1, .rank = rank,
               .world_size = world);
    for (uint64_t i = 0; i < sizeof names / sizeof *names; i++)
        BUILD_TEXT(&b, NAME, names[i], .name = i + 1);
    return b;
}

static void put_comm(struct build *b, uint64_t handle, uint64_t rank,
                     uint64_t ranks, const char *id)
{
    BUILD_TEXT(b, COMMUNICATOR, id, .communicator = handle, .rank = rank,
               .ranks = ranks);
}

static void put_call(struct build *b, uint64_t name, uint64_t comm,
                     uint64_t root, uint64_t bytes, uint64_t group)
{
    BUILD(b, COLLECTIVE, .name = name, .stream = 7, .communicator = comm,
          .ranks = 8, .root = root, .bytes = bytes,
          .send = name == RECEIVE_FROM ? 0 : SEND,
          .receive = name == SEND_TO ? 0 : RECEIVE, .group = group);
}

static struct traffic_log read_log(struct build *b, unsigned process)
{
    struct traffic_log log;
    struct trace_reader r;
    struct err err = {""};

    if (trace_reader_open_memory(&r, b->data, b->bytes, "T", &err) ||
        traffic_log_read(&log, process, &r, &err)) {
        CHECK_FAIL("%s", err.text);
        exit(1);
    }
    trace_reader_close(&r);
    free(b->data);
    return log;
}

/* The only process of the run. */
static const struct traffic_pricing means = {0};

static struct traffic *price(struct build *b)
{
    struct traffic_log log = read_log(b, 0);
    struct traffic *t = traffic_price(&log, 1, &cluster, &means);

    traffic_log_fini(&log);
    return t;
}

static const char id[] = "an id of 24 bytes, as is";

TEST(sums_are_those_of_the_evaluator_to_the_bit)
{
    struct build b = start(0, 8);
    const uint64_t large = 64 * MIB, small = 4097;

    put_comm(&b, 1, 0, 8, id);
    put_call(&b, ALL_REDUCE, 1, 0, small, 0); /* before any forward */
    BUILD(&b, PHASE, .phase = TRACE_PHASE_FORWARD);
    BUILD(&b, PHASE, .phase = TRACE_PHASE_BACKWARD);
    put_call(&b, ALL_REDUCE, 1, 0, small, 0);
    put_call(&b, ALL_REDUCE, 1, 0, large, 0);
    put_call(&b, ALL_REDUCE, 1, 0, large, 0);
    put_call(&b, OTHER, 1, 0, large, 0);
    BUILD(&b, PHASE, .phase = TRACE_PHASE_OPTIMIZER);
    struct traffic *t = price(&b);
    double first = fit_us(FIT_ALL_REDUCE, 2, 4, small, false);
    double second = fit_us(FIT_ALL_REDUCE, 2, 4, large, false);

    CHECK_STR(t->cluster, "mine");
    CHECK_UINT(t->rank_count, 1);
    CHECK_UINT(t->ranks[0].row_count, 1);
    const struct traffic_row *row = &t->ranks[0].rows[0];
    CHECK_UINT(row->nodes, 2);
    CHECK_UINT(row->gpus_per_node, 4);
    CHECK(!row->assumed);
    CHECK_UINT(row->all.calls, 4);
    CHECK_UINT(row->all.bytes, 2 * small + 2 * large);
    CHECK(row->all.us == 2 * first + 2 * second);
    CHECK(row->step.us == first + 2 * second);
    CHECK(t->ranks[0].step.us == row->step.us);
    CHECK(t->ranks[0].before.us == first);
    CHECK_UINT(t->ranks[0].steps, 1);
    CHECK_UINT(row->size_count, 2);
    CHECK_UINT(row->sizes[0].bytes, small);
    CHECK_UINT(row->sizes[1].calls, 2);
    CHECK(row->sizes[1].us == second);
    CHECK_NEAR(row->error, expm1(0.45 * 0.75 * 0.2), 1e-12);
    for (int i = 0; i < COST_NCCL_FLAGS; i++)
        CHECK_UINT(row->flagged[i], 0);
    traffic_destroy(t);
}

TEST(steps_are_whole_ones_and_the_median_is_told)
{
    struct build b = start(0, 8);

    put_comm(&b, 1, 0, 8, id);
    for (uint64_t step = 0; step < 4; step++) {
        BUILD(&b, PHASE, .phase = TRACE_PHASE_FORWARD);
        BUILD(&b, PHASE, .phase = TRACE_PHASE_BACKWARD);
        BUILD(&b, PHASE, .phase = TRACE_PHASE_FORWARD); /* accumulation */
        put_call(&b, ALL_REDUCE, 1, 0, step ? 8 * MIB : 512 * MIB, 0);
        if (step < 3) /* the last one does not end */
            BUILD(&b, PHASE, .phase = TRACE_PHASE_OPTIMIZER);
    }
    struct traffic *t = price(&b);

    CHECK_UINT(t->ranks[0].steps, 3);
    CHECK_UINT(t->ranks[0].typical, 3);
    CHECK_UINT(t->ranks[0].step.bytes, 8 * MIB);
    CHECK_UINT(t->ranks[0].all.calls, 4);
    CHECK(t->ranks[0].step_us[0] > t->ranks[0].step_us[1]);
    traffic_destroy(t);
}

TEST(flags_and_missing_answers_are_counted)
{
    struct build b = start(0, 64);

    put_comm(&b, 1, 0, 64, id);
    put_call(&b, ALL_REDUCE, 1, 0, 2 * GIB, 0);
    put_call(&b, ALL_REDUCE, 1, 0, MIB, 0);
    struct traffic *t = price(&b);
    const struct traffic_row *row = &t->ranks[0].rows[0];

    CHECK_UINT(row->nodes, 16);
    CHECK_UINT(row->flagged[1], 1); /* above */
    CHECK_UINT(row->flagged[3], 2); /* beyond */
    CHECK_UINT(row->unpriced, 0);
    traffic_destroy(t);

    static struct fit_curve one_node;
    static struct fit_family alone = {
        .coll = FIT_ALL_REDUCE,
        .gpus_per_node = 4,
        .model = FIT_MODEL_CURVES,
        .curve_count = 1,
        .curves = &one_node,
        .errors = {-1, -1, -1, -1, -1, -1, -1}};
    const struct cluster small = {
        .name = "small", .fit = {.family_count = 1, .families = &alone}};
    one_node = curves[0];
    b = start(0, 64);
    put_comm(&b, 1, 0, 64, id);
    put_call(&b, ALL_REDUCE, 1, 0, MIB, 0);
    struct traffic_log log = read_log(&b, 0);
    t = traffic_price(&log, 1, &small, &means);
    CHECK_UINT(t->gpus_per_node, 4);
    CHECK_UINT(t->ranks[0].rows[0].unpriced, 1);
    CHECK(t->ranks[0].all.us == 0);
    traffic_log_fini(&log);
    traffic_destroy(t);
}

TEST(a_group_that_reaches_all_is_an_all_to_all)
{
    struct build b = start(0, 8);

    put_comm(&b, 1, 0, 8, id);
    for (uint64_t peer = 0; peer < 8; peer++) {
        put_call(&b, SEND_TO, 1, peer, MIB, 5);
        put_call(&b, RECEIVE_FROM, 1, peer, MIB / 2, 5);
    }
    put_call(&b, SEND_TO, 1, 1, MIB, 6); /* to the same node */
    put_call(&b, SEND_TO, 1, 5, MIB, 0); /* to the other */
    put_call(&b, SEND_TO, 1, 5, MIB, 0);
    struct traffic *t = price(&b);
    const struct traffic_row *rows = t->ranks[0].rows;

    CHECK_UINT(t->ranks[0].row_count, 3);
    CHECK(rows[0].coll == FIT_ALLTOALL);
    CHECK_UINT(rows[0].all.calls, 1);
    CHECK(rows[0].all.us == fit_us(FIT_ALLTOALL, 2, 4, 8 * MIB, false));
    CHECK(rows[1].coll == FIT_SENDRECV);
    CHECK_UINT(rows[1].nodes, 1);
    CHECK_UINT(rows[1].all.calls, 1);
    CHECK_UINT(rows[2].nodes, 2);
    CHECK_UINT(rows[2].all.calls, 2);
    CHECK(rows[2].all.us == 2 * fit_us(FIT_SENDRECV, 2, 4, MIB, false));
    traffic_destroy(t);
}

/* A ring's exchange: to the next rank on this node, from one on the other. */
TEST(both_peers_of_an_exchange_set_its_link)
{
    struct build b = start(0, 8);

    put_comm(&b, 1, 0, 8, id);
    put_call(&b, SEND_TO, 1, 1, MIB, 5);
    put_call(&b, RECEIVE_FROM, 1, 7, MIB, 5);
    put_call(&b, RECEIVE_FROM, 1, 2, MIB, 6);
    put_call(&b, SEND_TO, 1, 1, MIB, 6);
    struct traffic *t = price(&b);
    const struct traffic_row *rows = t->ranks[0].rows;

    CHECK_UINT(t->ranks[0].row_count, 2);
    CHECK(rows[0].coll == FIT_SENDRECV && rows[1].coll == FIT_SENDRECV);
    CHECK_UINT(rows[0].nodes + rows[1].nodes, 3);
    CHECK(t->ranks[0].all.us == fit_us(FIT_SENDRECV, 1, 4, MIB, false) +
                                    fit_us(FIT_SENDRECV, 2, 4, MIB, false));
    traffic_destroy(t);
}

TEST(a_group_of_sends_alone_is_a_scatter)
{
    struct build b = start(0, 8);

    put_comm(&b, 1, 0, 8, id);
    for (uint64_t peer = 1; peer < 8; peer++)
        put_call(&b, SEND_TO, 1, peer, MIB, 1);
    for (uint64_t peer = 1; peer < 8; peer++)
        put_call(&b, RECEIVE_FROM, 1, peer, 2 * MIB, 2);
    struct traffic_log log = read_log(&b, 0);

    CHECK_UINT(log.call_count, 2);
    CHECK_UINT(log.calls[0]->coll, FIT_SCATTER);
    CHECK_UINT(log.calls[0]->bytes, 8 * MIB);
    CHECK_UINT(log.calls[1]->coll, FIT_GATHER);
    CHECK_UINT(log.calls[1]->bytes, 16 * MIB);
    traffic_log_fini(&log);
}

TEST(a_graph_s_collectives_count_at_its_launches)
{
    struct build b = start(0, 8);

    put_comm(&b, 1, 0, 8, id);
    BUILD(&b, CAPTURE_JOIN, .stream = 7, .capture = 3);
    put_call(&b, ALL_REDUCE, 1, 0, MIB, 0);
    put_call(&b, ALL_REDUCE, 1, 0, MIB, 0);
    BUILD(&b, CAPTURE_END, .capture = 3, .whole = 1);
    put_call(&b, ALL_REDUCE, 1, 0, MIB, 0);
    for (int i = 0; i < 5; i++)
        BUILD(&b, GRAPH_LAUNCH, .stream = 7, .exec = 99, .capture = 3);
    struct traffic *t = price(&b);

    CHECK_UINT(t->ranks[0].all.calls, 11);
    traffic_destroy(t);

    b = start(0, 8);
    put_comm(&b, 1, 0, 8, id);
    BUILD(&b, CAPTURE_JOIN, .stream = 7, .capture = 3);
    put_call(&b, ALL_REDUCE, 1, 0, MIB, 0);
    t = price(&b);
    CHECK_UINT(t->ranks[0].all.calls, 0); /* never launched */
    traffic_destroy(t);
}

/* A captured step runs when it is launched, each time as a step. */
TEST(each_launch_of_a_captured_step_is_a_step)
{
    struct build b = start(0, 8);

    put_comm(&b, 1, 0, 8, id);
    BUILD(&b, CAPTURE_JOIN, .stream = 7, .capture = 3);
    BUILD(&b, PHASE, .phase = TRACE_PHASE_FORWARD);
    put_call(&b, ALL_REDUCE, 1, 0, MIB, 0);
    BUILD(&b, PHASE, .phase = TRACE_PHASE_OPTIMIZER);
    BUILD(&b, PHASE, .phase = TRACE_PHASE_OTHER);
    BUILD(&b, CAPTURE_END, .capture = 3, .whole = 1);
    for (int i = 0; i < 5; i++)
        BUILD(&b, GRAPH_LAUNCH, .stream = 7, .exec = 99, .capture = 3);
    struct traffic *t = price(&b);
    CHECK_UINT(t->ranks[0].steps, 5);
    CHECK_UINT(t->ranks[0].all.calls, 5);
    CHECK_UINT(t->ranks[0].step.calls, 1);
    CHECK_UINT(t->ranks[0].before.calls, 0);
    traffic_destroy(t);
}

TEST(in_place_is_where_nccl_says_it_is)
{
    struct build b = start(0, 8);

    put_comm(&b, 1, 0, 8, id);
    BUILD(&b, COLLECTIVE, .name = ALL_REDUCE, .stream = 7, .communicator = 1,
          .ranks = 8, .bytes = MIB, .send = SEND, .receive = SEND);
    struct traffic *t = price(&b);
    CHECK(t->ranks[0].all.us == fit_us(FIT_ALL_REDUCE, 2, 4, MIB, true));
    CHECK(t->ranks[0].all.us < fit_us(FIT_ALL_REDUCE, 2, 4, MIB, false));
    traffic_destroy(t);

    b = start(2, 8);
    put_comm(&b, 1, 2, 8, id);
    BUILD(&b, COLLECTIVE, .name = ALL_GATHER, .stream = 7, .communicator = 1,
          .rank = 2, .ranks = 8, .bytes = 8 * MIB, .send = SEND + 2 * MIB,
          .receive = SEND);
    struct traffic_log log = read_log(&b, 0);
    CHECK(log.calls[0]->in_place);
    traffic_log_fini(&log);
}

/* What one of two processes says of a communicator of ranks 0 and 4. */
static struct build pair(uint64_t rank, const char *name)
{
    struct build b = start(rank, 8);

    put_comm(&b, 1, rank / 4, 2, name);
    put_call(&b, ALL_REDUCE, 1, 0, MIB, 0);
    return b;
}

TEST(members_are_known_where_they_ran_and_assumed_elsewhere)
{
    struct build b = pair(0, id);
    struct traffic_log logs[2];

    logs[0] = read_log(&b, 0);
    b = pair(4, id);
    logs[1] = read_log(&b, 1);
    struct traffic *t = traffic_price(logs, 2, &cluster, &means);
    for (size_t i = 0; i < 2; i++) {
        CHECK_UINT(t->ranks[i].rank, 4 * i);
        CHECK_UINT(t->ranks[i].rows[0].nodes, 2);
        CHECK_UINT(t->ranks[i].rows[0].gpus_per_node, 1);
        CHECK(!t->ranks[i].rows[0].assumed);
    }
    traffic_destroy(t);

    /* rank 0: maybe neighbours */
    t = traffic_price(&logs[0], 1, &cluster, &means);
    CHECK_UINT(t->ranks[0].rows[0].nodes, 1);
    CHECK(t->ranks[0].rows[0].assumed);
    traffic_destroy(t);
    /* 4 is not 1 of neighbours */
    t = traffic_price(&logs[1], 1, &cluster, &means);
    CHECK_UINT(t->ranks[0].rows[0].nodes, 2);
    CHECK(t->ranks[0].rows[0].assumed);
    traffic_destroy(t);
    traffic_log_fini(&logs[0]);
    traffic_log_fini(&logs[1]);
}

static void put_ranges(struct build *b, uint64_t handle, uint64_t rank,
                       uint64_t ranks, uint64_t root,
                       const struct range *ranges, uint32_t count)
{
    char text[TRAFFIC_ID_BYTES + 4 * sizeof *ranges];
    size_t bytes = count * sizeof *ranges;

    memset(text, (int)handle, TRAFFIC_ID_BYTES);
    memcpy(text + TRAFFIC_ID_BYTES, ranges, bytes);
    build_put_bytes(b, TRACE_COMMUNICATOR, text, TRAFFIC_ID_BYTES + bytes,
                    TRACE_WORDS(COMMUNICATOR, .communicator = handle,
                                .rank = rank, .ranks = ranks, .root = root,
                                .ranges = count),
                    TRACE_WORD_COUNT(COMMUNICATOR));
}

/* MEMBERS behind an id, as the fake NCCL records them. */
static void put_members(struct build *b, uint64_t handle, uint64_t rank,
                        uint64_t root, const uint32_t members[2])
{
    const struct range range = {members[0], 2,
                                (int32_t)(members[1] - members[0])};

    put_ranges(b, handle, rank, 2, root, &range, 1);
}

/* Rank 5 of 8, whose group 1, 5 was split from one that ranks 0 to 7 are in
 * backwards. */
TEST(members_of_a_split_communicator_are_told)
{
    const uint32_t backwards[] = {6, 2}, world[] = {1, 5};
    struct build b = start(5, 8);

    put_comm(&b, 1, 5, 8, id);
    put_members(&b, 2, 1, 1, world);
    put_call(&b, ALL_REDUCE, 2, 0, MIB, 0);
    put_members(&b, 3, 0, 0, backwards);
    put_call(&b, ALL_REDUCE, 3, 0, 2 * MIB, 0);
    put_members(&b, 4, 0, 99, world); /* of one that was never seen */
    put_call(&b, ALL_REDUCE, 4, 0, 4 * MIB, 0);
    struct traffic *t = price(&b);

    CHECK_UINT(t->ranks[0].row_count, 2);
    for (size_t i = 0; i < t->ranks[0].row_count; i++) {
        const struct traffic_row *row = &t->ranks[0].rows[i];

        CHECK_UINT(row->nodes, row->assumed ? 1 : 2);
        CHECK_UINT(row->all.bytes, row->assumed ? 4 * MIB : 3 * MIB);
    }
    traffic_destroy(t);
}

/* A communicator of more ranks than a record has bytes for. */
TEST(members_of_a_large_communicator_are_ranges)
{
    const struct range two[] = {{19999, 10000, -1}, {0, 10000, 1}};
    const struct range bad[] = {{0, UINT32_MAX, 1}, {0, 20001, 1}};
    struct build b = start(0, 1);

    put_ranges(&b, 1, 1, 20000, 0, two, 2);
    put_call(&b, ALL_REDUCE, 1, 0, MIB, 0);
    put_ranges(&b, 2, 0, 20000, 0, bad, 2); /* too many, and then some */
    struct traffic *t = price(&b);

    CHECK_UINT(t->world, 20000);
    CHECK_UINT(t->ranks[0].rank, 19998);
    CHECK(!t->ranks[0].rows[0].assumed);
    traffic_destroy(t);
}

TEST(members_of_a_group_tell_the_world_without_a_launcher)
{
    const uint32_t far[] = {1, 9};
    struct build b = start(0, 1);

    put_members(&b, 1, 1, 0, far);
    put_call(&b, ALL_REDUCE, 1, 0, MIB, 0);
    struct traffic *t = price(&b);

    CHECK_UINT(t->world, 10);
    CHECK_UINT(t->ranks[0].rank, 9);
    CHECK_UINT(t->ranks[0].rows[0].nodes, 2);
    CHECK(!t->ranks[0].rows[0].assumed);
    traffic_destroy(t);
}

TEST(the_largest_communicator_is_the_world_without_a_launcher)
{
    struct build b = start(0, 1);

    put_comm(&b, 1, 5, 16, id);
    put_call(&b, ALL_REDUCE, 1, 0, MIB, 0);
    struct traffic *t = price(&b);

    CHECK_UINT(t->world, 16);
    CHECK_UINT(t->ranks[0].rank, 5);
    CHECK_UINT(t->ranks[0].rows[0].nodes, 4);
    CHECK(!t->ranks[0].rows[0].assumed);
    traffic_destroy(t);
}

TEST(a_damaged_trace_s_numbers_do_no_harm)
{
    struct build b = start(UINT64_MAX, UINT64_MAX);

    put_comm(&b, 1, UINT64_MAX, 0, id);
    put_comm(&b, 2, 9, 4, "split");
    put_call(&b, ALL_REDUCE, 1, UINT64_MAX, UINT64_MAX, 0);
    put_call(&b, SEND_TO, 2, UINT64_MAX, UINT64_MAX, 0);
    put_call(&b, BROADCAST, 99, 0, 0, 0);
    struct traffic *t = price(&b);

    CHECK_UINT(t->rank_count, 1);
    CHECK_UINT(t->ranks[0].all.calls, 3);
    traffic_destroy(t);
}
