/* SPDX-License-Identifier: Apache-2.0 */
#include "commfit/operators.h"

#include "common/base/file_write.h"
#include "common/catalogue/gpu.h"
#include "opfit/fit_ops.h"

#define AT(member) offsetof(struct operators_settings, member)

static const struct option_row rows[] = {
    {"output", 'o', OPTION_STRING, "FILE", AT(output),
     .help = "write the fit as JSON"},
    {"gpu", 0, OPTION_STRING, "NAME", AT(gpu),
     .help = "GPU to fit (default: that of the first file); rows of\n"
             "other GPUs help if it has few rows of its own"},
    {"seed", 0, OPTION_COUNT, "N", AT(seed),
     .help = "seed of the trees' random draws (default 1)",
     .maximum = UINT32_MAX},
    {"simulated", 0, OPTION_FLAG, NULL, AT(simulated),
     .help = "take times that memsim made, too, to try a fit; it\n"
             "says so"},
    {0},
};

const struct options operators_options = {
    .command = "commfit operators",
    .operands = "OPS.csv...",
    .summary = "Fits the cost models of a GPU to measured times of operators. "
               "Prints their\nerrors on held-out shapes. `memsim fit' does it.",
    .rows = rows,
    .wanted = "no table of measured operators given",
    .operands_min = 1,
};

/* The GPU to fit: as asked for, else the first file's. */
static int choose_gpu(const char *name, const struct ops *ops, struct gpu *gpu,
                      struct err *err)
{
    return gpu_load(name ? name : ops->sources[0].gpu_name, gpu, err);
}

static void write_fit(const void *what, FILE *out)
{
    fit_ops_write(what, out);
}

static int no_rows(const struct gpu *gpu, struct err *err)
{
    return err_set(err,
                   "%s: fewer than 4 times of any operator were measured "
                   "on it",
                   gpu->name);
}

static int fit_rows(const struct operators_settings *settings,
                    const struct ops *ops, const struct gpu *gpu, FILE *out,
                    struct err *err)
{
    struct cost_gpu limits;
    struct fit_ops fit;
    int rc = 0;

    cost_gpu_set(gpu, &limits);
    fit_ops_run(ops, gpu->name, &limits, settings->seed, &fit);
    if (!fit.count)
        rc = no_rows(gpu, err);
    else
        fit_ops_print(&fit, out);
    if (!rc && settings->output)
        rc = file_write(write_fit, &fit, settings->output, err);
    fit_ops_free(&fit);
    return rc;
}

int operators_run(const struct operators_settings *settings,
                  const struct operands *files, FILE *out, struct err *err)
{
    struct ops ops = {.takes_simulated = settings->simulated};
    struct gpu gpu;

    for (int i = 0; i < files->count; i++)
        if (file_write_check("-o", settings->output, files->values[i], err))
            return -1;
    int rc = ops_read_all(files->values, files->count, &ops, err) ||
             choose_gpu(settings->gpu, &ops, &gpu, err) ||
             fit_rows(settings, &ops, &gpu, out, err);
    ops_free(&ops);
    return rc ? -1 : 0;
}
