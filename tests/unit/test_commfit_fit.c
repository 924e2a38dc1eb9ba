/* SPDX-License-Identifier: Apache-2.0
 * Known curves recover their parameters; what was left out scores as it
 * should; a fit survives its file to the last bit. */
#include "check.h"
#include "commfit/breaks.h"
#include "commfit/chain.h"
#include "commfit/fit_write.h"
#include "commfit/model.h"
#include "commfit/score.h"
#include "commfit/sigmoid.h"
#include "commfit/update.h"
#include "fits/fit_read.h"
#include "runtime/nccl/cost_nccl.h"
#include "runtime/nccl/fit_curve.h"

#include <cjson/cJSON.h>
#include <gsl/gsl_errno.h>

typedef double time_of(double bytes, double nodes, double gpus);

/* 20 us and 100 GB/s, switching to 30 us and 200 GB/s at 1 MiB. */
static double two_protocols(double bytes, double nodes, double gpus)
{
    (void)nodes;
    (void)gpus;
    return bytes < 0x1p20 ? 20 + bytes / 1e5 : 30 + bytes / 2e5;
}

/* A ring: 2 (P - 1) steps of 1 us and S / P bytes at 50 GB/s. */
static double ring(double bytes, double nodes, double gpus)
{
    double p = nodes * gpus;

    return 2 * (p - 1) * (1 + bytes / p / 5e4);
}

static void add_size(struct bench *b, uint32_t nodes, double bytes, double us,
                     bool in_place)
{
    struct err err = {""};
    struct bench_row row = {
        .coll = FIT_ALL_REDUCE,
        .nodes = nodes,
        .gpus = 8,
        .bytes = (uint64_t)bytes,
        .us = us,
        .in_place = in_place,
    };

    bench_add(b, &row, &err);
}

static void make_set(struct bench *b, struct series_set *set, time_of *time,
                     const uint32_t *nodes, size_t count)
{
    bench_init(b);
    for (size_t i = 0; i < count; i++)
        for (double s = 1024; s <= 0x1p30; s *= 2)
            for (int place = 0; place < 2; place++)
                add_size(b, nodes[i], s, time(s, nodes[i], 8), place);
    bench_sort(b);
    series_make(b, set);
}

static const uint32_t one_count[] = {2}, counts[] = {2, 4, 8, 16};

TEST(a_chain_needs_few_knots_for_straight_segments)
{
    struct bench b;
    struct series_set set;
    struct chain chain;

    make_set(&b, &set, two_protocols, one_count, 1);
    const struct series *s = &set.families[0].series[0];
    chain_fit(s, &chain);
    CHECK(chain.count <= 5);
    for (uint32_t i = 0; i < s->count; i++)
        CHECK_NEAR(
            fit_chain_us(chain.knots, chain.count, s->points[i].bytes, false),
            s->points[i].us[0], 0.01);
    series_fini(&set);
    bench_fini(&b);
}

TEST(a_chain_follows_its_last_bandwidth_beyond_the_data)
{
    const struct fit_knot knots[] = {{1e6, {30, 30}}, {1e8, {1000, 900}}};

    CHECK_NEAR(fit_chain_us(knots, 2, 2e8, false), 1000 + 970 / 0.99, 1e-6);
    CHECK_NEAR(fit_chain_us(knots, 1, 2e6, false), 60, 1e-12);
}

static void fill_sigmoid(struct sigmoid_point *points, uint32_t count,
                         const struct fit_sigmoid *true_one)
{
    for (uint32_t i = 0; i < count; i++) {
        double bytes = 1024 * pow(2, i);

        points[i] = (struct sigmoid_point){
            .bytes = bytes,
            .sent_bytes = bytes,
            .steps = 1,
            .us = true_one->latency_us +
                  bytes / (1e3 * fit_sigmoid_gbps(true_one, 1, bytes)),
        };
    }
}

TEST(a_sigmoid_recovers_its_parameters)
{
    const struct fit_sigmoid true_one = {0, 12, 180, 0.9, 15.5, 2};
    struct sigmoid_point points[22];
    struct sigmoid_fit fit;

    gsl_set_error_handler_off();
    fill_sigmoid(points, 22, &true_one);
    CHECK(!sigmoid_fit(points, 22, 3, &fit));
    CHECK_UINT(fit.piece_count, 1);
    CHECK_NEAR(fit.latency_us, 12, 0.02);
    CHECK_NEAR(fit.pieces[0].limit_gbps, 180, 0.03);
    CHECK_NEAR(fit.pieces[0].steepness, 0.9, 0.05);
    CHECK_NEAR(fit.pieces[0].midpoint, 15.5, 0.02);
    CHECK(fit.error < 0.02);
}

TEST(a_sigmoid_shrugs_off_an_outlier)
{
    const struct fit_sigmoid true_one = {0, 12, 180, 0.9, 15.5, 2};
    struct sigmoid_point points[22];
    struct sigmoid_fit fit;

    gsl_set_error_handler_off();
    fill_sigmoid(points, 22, &true_one);
    points[8].us *= 20;
    CHECK(!sigmoid_fit(points, 22, 1, &fit));
    CHECK_NEAR(fit.pieces[0].limit_gbps, 180, 0.05);
    CHECK_NEAR(fit.latency_us, 12, 0.05);
}

TEST(two_sizes_give_a_latency_and_a_bandwidth)
{
    const struct fit_sigmoid true_one = {0, 10, 0, 1, 0, 50};
    struct sigmoid_point points[2];
    struct sigmoid_fit fit;

    gsl_set_error_handler_off();
    fill_sigmoid(points, 2, &true_one);
    points[1].bytes = points[1].sent_bytes = 1e9;
    points[1].us = 10 + 1e9 / 5e4;
    CHECK(!sigmoid_fit(points, 2, 3, &fit));
    CHECK_NEAR(fit.latency_us, 10, 0.02);
    CHECK_NEAR(fit_sigmoid_gbps(fit.pieces, 1, 1e9), 50, 0.02);
    CHECK(fit.error < 0);
}

TEST(breaks_lie_where_the_course_changes)
{
    double x[30], y[30];
    uint32_t ends[3];

    for (int i = 0; i < 30; i++) {
        x[i] = pow(2, i);
        y[i] = i < 12 ? 0.1 * i : 5 - 0.3 * i;
    }
    CHECK_UINT(breaks_find(x, y, 30, 2, 5, ends), 2);
    CHECK_UINT(ends[0], 12);
    CHECK_UINT(ends[1], 30);
    CHECK_UINT(breaks_find(x, y, 8, 3, 5, ends), 1);
}

TEST(outliers_are_set_aside_and_told)
{
    struct bench b;
    struct series_set set;
    struct outliers list = {0};

    make_set(&b, &set, ring, one_count, 1);
    struct series_point *p = set.families[0].series[0].points;
    p[5].us[0] = p[5].raw_us[0] *= 3; /* one sample */
    p[9].us[0] = p[9].us[1] = p[9].raw_us[0] = p[9].raw_us[1] *= 50; /* both */
    series_clean(&set, &list);
    CHECK_UINT(list.count, 3);
    CHECK_NEAR(p[5].us[0], p[5].us[1], 1e-12);
    CHECK_NEAR(p[9].us[0], ring(p[9].bytes, 2, 8), 0.2);
    free(list.items);
    series_fini(&set);
    bench_fini(&b);
}

static double median_of(const struct scores *scores, enum held_out held,
                        enum scorer who)
{
    /* Rings have no tree at small sizes; NCCL's all-reduce has. */
    const struct score_filter filter = {
        .held = held,
        .bytes_min =
            held == HELD_BETWEEN || held == HELD_BEYOND ? 0x1p20 : 0};
    struct score_summary s = score_sum(scores, &filter, who);

    CHECK(s.count > 0);
    return s.median;
}

TEST(held_out_node_counts_of_a_ring_are_found)
{
    struct bench b;
    struct series_set set;
    struct scores scores;

    gsl_set_error_handler_off();
    make_set(&b, &set, ring, counts, 4);
    score_held_out(&set, &scores);
    CHECK(median_of(&scores, HELD_ALTERNATE, SCORE_CURVES) < 0.001);
    CHECK(median_of(&scores, HELD_FOLDS, SCORE_CURVES) < 0.001);
    CHECK(median_of(&scores, HELD_BETWEEN, SCORE_CURVES) < 0.01);
    CHECK(median_of(&scores, HELD_BEYOND, SCORE_CURVES) < 0.25);
    CHECK(median_of(&scores, HELD_BETWEEN, SCORE_LOGGP) < 1e-6); /* its own */
    CHECK(median_of(&scores, HELD_ALTERNATE, SCORE_ALPHA_BETA) > 0.05);
    free(scores.rows);
    series_fini(&set);
    bench_fini(&b);
}

TEST(a_fit_is_the_same_after_its_file)
{
    struct err err = {""};
    struct bench b;
    struct series_set set;
    struct fit fit, again;
    struct scores scores = {0};
    struct outliers outliers = {0};

    gsl_set_error_handler_off();
    make_set(&b, &set, two_protocols, counts, 3);
    CHECK(!model_fit(&set, &fit, &err));
    fit.families[0].straggler = (struct fit_straggler){
        .known = true,
        .intercept = {0.1, 1. / 3, 0.4, 0.5},
        .slope = {1e-7, 2e-7, 3e-7, 4e-7},
        .x_min = 10,
        .x_max = 1e4,
        .of_means = true};
    update_step(&fit.families[0].update, 1e6, 0.1);
    const struct fit_story story = {&b, &set, &scores, &outliers};
    cJSON *root = fit_to_json(&fit, &story);
    json_make_exact(root);
    char *text = cJSON_Print(root);
    CHECK(!strstr(text, "nan") && !strstr(text, "null"));
    CHECK(!fit_load_text(text, strlen(text), "x", &again, &err));
    for (int model = 0; model < FIT_MODEL_COUNT; model++)
        for (double s = 1; s < 1e12; s *= 1.7)
            for (uint32_t n = 1; n < 20; n++) {
                const struct cost_nccl_query q = {
                    .coll = FIT_ALL_REDUCE,
                    .nodes = n,
                    .gpus_per_node = 8,
                    .bytes = s,
                    .in_place = n & 1,
                    .model = (enum fit_model)model,
                    .quantile = 0.9};
                struct cost_nccl_answer x, y;

                CHECK(cost_nccl(&fit, &q, &x) == cost_nccl(&again, &q, &y));
                CHECK(x.us == y.us && x.flags == y.flags);
            }
    free(text);
    cJSON_Delete(root);
    fit_fini(&fit);
    fit_fini(&again);
    series_fini(&set);
    bench_fini(&b);
}

/* Out of place and in place are two figures of one size: 10% apart at every
 * fourth size, and the same but for what in place is faster everywhere. */
TEST(means_measured_again_have_a_spread)
{
    struct err err = {""};
    struct bench b;
    struct series_set set;
    struct fit fit;
    int size = 0;

    gsl_set_error_handler_off();
    bench_init(&b);
    for (double s = 1024; s <= 0x1p30; s *= 2, size++)
        for (int in_place = 0; in_place < 2; in_place++) {
            double noise = in_place && size % 4 == 1 ? 1.1 : 1;
            struct bench_row row = {
                .coll = FIT_ALL_REDUCE,
                .nodes = 2,
                .gpus = 8,
                .bytes = (uint64_t)s,
                .in_place = in_place,
                .us = (10 + s / 1e5) * (in_place ? 0.8 : 1) * noise,
            };
            bench_add(&b, &row, &err);
        }
    bench_sort(&b);
    series_make(&b, &set);
    CHECK(!model_fit(&set, &fit, &err));
    stragglers_fit(&b, &set, &fit);
    const struct fit_straggler *s = &fit.families[0].straggler;
    CHECK(s->known && s->of_means && s->slope[3] == 0);
    CHECK_NEAR(s->intercept[0], 0, 1e-9);
    CHECK_NEAR(s->intercept[3], pow(1.1, sqrt(0.5)) - 1, 1e-9);
    fit_fini(&fit);
    series_fini(&set);
    bench_fini(&b);
}

/* Ranks' times from t to t (1 + 1e-6 P log S). */
TEST(stragglers_are_recovered)
{
    struct err err = {""};
    struct bench b;
    struct series_set set;
    struct fit fit;

    gsl_set_error_handler_off();
    bench_init(&b);
    for (double s = 1024; s <= 0x1p24; s *= 2)
        for (uint32_t n = 2; n <= 8; n *= 2)
            for (int rank = 0; rank <= 100; rank++) {
                struct bench_row row = {
                    .coll = FIT_ALL_REDUCE,
                    .nodes = n,
                    .gpus = 8,
                    .bytes = (uint64_t)s,
                    .us = 10 * (1 + rank * 1e-5 * n * 8 * log(s)),
                    .by_rank = true,
                };
                bench_add(&b, &row, &err);
            }
    bench_sort(&b);
    series_make(&b, &set);
    CHECK(!model_fit(&set, &fit, &err));
    stragglers_fit(&b, &set, &fit);
    CHECK(fit.families[0].straggler.known);
    CHECK_NEAR(fit.families[0].straggler.slope[1], 75e-5, 1e-6);
    const struct cost_nccl_query q = {.coll = FIT_ALL_REDUCE,
                                      .nodes = 4,
                                      .gpus_per_node = 8,
                                      .bytes = 65536,
                                      .model = FIT_MODEL_CURVES,
                                      .quantile = 0.75};
    struct cost_nccl_answer a;
    CHECK(!cost_nccl(&fit, &q, &a));
    CHECK_NEAR(a.us, 10 * (1 + 75e-5 * 32 * log(65536)), 1e-4);
    CHECK(!(a.flags & COST_NCCL_NO_QUANTILE));
    fit_fini(&fit);
    series_fini(&set);
    bench_fini(&b);
}

TEST(updates_follow_a_slower_cluster_and_do_not_run_away)
{
    struct fit_update u = {0};
    double hats[FIT_HATS], shift = 0;

    for (int i = 0; i < 5000; i++) {
        double bytes = pow(2, 8 + i % 24);

        cost_nccl_hats(bytes, hats);
        shift = 0;
        for (int j = 0; j < FIT_HATS; j++)
            shift += u.shift[j] * hats[j];
        update_step(&u, bytes, log(1.3) - shift);
    }
    for (int j = 0; j < FIT_HATS; j++) {
        CHECK_NEAR(u.shift[j], log(1.3), 0.01);
        CHECK(u.covariance[j][j] > 0 && u.covariance[j][j] < 0.05);
    }
    for (int i = 0; i < 1000; i++)
        update_step(&u, 1e6, i & 1 ? 1e300 : -1e300);
    for (int j = 0; j < FIT_HATS; j++)
        CHECK(fabs(u.shift[j]) <= 2);
}

TEST(refuses_numbers_out_of_range)
{
    static const char *const bad[] = {
        "{\"schema\":1,\"kind\":\"commfit\"}",
        "{\"schema\":2,\"kind\":\"commfit\",\"families\":[]}",
        "{\"schema\":1,\"kind\":\"commfit\",\"families\":[{\"collective\":"
        "\"all_reduce\",\"gpus_per_node\":8,\"model\":\"curves\",\"curves\":[{"
        "\"nodes\":2,\"bytes_min\":8,\"bytes_max\":9,\"knots\":[[8,1,1],"
        "[8,2,2]]}]}]}",
        "{\"schema\":1,\"kind\":\"commfit\",\"families\":[{\"collective\":"
        "\"all_reduce\",\"gpus_per_node\":8,\"model\":\"curves\",\"curves\":[{"
        "\"nodes\":2,\"bytes_min\":8,\"bytes_max\":9,\"knots\":[[8,-1,1]]}]}]}",
    };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct err err = {""};
        struct fit fit;

        CHECK(fit_load_text(bad[i], strlen(bad[i]), "x", &fit, &err) == -1);
        CHECK(err.text[0]);
    }
}
