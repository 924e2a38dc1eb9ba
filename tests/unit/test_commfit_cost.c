/* SPDX-License-Identifier: Apache-2.0
 * The evaluator: what it says where nothing was measured, and that it says
 * so. */
#include "check.h"
#include "fits/cluster.h"
#include "common/base/err.h"
#include "runtime/nccl/cost_nccl.h"
#include "runtime/nccl/fit_formula.h"

/* All-reduce on 8 GPUs a node: 100 us + S at 10 GB/s, on 2 and 8 nodes. */
static struct fit_knot knots[2][2] = {
    {{1e3, {100.1, 99.1}}, {1e9, {100100, 99100}}},
    {{1e3, {200.1, 199.1}}, {1e9, {100200, 99200}}},
};

static struct fit_curve curves[2] = {
    {.nodes = 2,
     .bytes_min = 1e3,
     .bytes_max = 1e9,
     .knot_count = 2,
     .knots = knots[0]},
    {.nodes = 8,
     .bytes_min = 1e3,
     .bytes_max = 1e9,
     .knot_count = 2,
     .knots = knots[1]},
};

static struct fit_family family = {
    .coll = FIT_ALL_REDUCE,
    .gpus_per_node = 8,
    .model = FIT_MODEL_CURVES,
    .curve_count = 2,
    .curves = curves,
    .errors = {.size_median = 0.01,
               .size_band = 0.02,
               .between_band = 0.24,
               .beyond_band = 0.3},
};

static const struct fit fit = {.family_count = 1, .families = &family};

static struct cost_nccl_answer ask(enum fit_coll coll, uint32_t nodes,
                                   uint32_t gpus, double bytes)
{
    const struct cost_nccl_query query = {
        .coll = coll, .nodes = nodes, .gpus_per_node = gpus, .bytes = bytes};
    struct cost_nccl_answer answer;

    CHECK(!cost_nccl(&fit, &query, &answer));
    CHECK(answer.us >= 0 && isfinite(answer.us));
    return answer;
}

TEST(a_measured_point_needs_no_warning)
{
    struct cost_nccl_answer a = ask(FIT_ALL_REDUCE, 2, 8, 1e6);

    CHECK_NEAR(a.us, 200, 1e-9);
    CHECK_UINT(a.flags, 0);
    CHECK_NEAR(a.high_us, 200 * exp(0.015), 1e-9);
    CHECK_NEAR(a.error, expm1(0.45 * 0.015), 1e-9);
}

TEST(one_rank_takes_no_time)
{
    CHECK(ask(FIT_ALL_REDUCE, 1, 1, 1e6).us == 0);
}

TEST(says_where_it_leaves_the_data)
{
    struct cost_nccl_answer a = ask(FIT_ALL_REDUCE, 4, 8, 1e6);

    CHECK_UINT(a.flags, COST_NCCL_BETWEEN);
    CHECK(a.us > 200 && a.us < 700);
    CHECK_NEAR(log(a.high_us / a.us), hypot(0.8 * 0.24, 0.015), 1e-9);
    a = ask(FIT_ALL_REDUCE, 32, 8, 1e10);
    CHECK_UINT(a.flags, COST_NCCL_BEYOND | COST_NCCL_ABOVE);
    CHECK(a.us > 1e6);
    a = ask(FIT_ALL_REDUCE, 2, 8, 10);
    CHECK_UINT(a.flags, COST_NCCL_BELOW);
    CHECK(a.us >= 24 && a.us < 100.1); /* two nodes' usual latency */
    a = ask(FIT_ALL_REDUCE, 2, 4, 1e9);
    CHECK(a.flags & COST_NCCL_OTHER_WIDTH);
    CHECK(a.us > 150000); /* half the adapters */
    CHECK(a.error > 0.1);
}

TEST(borrows_a_like_collective_s_bandwidth)
{
    struct cost_nccl_answer a = ask(FIT_ALL_GATHER, 2, 8, 1e9);

    CHECK_UINT(a.flags, COST_NCCL_OTHER_COLL);
    double latency = cost_tuning_latency_us(FIT_ALL_GATHER, 2, 8) /
                     cost_tuning_latency_us(FIT_ALL_REDUCE, 2, 8);
    CHECK_NEAR(a.us, 100.1 * latency + (100100 - 100.1) / 2, 1e-9);
    a = ask(FIT_ALL_GATHER, 2, 8, 1e3); /* latency is not halved */
    CHECK_NEAR(a.us, 100.1 * latency, 1e-9);
    CHECK(a.error > 0.2); /* never surer than another collective is */
}

/* All-gather was measured on 2 nodes, at 4 times what all-reduce says; on 8 the
 * all-reduce alone. */
TEST(a_ring_not_measured_there_follows_the_one_that_was)
{
    struct fit_knot own[2] = {{1e3, {100.1, 100.1}}, {1e9, {200200, 200200}}};
    struct fit_curve curve = {.nodes = 2,
                              .bytes_min = 1e3,
                              .bytes_max = 1e9,
                              .knot_count = 2,
                              .knots = own};
    struct fit_family families[2] = {family, family};
    const struct fit two = {.family_count = 2, .families = families};
    struct cost_nccl_query q = {.coll = FIT_ALL_GATHER,
                                .nodes = 8,
                                .gpus_per_node = 8,
                                .bytes = 1e9};
    struct cost_nccl_answer a;

    families[1].coll = FIT_ALL_GATHER;
    families[1].curve_count = 1;
    families[1].curves = &curve;
    families[1].errors = (struct fit_errors){-1, -1, -1, -1, -1, -1, -1};
    CHECK(!cost_nccl(&two, &q, &a));
    double here = ask(FIT_ALL_GATHER, 8, 8, 1e9).us; /* by all-reduce alone */
    double there = ask(FIT_ALL_GATHER, 2, 8, 1e9).us;
    CHECK_NEAR(a.us, here * sqrt(200200 / there), 1e-6);
    CHECK_UINT(a.flags, COST_NCCL_OTHER_COLL);
    q.nodes = 16; /* neither was measured: its own curve */
    CHECK(!cost_nccl(&two, &q, &a));
    CHECK_UINT(a.flags, COST_NCCL_BEYOND);
    CHECK(log(a.high_us / a.us) > 1.1); /* 8 times the nodes of a ring */
    q.nodes = 2;
    CHECK(!cost_nccl(&two, &q, &a));
    CHECK_UINT(a.flags, 0);
}

TEST(borrows_before_it_takes_the_levels_for_rings_only)
{
    struct fit both = fit;
    struct cost_nccl_answer a;
    struct cost_nccl_query q = {.coll = FIT_REDUCE_SCATTER,
                                .nodes = 2,
                                .gpus_per_node = 8,
                                .bytes = 1e6};

    both.levels[FIT_CORRECTED][FIT_INTER] = (struct fit_level){
        .known = true,
        .latency_us = 1,
        .piece_count = 1,
        .pieces[0] = {.base_gbps = 10, .steepness = 1},
    };
    CHECK(!cost_nccl(&both, &q, &a));
    CHECK_UINT(a.flags, COST_NCCL_OTHER_COLL);
    q.coll = FIT_ALLTOALL;
    CHECK(!cost_nccl(&both, &q, &a));
    CHECK_UINT(a.flags, COST_NCCL_FORMULA);
}

TEST(has_no_answer_rather_than_a_wrong_one)
{
    struct fit_curve alone = curves[0];
    struct fit_family one_node = family;
    const struct fit small = {.family_count = 1, .families = &one_node};
    const struct cost_nccl_query query = {
        .coll = FIT_ALL_REDUCE, .nodes = 4, .gpus_per_node = 8, .bytes = 1e6};
    struct cost_nccl_answer answer;

    alone.nodes = 1;
    one_node.curves = &alone;
    one_node.curve_count = 1;
    CHECK(cost_nccl(&small, &query, &answer) == -1);
}

TEST(means_have_no_quantiles)
{
    const struct cost_nccl_query query = {.coll = FIT_ALL_REDUCE,
                                          .nodes = 2,
                                          .gpus_per_node = 8,
                                          .bytes = 1e6,
                                          .quantile = 0.95};
    struct cost_nccl_answer answer;

    CHECK(!cost_nccl(&fit, &query, &answer));
    CHECK(answer.flags & COST_NCCL_NO_QUANTILE);
    CHECK_STR(cost_nccl_flag_text(COST_NCCL_NO_QUANTILE),
              "no spread was measured: at the mean (--quantile)");
}

TEST(users_of_one_network_share_it)
{
    struct cost_nccl_query q = {
        .coll = FIT_ALL_REDUCE, .nodes = 2, .gpus_per_node = 8, .bytes = 1e9};
    struct cost_nccl_answer alone, one, eight;

    CHECK(!cost_nccl(&fit, &q, &alone));
    q.users = 1;
    CHECK(!cost_nccl(&fit, &q, &one));
    CHECK(one.us == alone.us && !one.flags);
    q.users = 8;
    CHECK(!cost_nccl(&fit, &q, &eight));
    CHECK_NEAR(eight.us, 8 * alone.us, 0.06); /* 8 nodes reach 5% more */
    CHECK_UINT(eight.flags, COST_NCCL_SHARED);
    q.bytes = 1e3; /* little to send: the latency hides it */
    CHECK(!cost_nccl(&fit, &q, &eight));
    CHECK_NEAR(eight.us, 100.1, 1e-9);
    q.gpus_per_node = 1; /* an adapter of eight */
    q.bytes = 1e8;
    CHECK(!cost_nccl(&fit, &q, &alone));
    q.users = 4;
    CHECK(!cost_nccl(&fit, &q, &one));
    CHECK_NEAR(one.us, alone.us, 0.01);
}

TEST(a_band_surrounds_every_answer)
{
    struct cost_nccl_answer a = ask(FIT_ALL_REDUCE, 2, 8, 1e6);

    CHECK(a.low_us < a.us && a.us < a.high_us);
    struct cost_nccl_answer far = ask(FIT_ALL_REDUCE, 64, 8, 1e6);
    CHECK(far.high_us / far.us > a.high_us / a.us);
}

static const char sheet[] =
    "{\"kind\":\"cluster\",\"name\":\"x\",\"gpu\":\"h100-sxm-80gb\","
    "\"gpus_per_node\":8,\"about\":\"t\",\"intra\":{\"gbps\":360,"
    "\"latency_us\":2},\"inter\":{\"gbps\":400,\"latency_us\":9}}";

TEST(a_data_sheet_is_priced_by_formula)
{
    struct err err = {""};
    struct cluster c;
    struct cost_nccl_answer a;
    struct cost_nccl_query q = {
        .coll = FIT_ALL_REDUCE, .nodes = 4, .gpus_per_node = 8, .bytes = 1e9};

    CHECK(!cluster_load_text(sheet, strlen(sheet), "x", &c, &err));
    CHECK(!cost_nccl(&c.fit, &q, &a));
    CHECK_UINT(a.flags, COST_NCCL_FORMULA);
    /* NCCL rates 18 NVLinks of an H100 at 370.8 GB/s, below the network. */
    double ring_us = 2 * 31.0 / 32 * 1e9 / 3.708e5;
    CHECK(a.us > 2 * 31.0 / 32 * 1e9 / 4e5 && a.us < 1.1 * ring_us);
    q.nodes = 1; /* the switch reduces: faster than a ring, 1.3 times */
    CHECK(!cost_nccl(&c.fit, &q, &a));
    CHECK(a.us < 2 * 7.0 / 8 * 1e9 / 3.7e5);
    q.algo = COST_ALGO_RING;
    CHECK(!cost_nccl(&c.fit, &q, &a));
    CHECK(a.us > 2 * 7.0 / 8 * 1e9 / 3.708e5);
    q.coll = FIT_SENDRECV; /* one adapter of the node's eight */
    q.algo = COST_ALGO_AUTO;
    q.nodes = 2;
    CHECK(!cost_nccl(&c.fit, &q, &a));
    CHECK_NEAR(a.us, 9 + 1e9 / (4e5 / 8), 1e-9);
    cluster_fini(&c);
}

static uint32_t width_of(const char *host, uint32_t local)
{
    struct err err = {""};
    struct cluster c;
    char text[512];

    snprintf(text, sizeof text, "{%s%s", host, sheet + 1);
    if (cluster_load_text(text, strlen(text), "x", &c, &err)) {
        CHECK(strstr(err.text, "gpus_per_host"));
        return 0;
    }
    uint32_t width = cluster_width(&c, local);
    cluster_fini(&c);
    return width;
}

TEST(a_node_is_as_wide_as_the_job_says)
{
    CHECK_UINT(width_of("", 0), 8);
    CHECK_UINT(width_of("", 2), 2);
    CHECK_UINT(width_of("", 16), 8);
    CHECK_UINT(width_of("\"gpus_per_host\":4,", 4), 8);
    CHECK_UINT(width_of("\"gpus_per_host\":4,", 1), 2);
    CHECK_UINT(width_of("\"gpus_per_host\":9,", 1), 0);
    CHECK_UINT(width_of("\"gpus_per_host\":0,", 1), 0);
}

/* doc/evidence/commfit.md: the cases in which a level vanishes. */
TEST(formulas_are_right_where_a_level_vanishes)
{
    for (int coll = 0; coll < FIT_COLL_COUNT; coll++)
        for (int formula = 0; formula < FIT_FORMULA_COUNT; formula++) {
            struct fit_shares one_node = fit_formula_shares(
                (enum fit_formula)formula, (enum fit_coll)coll, 1e6, 1, 8);
            struct fit_shares one_gpu = fit_formula_shares(
                (enum fit_formula)formula, (enum fit_coll)coll, 1e6, 8, 1);

            CHECK(one_node.inter_bytes == 0 && one_node.inter_steps == 0);
            CHECK(one_node.intra_bytes > 0 && one_node.intra_steps > 0);
            CHECK(one_gpu.intra_bytes == 0 && one_gpu.intra_steps == 0);
            CHECK(one_gpu.inter_bytes > 0 && one_gpu.inter_steps > 0);
        }
}

TEST(the_published_formulas_are_as_published)
{
    struct fit_shares s =
        fit_formula_shares(FIT_PUBLISHED, FIT_ALL_REDUCE, 1e6, 5, 8);

    CHECK(s.intra_bytes == 2e6 && s.inter_bytes == 2e6);
    CHECK(s.inter_steps == 3 && s.intra_steps == 7);
    s = fit_formula_shares(FIT_PUBLISHED, FIT_ALL_GATHER, 1e6, 4, 8);
    CHECK_NEAR(s.intra_bytes, 27e6 / 28, 1e-12);
    CHECK_NEAR(s.inter_bytes, 0.75e6, 1e-12);
    CHECK(s.inter_steps == 4 && s.intra_steps == 7);
}

TEST(every_cluster_of_the_catalogue_answers)
{
    struct err err = {""};
    struct cluster *list;
    size_t count;

    CHECK(!cluster_list(&list, &count, &err));
    CHECK(count > 20);
    for (size_t i = 0; i < count; i++) {
        const struct fit *f = &list[i].fit;
        struct cost_nccl_answer a;
        struct cost_nccl_query q = {.coll = FIT_ALL_REDUCE,
                                    .nodes = 4,
                                    .gpus_per_node = 8,
                                    .bytes = 1e8};

        if (f->family_count) {
            const struct fit_family *last = &f->families[f->family_count - 1];

            q.coll = last->coll;
            q.gpus_per_node = last->gpus_per_node;
            q.nodes = last->curves[last->curve_count - 1].nodes;
        }
        CHECK(list[i].name[0] && list[i].gpu[0]);
        CHECK(!cost_nccl(f, &q, &a) && a.us > 1);
        cluster_fini(&list[i]);
    }
    free(list);
}

/* At 16,384 ranks: no faster than the bytes at the rate that any curve reaches,
 * no slower than P - 1 steps at the largest latency of a step, and those bytes
 * at a thousandth of the rate. */
static void check_bounds(const struct fit *f, const struct fit_family *one)
{
    double rate = cost_nccl_network_gbps(f);

    for (double s = 1; s < 2e11; s *= 16) {
        uint32_t gpus = one->gpus_per_node;
        struct cost_nccl_query q = {.coll = one->coll,
                                    .nodes = 16384 / gpus,
                                    .gpus_per_node = gpus,
                                    .bytes = s};
        double ranks = (double)q.nodes * gpus;
        double bytes = fit_coll_factor(q.coll, ranks) * s;
        struct cost_nccl_answer a;

        if (one->curves[one->curve_count - 1].nodes == 1)
            continue;
        CHECK(!cost_nccl(f, &q, &a));
        CHECK(a.us >= 0.99 * bytes / (1e3 * 1.3 * rate) && a.us > 1);
        CHECK(a.us < 3 * (ranks - 1) * 60 + 1e3 * bytes / (1e3 * rate) + 1e4);
        CHECK(a.low_us < a.us && a.us < a.high_us);
    }
}

TEST(sixteen_thousand_ranks_stay_within_bounds)
{
    struct err err = {""};
    struct cluster *list;
    size_t count;

    CHECK(!cluster_list(&list, &count, &err));
    for (size_t i = 0; i < count; i++) {
        for (uint32_t j = 0; j < list[i].fit.family_count; j++)
            check_bounds(&list[i].fit, &list[i].fit.families[j]);
        cluster_fini(&list[i]);
    }
    free(list);
}

TEST(a_mistyped_cluster_gets_the_nearest_name)
{
    struct err err = {""};
    struct cluster c;

    CHECK(cluster_load("alps-gh20", &c, &err) == -1);
    CHECK(strstr(err.text, "alps-gh200") != NULL);
    err_clear(&err);
    CHECK(!cluster_load("dgx-h100", &c, &err));
    CHECK_UINT(c.gpus_per_node, 8);
    CHECK(!c.measured);
    cluster_fini(&c);
}
