/* SPDX-License-Identifier: Apache-2.0
 * memsim fit: measured operators to the cost models of a GPU. */
#include "memsim/cli/cmd.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file_write.h"
#include "common/base/xmalloc.h"
#include "common/catalogue/gpu.h"
#include "fits/cost_fit.h"
#include "fitting/fit_eval.h"
#include "fitting/fit_trace.h"
#include "fitting/run_ops.h"
#include "memsim/run/run.h"

struct values {
    const char *output;
    const char *gpu;
    const char *fit;
    uint32_t seed;
    bool eval;
    bool unseen;
    bool simulated;
};

static const struct option_row rows[] = {
    {"output", 'o', OPTION_STRING, "FILE", offsetof(struct values, output),
     .help = "write the fit as JSON"},
    {"gpu", 0, OPTION_STRING, "NAME", offsetof(struct values, gpu),
     .help = "GPU to fit (default: that of the first file); rows of\n"
             "other GPUs help if it has few rows of its own"},
    {"seed", 0, OPTION_COUNT, "N", offsetof(struct values, seed),
     .help = "seed of the trees' random draws (default 1)",
     .maximum = UINT32_MAX},
    {"eval", 0, OPTION_FLAG, NULL, offsetof(struct values, eval),
     .help = "fit nothing; print the errors of the GPU's fit on\n"
             "these times"},
    {"fit", 0, OPTION_STRING, "FILE", offsetof(struct values, fit),
     .help = "with --eval: use this fit instead of memsim's own"},
    {"unseen", 0, OPTION_FLAG, NULL, offsetof(struct values, unseen),
     .help = "with --eval: predict as if the GPU had no fit, from the\n"
             "fits of its neighbours"},
    {"simulated", 0, OPTION_FLAG, NULL, offsetof(struct values, simulated),
     .help = "take times that memsim made, too, to try a fit; it\n"
             "says so"},
    {0},
};

static const struct options options = {
    .command = "memsim fit",
    .operands = "OPS.csv...|TRACE.json[.gz]...|DIR...",
    .summary = "Fits the cost models of a GPU to measured times of operators. "
               "Prints their\nerrors on held-out shapes. Of traces of "
               "PyTorch's profiler, and of runs of\n`memsim run --real', it "
               "keeps the times of kernels and products that recur, and\nhow "
               "much the GPU's models are off for others. `memsim run --fit "
               "FILE' uses the\nfit.",
    .rows = rows,
    .wanted = "no table of measured operators and no trace given",
    .operands_min = 1,
};

/* The GPU to fit: as asked for, else the first file's. */
static int choose_gpu(const struct values *values, const struct ops *ops,
                      struct gpu *gpu, struct err *err)
{
    if (!values->gpu)
        return gpu_load(ops->sources[0].gpu_name, gpu, err);
    return gpu_load(values->gpu, gpu, err);
}

static int check_inputs(const struct values *values,
                        const struct operands *operands, struct err *err)
{
    for (int i = 0; i < operands->count; i++)
        if (file_write_check("-o", values->output, operands->values[i], err))
            return -1;
    return 0;
}

static int no_rows(const struct gpu *gpu, struct err *err)
{
    return err_set(err,
                   "%s: fewer than 4 times of any operator were measured "
                   "on it",
                   gpu->name);
}

static int eval_rows(const struct values *values, const struct ops *ops,
                     const struct gpu *gpu, struct err *err)
{
    struct cost_gpu limits;
    struct cost_image *image = values->unseen
                                   ? cost_fit_borrow(gpu, err)
                                   : cost_fit_load(gpu, values->fit, err);

    if (!image)
        return -1;
    cost_gpu_set(gpu, &limits);
    image->table_slots = 0; /* a measured shape proves no model */
    size_t count = fit_eval_print(ops, gpu->name, image, &limits, stdout);
    free(image);
    return count ? 0 : no_rows(gpu, err);
}

/* --- traces --------------------------------------------------------------- */

/* Is PATH a run's directory, or a trace of it? */
static bool is_run(const char *path)
{
    struct stat st;

    return run_is_trace(path) || (!stat(path, &st) && S_ISDIR(st.st_mode));
}

static int read_run(const char *path, struct trace_ops *ops, struct err *err)
{
    const struct run_trace *t = NULL;
    struct run run;
    int rc = run_open(&run, path, err);

    if (!rc && !run_next(&run, NULL))
        rc = err_set(err, "%s: no traces in it; give a directory of `memsim "
                          "run --real -o'",
                     path);
    while (!rc && (t = run_next(&run, t)))
        rc = run_ops_read(ops, t->path, err);
    run_close(&run);
    return rc;
}

static int read_traces(const struct operands *files, struct trace_ops *ops,
                       struct err *err)
{
    for (int i = 0; i < files->count; i++) {
        const char *path = files->values[i];
        if (!trace_ops_is_trace(path) && !is_run(path))
            return err_set(err, "%s: give traces or tables, not both", path);
        if (is_run(path) ? read_run(path, ops, err)
                         : trace_ops_read(ops, path, err))
            return -1;
    }
    return 0;
}

static int trace_gpu(const struct values *values, const struct trace_ops *ops,
                     struct gpu *gpu, struct err *err)
{
    if (!values->gpu && !*ops->gpu)
        return err_set(err, "the traces do not name their GPU; give --gpu "
                            "(`memsim gpus' lists them)");
    return gpu_load(values->gpu ? values->gpu : ops->gpu, gpu, err);
}

static void write_traces(const void *what, FILE *out)
{
    fit_trace_write(what, out);
}

static int fit_traces(const struct values *values, const struct trace_ops *ops,
                      const struct gpu *gpu, struct err *err)
{
    struct cost_image *image = cost_fit_load(gpu, NULL, err);
    struct cost_gpu limits;
    struct fit_trace fit;

    if (!image)
        return -1;
    cost_gpu_set(gpu, &limits);
    fit_trace_run(&fit, ops, gpu->name, &limits, image);
    fit_trace_print(&fit, stdout);
    int rc = values->output
                 ? file_write(write_traces, &fit, values->output, err)
                 : 0;
    fit_trace_fini(&fit);
    free(image);
    return rc;
}

static int eval_traces(const struct values *values, const struct trace_ops *ops,
                       const struct gpu *gpu, struct err *err)
{
    struct cost_image *image = values->unseen
                                   ? cost_fit_borrow(gpu, err)
                                   : cost_fit_load(gpu, values->fit, err);
    struct cost_gpu limits;

    if (!image)
        return -1;
    cost_gpu_set(gpu, &limits);
    fit_trace_eval(ops, &limits, image, stdout);
    free(image);
    return 0;
}

static int run_traces(const struct values *values,
                      const struct operands *operands, struct err *err)
{
    struct trace_ops ops = {.takes_simulated = values->simulated};
    struct gpu gpu;

    int rc = read_traces(operands, &ops, err) ||
             trace_gpu(values, &ops, &gpu, err) ||
             (values->eval ? eval_traces(values, &ops, &gpu, err)
                           : fit_traces(values, &ops, &gpu, err));
    trace_ops_fini(&ops);
    return rc;
}

/* --- tables --------------------------------------------------------------- */

static int eval_tables(const struct values *values,
                       const struct operands *operands, struct err *err)
{
    struct ops ops = {.takes_simulated = values->simulated};
    struct gpu gpu;

    int rc = ops_read_all(operands->values, operands->count, &ops, err) ||
             choose_gpu(values, &ops, &gpu, err) ||
             eval_rows(values, &ops, &gpu, err);
    ops_free(&ops);
    return rc;
}

/* Where commfit lies beside this program: in the same directory, or in the
 * package of its own that pip puts beside memsim's. */
static const char *const places[] = {
    "commfit", "../../../memsim_commfit/prefix/bin/commfit"};

/* Becomes commfit: of PATH where it lies in none of the places. */
static void commfit_exec(char *const *words)
{
    char program[PATH_MAX], path[PATH_MAX + 64];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);

    program[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(program, '/');
    for (size_t i = 0; slash && i < sizeof places / sizeof *places; i++) {
        slash[1] = '\0';
        snprintf(path, sizeof path, "%s%s", program, places[i]);
        execv(path, words);
    }
    execvp("commfit", words);
}

/* Fits of tables are commfit's, which is linked with GSL. Returns where it
 * could not be started. */
static int fit_tables(const struct values *values,
                      const struct operands *operands, struct err *err)
{
    char **words = xcalloc((size_t)operands->count + 10, sizeof *words);
    char *seed = xasprintf("%u", values->seed);
    int count = 0;

    words[count++] = "commfit";
    words[count++] = "operators";
    words[count++] = "--seed";
    words[count++] = seed;
    if (values->gpu) {
        words[count++] = "--gpu";
        words[count++] = (char *)values->gpu;
    }
    if (values->simulated)
        words[count++] = "--simulated";
    if (values->output) {
        words[count++] = "-o";
        words[count++] = (char *)values->output;
    }
    for (int i = 0; i < operands->count; i++)
        words[count++] = (char *)operands->values[i];
    commfit_exec(words);
    err_set(err,
            "commfit: %m; a fit of tables needs it: install the package "
            "memsim-commfit");
    free(seed);
    free(words);
    return -1;
}

static int run_tables(const struct values *values,
                      const struct operands *operands, struct err *err)
{
    return values->eval ? eval_tables(values, operands, err)
                        : fit_tables(values, operands, err);
}

int cmd_fit(int argc, char **argv)
{
    struct values values = {.seed = 1};
    struct operands operands;
    struct err err = {""};
    int status = cmd_start(&options, argc, argv, &values, &operands, CMD_USAGE);

    if (status >= 0)
        return status;
    if (check_inputs(&values, &operands, &err) ||
        (trace_ops_is_trace(operands.values[0]) || is_run(operands.values[0])
             ? run_traces(&values, &operands, &err)
             : run_tables(&values, &operands, &err)))
        return cmd_fail(CMD_FAILED, &err);
    return CMD_OK;
}
