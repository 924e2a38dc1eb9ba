/* SPDX-License-Identifier: Apache-2.0
 * libFuzzer on the readers of clusters, fits of collectives and fits of
 * operators: what is taken must answer any question with a finite time, what is
 * refused must say why. */
#include <math.h>
#include <stdlib.h>

#include "common/base/err.h"
#include "fits/cluster.h"
#include "runtime/cost/cost_nccl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(int condition)
{
    if (!condition)
        abort();
}

static void ask(const struct fit *fit)
{
    static const uint32_t nodes[] = {1, 2, 3, 64, 100000};
    struct cost_nccl_answer answer;

    for (unsigned i = 0; i < 5 * 4 * 3; i++) {
        const struct cost_nccl_query query = {
            .coll = i % 3 ? FIT_ALL_REDUCE : FIT_ALL_GATHER,
            .nodes = nodes[i % 5],
            .gpus_per_node = 1u << (i % 4),
            .bytes = ldexp(1, (int)(i * 7 % 40)),
            .quantile = i % 2 ? 0.9 : 0};
        if (!cost_nccl(fit, &query, &answer))
            demand(isfinite(answer.us) && answer.us >= 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cluster cluster;
    struct err err = {""};

    if (cluster_load_text((const char *)data, size, "fuzz", &cluster, &err)) {
        demand(err.text[0] != '\0');
        return 0;
    }
    ask(&cluster.fit);
    cluster_fini(&cluster);
    return 0;
}
