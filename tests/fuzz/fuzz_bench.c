/* SPDX-License-Identifier: Apache-2.0
 * libFuzzer on everything that commfit and --cluster read: logs, CSVs, JSON,
 * fits. What is taken must be fitted without a NaN, what is refused must say
 * why. */
#include "commfit/bench.h"
#include "commfit/model.h"
#include "commfit/score.h"
#include "commfit/series.h"
#include "fits/cluster.h"
#include "common/base/err.h"
#include "fits/fit_read.h"
#include "runtime/nccl/cost_nccl.h"

#include <gsl/gsl_errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define POINTS_MAX 400 /* fits of more take too long for a fuzzer */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(int condition)
{
    if (!condition)
        abort();
}

/* Every answer must be a time. */
static void check_answers(const struct fit *fit)
{
    static const double sizes[] = {1, 1000, 1e6, 1e9, 1e12};

    for (int i = 0; i < FIT_COLL_COUNT * 5 * 5 * FIT_MODEL_COUNT; i++) {
        struct cost_nccl_answer answer;
        const struct cost_nccl_query query = {
            .coll = (enum fit_coll)(i % FIT_COLL_COUNT),
            .bytes = sizes[i / FIT_COLL_COUNT % 5],
            .nodes = 1u << (i / FIT_COLL_COUNT / 5 % 5),
            .gpus_per_node = 1 + 7 * (i & 1),
            .model = (enum fit_model)(i / FIT_COLL_COUNT / 25),
            .quantile = i & 2 ? 0.95 : 0,
            .users = i & 4 ? 8 : 0,
            .algo = (enum cost_algo)(i % COST_ALGO_COUNT),
        };

        if (!cost_nccl(fit, &query, &answer))
            demand(isfinite(answer.us) && answer.us >= 0 &&
                   isfinite(answer.high_us) && answer.low_us >= 0);
    }
}

static void fit_bench(struct bench *b)
{
    struct err err = {""};
    struct series_set set;
    struct fit fit;

    bench_sort(b);
    series_make(b, &set);
    series_clean(&set, NULL);
    if (set.count && !model_fit(&set, &fit, &err)) {
        stragglers_fit(b, &set, &fit);
        demand(!fit_check(&fit, "fuzz", &err) || err.text[0]);
        if (!err.text[0])
            check_answers(&fit);
        fit_fini(&fit);
    }
    series_fini(&set);
}

static void read_bench(const uint8_t *data, size_t size)
{
    struct err err = {""};
    struct bench b;
    char path[64];
    int fd = memfd_create("bench", 0);

    demand(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    bench_init(&b);
    if (bench_read(&b, path, &err))
        demand(err.text[0]);
    else if (b.point_count < POINTS_MAX)
        fit_bench(&b);
    bench_fini(&b);
    close(fd);
}

static void read_cluster(const uint8_t *data, size_t size)
{
    struct err err = {""};
    struct cluster cluster;

    if (cluster_load_text((const char *)data, size, "fuzz", &cluster, &err)) {
        demand(err.text[0]);
        return;
    }
    check_answers(&cluster.fit);
    cluster_fini(&cluster);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gsl_set_error_handler_off();
    if (size && data[0] == '{') {
        char *text = malloc(size + 1); /* JSON comes terminated */

        demand(text != NULL);
        memcpy(text, data, size);
        text[size] = '\0';
        read_cluster((const uint8_t *)text, size);
        free(text);
    }
    read_bench(data, size);
    return 0;
}
