/* SPDX-License-Identifier: Apache-2.0
 * The collectives: their names, and what nccl-tests' bus bandwidth makes of
 * them. */
#include "runtime/nccl/fit.h"

#include <ctype.h>
#include <string.h>

static double factor_one(double ranks)
{
    (void)ranks;
    return 1;
}

static double factor_ring(double ranks)
{
    return (ranks - 1) / ranks;
}

static double factor_two_rings(double ranks)
{
    return 2 * (ranks - 1) / ranks;
}

/* nccl-tests src/NAME.cu, NAMEGetBw */
static const struct row {
    const char *name;
    const char *squeezed; /* letters only: "AllReduce", "all-reduce" */
    double (*factor)(double ranks);
} rows[FIT_COLL_COUNT] = {
    [FIT_ALL_REDUCE] = {"all_reduce", "allreduce", factor_two_rings},
    [FIT_ALL_GATHER] = {"all_gather", "allgather", factor_ring},
    [FIT_REDUCE_SCATTER] = {"reduce_scatter", "reducescatter", factor_ring},
    [FIT_BROADCAST] = {"broadcast", "broadcast", factor_one},
    [FIT_REDUCE] = {"reduce", "reduce", factor_one},
    [FIT_ALLTOALL] = {"alltoall", "alltoall", factor_ring},
    [FIT_SENDRECV] = {"sendrecv", "sendrecv", factor_one},
    [FIT_GATHER] = {"gather", "gather", factor_ring},
    [FIT_SCATTER] = {"scatter", "scatter", factor_ring},
};

static const char *const model_names[FIT_MODEL_COUNT] = {
    [FIT_MODEL_DEFAULT] = "default",       [FIT_MODEL_CURVES] = "curves",
    [FIT_MODEL_FORMULA] = "formula",       [FIT_MODEL_PUBLISHED] = "published",
    [FIT_MODEL_REGRESSION] = "regression",
};

const char *fit_coll_name(enum fit_coll coll)
{
    return rows[coll].name;
}

int fit_coll_find(const char *name, enum fit_coll *coll)
{
    char squeezed[32];
    size_t n = 0;

    for (; *name && n + 1 < sizeof squeezed; name++)
        if (isalpha((unsigned char)*name))
            squeezed[n++] = (char)tolower((unsigned char)*name);
    squeezed[n] = '\0';
    if (n > 4 && !strcmp(squeezed + n - 4, "perf"))
        squeezed[n - 4] = '\0';
    for (int i = 0; i < FIT_COLL_COUNT; i++)
        if (!strcmp(squeezed, rows[i].squeezed)) {
            *coll = (enum fit_coll)i;
            return 0;
        }
    return -1;
}

#define CALL "nccl"

/* Is FUNCTION the call NAME, or a kernel of it, as profiles have them:
 * "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "ncclKernel_AllReduce_..."? */
static bool is_call(const char *function, const char *name)
{
    const char *of = name + sizeof CALL - 1;
    const char *kernel = strstr(function, "Kernel_");

    if (!strcmp(function, name))
        return true;
    return kernel && !strncmp(function, CALL, sizeof CALL - 1) &&
           !strncmp(kernel + sizeof "Kernel_" - 1, of, strlen(of));
}

int fit_coll_of_call(const char *function, enum fit_coll *coll)
{
    static const struct {
        const char *name;
        enum fit_coll coll;
    } calls[] = {
        {"ncclAllReduce", FIT_ALL_REDUCE},
        {"ncclAllGather", FIT_ALL_GATHER},
        {"ncclReduceScatter", FIT_REDUCE_SCATTER},
        {"ncclBroadcast", FIT_BROADCAST},
        {"ncclBcast", FIT_BROADCAST},
        {"ncclReduce", FIT_REDUCE},
        {"ncclAlltoAll", FIT_ALLTOALL},
        {"ncclGather", FIT_GATHER},
        {"ncclScatter", FIT_SCATTER},
        {"ncclSend", FIT_SENDRECV},
        {"ncclRecv", FIT_SENDRECV},
        {"ncclPutSignal", FIT_SENDRECV},
    };

    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (is_call(function, calls[i].name)) {
            *coll = calls[i].coll;
            return 0;
        }
    return -1;
}

double fit_coll_factor(enum fit_coll coll, double ranks)
{
    return rows[coll].factor(ranks);
}

const char *fit_model_name(enum fit_model model)
{
    return model_names[model];
}
