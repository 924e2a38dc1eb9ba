/* SPDX-License-Identifier: Apache-2.0
 * What it costs to price a collective:
 *     make build/bench/commfit_eval && build/bench/commfit_eval fits/NAME.json
 * prints nanoseconds of processor time a call, over all sizes, node counts and
 * collectives of the fit, measured ones and others. */
#include "common/base/err.h"
#include "fits/fit_read.h"
#include "runtime/nccl/fit.h"
#include "runtime/nccl/cost_nccl.h"

#include <stdio.h>
#include <time.h>

#define CALLS 4000000u

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static double time_model(const struct fit *fit, enum fit_model model)
{
    double sum = 0, start = now_ns();

    for (uint32_t i = 0; i < CALLS; i++) {
        const struct cost_nccl_query query = {
            .coll = (enum fit_coll)(i % FIT_COLL_COUNT),
            .nodes = 1 + i % 12,
            .gpus_per_node = 8,
            .bytes = 1000.0 * (1 + i % 1000003),
            .in_place = i & 1,
            .model = model,
        };
        struct cost_nccl_answer answer;

        if (!cost_nccl(fit, &query, &answer))
            sum += answer.us;
    }
    double ns = (now_ns() - start) / CALLS;
    return sum > 0 ? ns : -1; /* so that nothing is optimised away */
}

int main(int argc, char **argv)
{
    struct err err = {""};
    struct fit fit;

    if (argc != 2) {
        fprintf(stderr, "usage: commfit_eval FIT.json\n");
        return 2;
    }
    if (fit_load(argv[1], &fit, &err)) {
        fprintf(stderr, "commfit_eval: %s\n", err.text);
        return 1;
    }
    for (int model = 1; model < FIT_MODEL_COUNT; model++)
        printf("%-12s %6.1f ns a call\n", fit_model_name((enum fit_model)model),
               time_model(&fit, (enum fit_model)model));
    fit_fini(&fit);
    return 0;
}
