/* SPDX-License-Identifier: Apache-2.0
 * Node counts that were not measured: what the rules say, in numbers. */
#include "check.h"
#include "runtime/nccl/cost_nccl.h"

#define GPUS 8
#define GB   1e9

static struct fit_knot knots[4][2];
static struct fit_curve curves[4];
static uint32_t rack_gpus; /* that NVLink joins; 0: a node's */

/* t = LATENCY_US + S US_PER_GB, from 1 kB to 64 GB. */
static void line_set(int i, uint32_t nodes, double latency_us, double us_per_gb)
{
    const double sizes[2] = {1e3, 64 * GB};

    for (int k = 0; k < 2; k++) {
        double us = latency_us + us_per_gb * sizes[k] / GB;

        knots[i][k] = (struct fit_knot){sizes[k], {us, us}};
    }
    curves[i] = (struct fit_curve){
        .nodes = nodes,
        .bytes_min = sizes[0],
        .bytes_max = sizes[1],
        .knot_count = 2,
        .knots = knots[i],
    };
}

static double ask(enum fit_coll coll, uint32_t count, uint32_t nodes,
                  double bytes)
{
    const struct fit_family family = {
        .coll = coll,
        .gpus_per_node = GPUS,
        .model = FIT_MODEL_CURVES,
        .curve_count = count,
        .curves = curves,
    };
    const struct fit fit = {.machine = {.rack_gpus = rack_gpus}};
    const struct cost_nccl_query query = {
        .coll = coll,
        .nodes = nodes,
        .gpus_per_node = GPUS,
        .bytes = bytes,
    };
    unsigned flags = 0;

    return cost_nccl_curves_us(&fit, &family, &query, &flags);
}

/* From 2 nodes to 4 a ring's 31 steps of half the size, or a tree 3/2 as deep:
 * small sizes go by the tree, large ones by the ring; and back again. */
TEST(the_time_grows_by_the_lesser_of_ring_and_tree)
{
    line_set(0, 2, 100, 1e5);
    CHECK_NEAR(ask(FIT_ALL_REDUCE, 1, 4, 1e6), 200 * 1.5, 1e-9);
    CHECK_NEAR(ask(FIT_ALL_REDUCE, 1, 4, GB), (100 + 5e4) * 31 / 15, 1e-9);
    line_set(0, 4, 100, 1e5);
    CHECK_NEAR(ask(FIT_ALL_REDUCE, 1, 2, 1e5), 110 / 1.5, 1e-9);
    CHECK_NEAR(ask(FIT_ALL_REDUCE, 1, 2, GB), (100 + 2e5) * 15 / 31, 1e-9);
}

TEST(between_two_counts_both_are_heard)
{
    line_set(0, 2, 100, 1e5);
    line_set(1, 8, 200, 1e5);
    double low = 200 * 1.5, high = 300 * 3.0 / 4;
    CHECK_NEAR(ask(FIT_ALL_REDUCE, 2, 4, 1e6), sqrt(low * high), 1e-9);
}

TEST(a_larger_job_that_was_disturbed_is_not)
{
    line_set(0, 2, 100, 1e5);
    line_set(1, 8, 2000, 1e6);
    CHECK_NEAR(ask(FIT_ALL_REDUCE, 2, 4, GB), (100 + 5e4) * 31 / 15, 1e-9);
}

TEST(one_node_says_nothing_about_a_network)
{
    line_set(0, 1, 1, 1e3);
    line_set(1, 4, 100, 1e5);
    CHECK_NEAR(ask(FIT_ALL_REDUCE, 2, 2, GB), (100 + 2e5) * 15 / 31, 1e-9);
}

/* 1 us a message, and the part of the buffer that leaves a rank. */
static double exchange_us(double ranks, double gb)
{
    return ranks - 1 + 1e3 * gb * (ranks - 1) / ranks;
}

static void exchange_set(int i, uint32_t nodes)
{
    double ranks = nodes * GPUS;

    line_set(i, nodes, ranks - 1, 1e3 * (ranks - 1) / ranks);
}

/* The bytes' rate is that of the largest size, latency included: 0.2%. */
#define RATE 0.002

/* 14 hops inside nodes and 1 between them become 56 and 7, which NCCL takes for
 * 1 and 2.7 us each; the call's own time stays. What the bytes add goes by the
 * steps, of the same bytes. */
TEST(a_ring_s_latency_grows_by_its_hops)
{
    double hops = (56 + 7 * 2.7) - (14 + 2.7);

    line_set(0, 2, 100, 1e5);
    CHECK_NEAR(ask(FIT_ALL_GATHER, 1, 8, 4e3), 100.1 + hops, 1e-9);
    CHECK_NEAR(ask(FIT_REDUCE_SCATTER, 1, 8, GB),
               100.1 + hops + (2.5e4 - 0.1) * 63 / 15, 1e-6);
    line_set(0, 8, 100, 1e5);
    CHECK_NEAR(ask(FIT_ALL_GATHER, 1, 2, 250), 100.1 - hops, 1e-9);
    line_set(0, 2, 10, 1e5); /* faster than NCCL's own figures: by a part */
    CHECK_NEAR(ask(FIT_ALL_GATHER, 1, 8, 4e3),
               10.1 * (6.6 + 56 + 7 * 2.7) / (6.6 + 14 + 2.7), 1e-9);
}

TEST(in_a_rack_an_exchange_sends_a_message_to_each_rank)
{
    rack_gpus = 64;
    exchange_set(0, 1);
    exchange_set(1, 8);
    CHECK_NEAR(ask(FIT_ALLTOALL, 2, 2, 8 * GB), exchange_us(16, 8), RATE);
    exchange_set(1, 2);
    CHECK_NEAR(ask(FIT_ALLTOALL, 2, 4, 8 * GB), exchange_us(32, 8), RATE);
}

/* Half of the buffer goes to the other rack, 50 GB/s a GPU. */
TEST(what_leaves_a_rack_goes_through_adapters)
{
    rack_gpus = 16;
    exchange_set(0, 2);
    CHECK_NEAR(ask(FIT_ALLTOALL, 1, 4, 8 * GB), exchange_us(16, 8) + 80000,
               RATE);
}

/* The network carries (N - 1) / N of the buffer, P - 1 messages wait. */
TEST(over_a_network_the_bytes_that_leave_a_node_count)
{
    rack_gpus = 0;
    exchange_set(0, 2);
    double more = 8e3 * 15 / 16 * (7.0 / 8) / (1.0 / 2);
    CHECK_NEAR(ask(FIT_ALLTOALL, 1, 8, 8 * GB), more, 0.01);
    CHECK(ask(FIT_ALLTOALL, 1, 8, 8e3) > 15 * 2);
}
