/* SPDX-License-Identifier: Apache-2.0
 * Node counts that were not measured: what the rules say, in numbers. */
#include "check.h"
#include "runtime/cost/cost_nccl.h"

#define GPUS 8
#define GB   1e9

static struct fit_knot knots[4][2];
static struct fit_curve curves[4];

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
    unsigned flags = 0;

    return cost_nccl_curves_us(&family, bytes, nodes, GPUS, false, &flags);
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

/* A rack: 1 us a message and the part of the buffer that leaves a rank. */
static void rack_set(int i, uint32_t nodes)
{
    double ranks = nodes * GPUS;

    line_set(i, nodes, ranks - 1, 1e3 * (ranks - 1) / ranks);
}

TEST(a_rack_s_exchange_is_told_from_above)
{
    rack_set(0, 1);
    rack_set(1, 8);
    CHECK_NEAR(ask(FIT_ALLTOALL, 2, 2, 8 * GB), 15 + 8e3 * 15 / 16, 1e-9);
}

TEST(beyond_its_latency_grows_by_halves)
{
    rack_set(0, 1);
    rack_set(1, 2);
    double rest = 8e3 * 31 / 32;
    CHECK_NEAR(ask(FIT_ALLTOALL, 2, 4, 8 * GB), sqrt((rest + 15) * (rest + 31)),
               1e-9);
}
