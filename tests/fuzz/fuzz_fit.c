/* SPDX-License-Identifier: Apache-2.0
 * libFuzzer on the readers of fits: of collectives (commfit's) and of operators
 * (memsim fit's). The first byte chooses. */
#include <math.h>
#include <stdlib.h>

#include "common/base/err.h"
#include "fits/cost_build.h"
#include "fits/fit_read.h"
#include "runtime/nccl/cost_nccl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(int condition)
{
    if (!condition)
        abort();
}

static void try_collectives(const char *json, size_t size)
{
    struct fit fit;
    struct err err = {""};
    struct cost_nccl_answer answer;
    struct cost_nccl_query query = {.nodes = 2, .gpus_per_node = 8};

    if (fit_load_text(json, size, "fuzz", &fit, &err)) {
        demand(err.text[0] != '\0');
        return;
    }
    for (query.bytes = 1; query.bytes < 1e12; query.bytes *= 33)
        if (!cost_nccl(&fit, &query, &answer))
            demand(isfinite(answer.us) && answer.us >= 0);
    fit_fini(&fit);
}

static void try_operators(const char *json, size_t size)
{
    struct cost_build build = {0};
    struct err err = {""};

    if (cost_read(json, size, "fuzz", NULL, &build, &err))
        demand(err.text[0] != '\0');
    else
        free(cost_build_image(&build, "fuzz", &err));
    cost_build_fini(&build);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    if (data[0] == 'o')
        try_operators((const char *)data + 1, size - 1);
    else
        try_collectives((const char *)data + 1, size - 1);
    return 0;
}
