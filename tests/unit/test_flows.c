/* SPDX-License-Identifier: Apache-2.0
 * Collectives of several groups that share a network: from traces to times. */
#include "common/base/range.h"
#include "memsim/collectives/comm_siblings.h"
#include "memsim/collectives/comm_wider.h"
#include "memsim/time/flow_plan.h"
#include "memsim/time/timing.h"

#include "check.h"
#include "trace_build.h"

#define RANKS 8
#define MIB   (UINT64_C(1) << 20)

enum { ALL_REDUCE = 1, SEND, RECV };

static struct gpu gpu;
static struct build traces[RANKS];
static char paths[RANKS][64];
static struct simulation_plan plans[RANKS];
static struct simulation_rank ranks[RANKS];
static struct timing_rank timed[RANKS];
static uint32_t widened; /* ranks that average gradients; 0: as recorded */

/* Nodes of one GPU and one adapter of 50 GB/s, two on a leaf. */
#define NODES(count, more)                                                     \
    "{\"kind\": \"cluster\", \"name\": \"pair\", \"gpu\": \"h100-sxm-80gb\", " \
    "\"gpus_per_node\": 1, "                                                   \
    "\"intra\": {\"gbps\": 400, \"latency_us\": 2}, "                          \
    "\"inter\": {\"gbps\": 50, \"latency_us\": 5}, "                           \
    "\"network\": {\"nodes\": " #count ", \"adapter_gbps\": 50, " more "}}"

#define LEAVES(oversubscription)                                               \
    "\"pattern\": \"leaf-spine\", \"nodes_per_leaf\": 2, \"spines\": 1, "      \
    "\"oversubscription\": " #oversubscription

static struct cluster cluster_of(const char *text)
{
    struct cluster c;
    struct err err = {""};

    if (cluster_load_text(text, strlen(text), "test", &c, &err))
        fprintf(stderr, "%s\n", err.text);
    CHECK_STR(err.text, "");
    return c;
}

/* Rank RANK of WORLD begins, in the group of GROUP ranks that are STRIDE apart
 * from FIRST on. */
static struct build *start(unsigned place, unsigned rank, unsigned world,
                           struct range group)
{
    struct build *b = &traces[place];
    struct {
        char id[24];
        struct range range;
    } text = {.range = group};

    *b = build_start();
    b->time_ns = 1000;
    text.id[0] = (char)(1 + group.first);
    BUILD(b, PROCESS, .rank = rank, .world_size = world,
          .local_world_size = 1);
    BUILD_TEXT(b, NAME, "ncclAllReduce", .name = ALL_REDUCE);
    BUILD_TEXT(b, NAME, "ncclSend", .name = SEND);
    BUILD_TEXT(b, NAME, "ncclRecv", .name = RECV);
    build_put_bytes(
        b, TRACE_COMMUNICATOR, &text, sizeof text,
        TRACE_WORDS(COMMUNICATOR, .communicator = 1,
                    .rank = (rank - group.first) / (unsigned)group.stride,
                    .ranks = group.count, .ranges = 1),
        TRACE_WORD_COUNT(COMMUNICATOR));
    BUILD(b, PHASE, .phase = TRACE_PHASE_FORWARD);
    return b;
}

static void end(struct build *b)
{
    BUILD(b, SYNC_STREAM, .stream = 8);
    BUILD(b, PHASE, .phase = TRACE_PHASE_OPTIMIZER);
    BUILD(b, SET, .address = 1, .bytes = 4096, .stream = 8);
    BUILD(b, PHASE, .phase = TRACE_PHASE_OTHER);
}

static void all_reduce(struct build *b, uint64_t bytes)
{
    BUILD(b, COLLECTIVE, .name = ALL_REDUCE, .communicator = 1, .ranks = 2,
          .count = bytes / 4, .type = 7, .bytes = bytes, .send = 1,
          .receive = 1, .stream = 8);
}

/* Simulates COUNT traces on CLUSTER; CLASSES: whom they stand for. Returns the
 * longest step; with ERR set where there is no plan 0. */
static uint64_t simulate(unsigned count, const struct comm_classes *classes,
                         const struct cluster *c, const char *placement,
                         struct err *err)
{
    const struct comm_log *logs[RANKS];
    struct placement at;
    uint64_t longest = 0;

    CHECK(!gpu_load("h100-sxm-80gb", &gpu, err));
    for (unsigned i = 0; i < count; i++) {
        strcpy(paths[i], "/tmp/memsim-flows.XXXXXX");
        int fd = mkstemp(paths[i]);
        CHECK(write(fd, traces[i].data, traces[i].bytes) ==
              (ssize_t)traces[i].bytes);
        close(fd);
        CHECK(!simulation_plan_read(&plans[i], paths[i], SIMULATION_KEEP_WORK,
                                    err));
        ranks[i] =
            (struct simulation_rank){.path = paths[i], .plan = &plans[i]};
        logs[i] = &plans[i].comms;
    }
    struct comm_job *job = simulation_join(ranks, count, classes);
    CHECK(!placement_make(&at, placement, logs[0]->world, 1, err));
    struct comm_wider wider = {.count = 0};
    struct flow_job flows = {logs, count, classes, c, &at};
    if (widened) {
        CHECK(comm_wider_make(&wider, logs, count, classes, NULL, widened));
        flows.logs = wider.logs;
        flows.classes = &wider.classes;
    }
    struct flow_plan *plan = c->network ? flow_plan_create(&flows, err) : NULL;
    const struct simulation_peers peers = {ranks, count, job, 0};
    const struct simulation_options options = {
        .price = {.gpu = &gpu, .cluster = c},
        .placement = &at,
        .data_parallel = widened,
        .flow_plan = plan};
    timing_read_job(timed, &peers, &options);
    for (unsigned i = 0; i < count; i++) {
        CHECK(!timed[i].failed);
        if (timed[i].timing.steps[0].duration_ns > longest)
            longest = timed[i].timing.steps[0].duration_ns;
        timing_fini(&timed[i].timing);
        timed[i] = (struct timing_rank){0};
        simulation_plan_fini(&plans[i]);
        free(traces[i].data);
        unlink(paths[i]);
    }
    flow_plan_destroy(plan);
    comm_wider_fini(&wider);
    placement_fini(&at);
    comm_job_destroy(job);
    return longest;
}

/* Ranks 0 and 2 all-reduce, and 1 and 3, each on a node; 0 and 1 are on one
 * leaf. Of GROUPS groups ranks run. */
static uint64_t two_groups(unsigned groups, const char *text,
                           const struct comm_classes *classes)
{
    struct cluster c = cluster_of(text);
    struct err err = {""};
    unsigned place = 0;

    for (unsigned g = 0; g < groups; g++)
        for (unsigned r = g; r < 4; r += 2) {
            struct build *b = start(place++, r, 4, (struct range){g, 2, 2});
            all_reduce(b, 512 * MIB);
            end(b);
        }
    uint64_t ns = simulate(place, classes, &c, NULL, &err);
    CHECK_STR(err.text, "");
    cluster_fini(&c);
    return ns;
}

static double ratio(uint64_t a, uint64_t b)
{
    return (double)a / (double)b;
}

TEST(groups_on_one_uplink_take_twice_as_long)
{
    static const char wide[] = NODES(4, LEAVES(1)), thin[] = NODES(4, LEAVES(2));
    uint64_t alone = two_groups(1, wide, NULL);

    CHECK_UINT(two_groups(2, wide, NULL), alone);
    CHECK_UINT(two_groups(1, thin, NULL), alone);
    CHECK_NEAR(ratio(two_groups(2, thin, NULL), alone), 2, 0.02);
}

/* Two ranks run, for four: the other group is there all the same. */
TEST(groups_that_did_not_run_share_too)
{
    uint32_t stands[] = {0, 0, 2, 2};
    const struct comm_classes classes = {stands, 4};
    static const char wide[] = NODES(4, LEAVES(1)), thin[] = NODES(4, LEAVES(2));
    uint64_t alone = two_groups(1, wide, NULL);

    CHECK_UINT(two_groups(1, wide, &classes), alone);
    CHECK_NEAR(ratio(two_groups(1, thin, &classes), alone), 2, 0.02);
}

/* Two groups of WORLD / 2 ranks, two apart, average gradients. */
static uint64_t averaging(unsigned world, const char *text)
{
    struct cluster c = cluster_of(text);
    struct err err = {""};

    for (unsigned r = 0; r < world; r++) {
        struct build *b =
            start(r, r, world, (struct range){r % 2, world / 2, 2});
        BUILD(b, PHASE, .phase = TRACE_PHASE_BACKWARD);
        BUILD(b, COLLECTIVE, .name = ALL_REDUCE, .communicator = 1,
              .ranks = world / 2, .count = 128 * MIB, .type = 7,
              .bytes = 512 * MIB, .send = 1, .receive = 1, .stream = 8);
        end(b);
    }
    uint64_t ns = simulate(world, NULL, &c, NULL, &err);
    CHECK_STR(err.text, "");
    cluster_fini(&c);
    return ns;
}

/* What a wider job takes is predicted from a narrower one, with what its groups
 * take from each other. */
TEST(a_wider_job_shares_the_network_as_if_it_had_run)
{
    static const char wide[] = NODES(8, LEAVES(1)), thin[] = NODES(8, LEAVES(2));
    uint64_t alone = averaging(8, wide), sharing = averaging(8, thin);

    CHECK_NEAR(ratio(sharing, alone), 2, 0.02);
    widened = 4;
    CHECK_UINT(averaging(4, wide), alone);
    CHECK_UINT(averaging(4, thin), sharing);
    widened = 0;
}

/* Tensor-parallel pairs, of which two average gradients; then four do. */
TEST(the_ranks_of_a_wider_job_keep_their_order)
{
    uint32_t data[] = {1, 3}, tensor[] = {2, 3};
    struct comm comms[] = {{.rank = 1, .ranks = 2, .members = data},
                           {.rank = 1, .ranks = 2, .members = tensor}};
    struct comm_call calls[] = {
        {.comm = 0, .kind = COMM_ALL_REDUCE, .phase = TRACE_PHASE_BACKWARD},
        {.comm = 1, .kind = COMM_ALL_REDUCE, .phase = TRACE_PHASE_FORWARD}};
    const struct comm_log log = {.rank = 3, .world = 4, .comms = comms,
                                 .comm_count = 2, .calls = calls,
                                 .call_count = 2}, *logs[] = {&log};
    static const uint32_t stands[] = {0, 1, 0, 1, 0, 1, 2, 3};
    struct comm_wider w;

    CHECK(comm_wider_make(&w, logs, 1, NULL, NULL, 4));
    CHECK_UINT(w.classes.world, 8);
    for (uint32_t r = 0; r < 8; r++)
        CHECK_UINT(w.classes.stands[r], stands[r]);
    const struct comm_log *wide = w.logs[0];
    CHECK_UINT(wide->rank, 7);
    CHECK_UINT(wide->comms[0].ranks, 4);
    CHECK_UINT(wide->comms[0].rank, 3);
    for (uint32_t i = 0; i < 4; i++)
        CHECK_UINT(wide->comms[0].members[i], 1 + 2 * i);
    CHECK_UINT(wide->comms[1].members[0], 6);
    CHECK_UINT(wide->comms[1].members[1], 7);
    comm_wider_fini(&w);
    data[1] = 2; /* in no order */
    comms[0].ranks = 2;
    data[0] = 3;
    CHECK(!comm_wider_make(&w, logs, 1, NULL, NULL, 4));
}

TEST(a_job_that_no_longer_averages_has_ranks_of_its_world)
{
    uint32_t data[] = {0, 1, 2, 3};
    struct comm comm = {.rank = 2, .ranks = 4, .members = data};
    struct comm_call call = {.kind = COMM_ALL_REDUCE,
                             .phase = TRACE_PHASE_BACKWARD};
    const struct comm_log log = {.rank = 2, .world = 4, .comms = &comm,
                                 .comm_count = 1, .calls = &call,
                                 .call_count = 1}, *logs[] = {&log};
    struct comm_wider w;

    CHECK(comm_wider_make(&w, logs, 1, NULL, NULL, 1));
    CHECK_UINT(w.classes.world, 1);
    CHECK_UINT(w.logs[0]->rank, 0);
    CHECK_UINT(w.logs[0]->comms[0].rank, 0);
    comm_wider_fini(&w);
}

/* All links wide: what there is without a network. */
TEST(full_bisection_is_the_price)
{
    static const char *const networks[] = {
        NODES(4, LEAVES(1)),
        NODES(4, "\"pattern\": \"fat-tree\", \"k\": 4"),
        NODES(4, "\"pattern\": \"rail-optimized\", \"nodes_per_leaf\": 1"),
        NODES(4, "\"pattern\": \"dragonfly\", \"groups\": 2, "
                 "\"routers_per_group\": 2, \"adapters_per_router\": 1, "
                 "\"global_gbps\": 100, \"link_gbps\": 100"),
        NODES(4, "\"pattern\": \"torus\", \"sizes\": [2, 2], "
                 "\"link_gbps\": 100"),
        NODES(4, "\"switches\": [\"s\"], "
                 "\"attach\": [{\"nodes\": \"0-3\", \"switch\": \"s\"}]"),
    };
    uint64_t price = two_groups(
        2,
        "{\"kind\": \"cluster\", \"name\": \"pair\", \"gpu\": "
        "\"h100-sxm-80gb\", \"gpus_per_node\": 1, "
        "\"intra\": {\"gbps\": 400, \"latency_us\": 2}, "
        "\"inter\": {\"gbps\": 50, \"latency_us\": 5}}",
        NULL);

    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++)
        CHECK_UINT(two_groups(2, networks[i], NULL), price);
}

TEST(a_failed_link_leaves_less)
{
    static const char half[] =
        NODES(4, LEAVES(1) ", \"failed\": [{\"from\": \"leaf0\", \"to\": "
                           "\"spine0\", \"part\": 0.5}]");
    uint64_t alone = two_groups(1, NODES(4, LEAVES(1)), NULL);

    CHECK_UINT(two_groups(1, half, NULL), alone);
    CHECK_NEAR(ratio(two_groups(2, half, NULL), alone), 2, 0.02);
}

/* The latency of four links between switches, two steps each: an all-reduce of
 * two nodes waits for two of them at a time. */
TEST(hops_take_time)
{
    static const char far[] = NODES(4, LEAVES(1) ", \"hop_us\": 10");
    uint64_t alone = two_groups(1, NODES(4, LEAVES(1)), NULL);

    CHECK_UINT(two_groups(1, far, NULL) - alone, 2 * 2 * 10000);
}

/* A send of a pipeline over the uplink that an all-reduce uses. Both take as
 * long alone; the sum of both goes through. */
static uint64_t send_beside(bool sends, bool reduces, uint64_t bytes)
{
    struct cluster c = cluster_of(NODES(4, LEAVES(2)));
    struct err err = {""};

    for (unsigned r = 0; r < 4; r++) {
        struct build *b = start(r, r, 4, (struct range){r % 2, 2, 2});
        if (r % 2 == 0 && reduces)
            all_reduce(b, 512 * MIB);
        if (r % 2 && sends)
            BUILD(b, COLLECTIVE, .name = r == 1 ? SEND : RECV,
                  .communicator = 1, .rank = r / 2, .ranks = 2,
                  .root = r == 1, .bytes = bytes, .send = r == 1,
                  .receive = r != 1, .group = 1, .stream = 8);
        end(b);
    }
    uint64_t ns = simulate(4, NULL, &c, NULL, &err);
    CHECK_STR(err.text, "");
    cluster_fini(&c);
    return ns;
}

TEST(a_send_slows_an_all_reduce)
{
    uint64_t reduce = send_beside(false, true, 512 * MIB);
    uint64_t both = send_beside(true, true, 512 * MIB);

    CHECK(send_beside(true, false, 512 * MIB) <= reduce);
    CHECK_NEAR(ratio(both, reduce), 2, 0.05);
    /* a small send is soon over */
    CHECK(ratio(send_beside(true, true, MIB), reduce) < 1.02);
}

/* Ranks 0 and 2 beside each other are on one leaf. */
TEST(placement_changes_who_shares)
{
    char path[] = "/tmp/memsim-placement.XXXXXX";
    int fd = mkstemp(path);
    struct err err = {""};
    struct placement at;
    uint64_t alone = two_groups(1, NODES(4, LEAVES(1)), NULL);

    CHECK(write(fd, "0\n2\n1\n3\n", 8) == 8);
    for (unsigned r = 0; r < 4; r++) {
        struct build *b = start(r, r, 4, (struct range){r % 2, 2, 2});
        all_reduce(b, 512 * MIB);
        end(b);
    }
    struct cluster c = cluster_of(NODES(4, LEAVES(2)));
    CHECK_UINT(simulate(4, NULL, &c, path, &err), alone);
    cluster_fini(&c);
    CHECK(placement_make(&at, path, 5, 1, &err) == -1);
    CHECK(strstr(err.text, "it places 4 ranks, and the job has 5") != NULL);
    err.text[0] = '\0';
    CHECK(!placement_make(&at, "round-robin", 6, 4, &err));
    CHECK_UINT(placement_node(&at, 3), 1);
    CHECK_UINT(placement_gpu(&at, 3), 1);
    CHECK_UINT(placement_nodes(&at, 6), 2);
    placement_fini(&at);
    close(fd);
    unlink(path);
}

/* A job of two ranks whose all-reduce or send is placed as PLACES says. */
static uint64_t placed(const char *places, const char *text, bool sends)
{
    char path[] = "/tmp/memsim-placement.XXXXXX";
    int fd = mkstemp(path);
    struct cluster c = cluster_of(text);
    struct err err = {""};

    CHECK(write(fd, places, strlen(places)) == (ssize_t)strlen(places));
    close(fd);
    for (unsigned r = 0; r < 2; r++) {
        struct build *b = start(r, r, 2, (struct range){0, 2, 1});
        if (sends)
            BUILD(b, COLLECTIVE, .name = r ? RECV : SEND, .communicator = 1,
                  .rank = r, .ranks = 2, .root = 1 - r, .bytes = 512 * MIB,
                  .send = !r, .receive = r, .stream = 8);
        else
            all_reduce(b, 512 * MIB);
        end(b);
    }
    uint64_t ns = simulate(2, NULL, &c, path, &err);
    CHECK_STR(err.text, "");
    cluster_fini(&c);
    unlink(path);
    return ns;
}

/* Nodes 0 and 1 are on one leaf, 2 and 3 on another one. */
TEST(several_jobs_share_an_uplink)
{
    static const char thin[] = NODES(4, LEAVES(2));

    for (int sends = 0; sends < 2; sends++) {
        uint64_t alone = placed("0\n2\n", thin, sends);
        CHECK_NEAR(ratio(placed("0\n2\n1\n3\n", thin, sends), alone), 2, 0.02);
        CHECK_UINT(placed("0\n2\n1\n3\n", NODES(4, LEAVES(1)), sends), alone);
        CHECK_UINT(placed("0\n1\n2\n3\n", thin, sends), alone);
    }
}

TEST(a_network_has_nodes_for_the_job)
{
    struct cluster c = cluster_of(NODES(2, "\"pattern\": \"torus\", "
                                           "\"sizes\": [2]"));
    const struct comm_log log = {.world = 4};
    const struct comm_log *logs[] = {&log};
    const struct placement at = {.width = 1};
    const struct flow_job job = {logs, 1, NULL, &c, &at};
    struct err err = {""};

    CHECK(!flow_plan_create(&job, &err));
    CHECK_STR(err.text, "--cluster pair: its network has 2 nodes, and 4 ranks, "
                        "1 on each, take 4");
    cluster_fini(&c);
}

/* Tensor-parallel pairs and data-parallel groups of eight ranks; two of the
 * groups are another class. */
TEST(siblings_are_the_groups_of_the_class)
{
    uint32_t stands[] = {0, 0, 0, 0, 4, 4, 4, 4};
    const struct comm_classes classes = {stands, 8};
    uint32_t pair[] = {0, 1}, data[] = {1, 5}, apart[] = {5, 6};
    struct comm c = {.ranks = 2, .members = pair};
    int64_t *shifts;

    CHECK_UINT(comm_siblings(&c, NULL, &shifts), 1);
    free(shifts);
    CHECK_UINT(comm_siblings(&c, &classes, &shifts), 2);
    CHECK(shifts[0] == 0 && shifts[1] == 2);
    free(shifts);
    c.members = data;
    CHECK_UINT(comm_siblings(&c, &classes, &shifts), 4);
    CHECK(shifts[0] == 0 && shifts[1] == -1 && shifts[3] == 2);
    free(shifts);
    c.members = apart;
    CHECK(comm_siblings(&c, &classes, &shifts) >= 1);
    free(shifts);
}

