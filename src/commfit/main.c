/* SPDX-License-Identifier: Apache-2.0
 * commfit: fits a cluster to the output of nccl-tests. */
#include "commfit/fit_report.h"
#include "commfit/operators.h"
#include "commfit/plan.h"
#include "commfit/plot.h"
#include "commfit/predict_cmd.h"
#include "commfit/update.h"
#include "common/base/json_text.h"
#include "common/base/options.h"
#include "common/base/standard.h"
#include "common/base/temporary.h"
#include "common/base/text_clean.h"
#include "common/base/version.h"
#include "common/base/file_write.h"
#include "fits/cluster.h"
#include "fits/fit_read.h"
#include "runtime/nccl/cost_nccl.h"

#include <cjson/cJSON.h>
#include <gsl/gsl_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { OK = 0, FAILED = 1, USAGE = 2 };

struct settings {
    const char *output, *name, *plot, *eval, *json, *update, *from, *quantile;
    uint32_t node_gpus;
    bool bench, version, verbose, simulated;
};

#define AT(member) offsetof(struct settings, member)

static const struct option_row rows[] = {
    {"output", 'o', OPTION_STRING, "FIT.json", AT(output),
     .help = "write the fit as JSON; - is stdout", .once = true},
    {"name", 0, OPTION_STRING, "NAME", AT(name),
     .help = "name of the cluster in the fit (default: that of FIT)"},
    {"plot", 0, OPTION_STRING, "FILE.svg|FILE.png", AT(plot),
     .help = "plot bandwidth, time and residuals", .once = true},
    {"eval", 0, OPTION_STRING, "BENCH", AT(eval),
     .help = "print the errors of the fit on this file; the last\n"
             "line is `median 2.1% p95 9.8% n 44'"},
    {"json", 0, OPTION_STRING, "FILE", AT(json),
     .help = "write the errors as JSON; - is stdout", .once = true},
    {"update", 0, OPTION_STRING, "FIT.json", AT(update),
     .help = "update this fit with the measurements of --from"},
    {"from", 0, OPTION_STRING, "FILE", AT(from),
     .help = "measurements for --update: a CSV, a log or a trace of\n"
             "PyTorch's profiler"},
    {"bench", 0, OPTION_FLAG, NULL, AT(bench),
     .help = "print the nccl-tests commands to run on a new cluster"},
    {"quantile", 0, OPTION_STRING, "Q", AT(quantile),
     .help = "with --eval: compare with this quantile of the ranks'\n"
             "times, 0.5 to 0.99, if the fit has them"},
    {"gpus-per-node", 0, OPTION_COUNT, "N", AT(node_gpus),
     .help = "GPUs of a node, for files that do not say (default: 8)",
     .minimum = 1,
     .maximum = 1024},
    {"simulated", 0, OPTION_FLAG, NULL, AT(simulated),
     .help = "take times that memsim made, too, to try a fit; it\n"
             "says so"},
    {"verbose", 'v', OPTION_FLAG, NULL, AT(verbose),
     .help = "print curves, levels, the errors of every model, outliers"},
    {"version", 0, OPTION_FLAG, NULL, AT(version),
     .help = "print the version and exit"},
    {0},
};

static const struct options options = {
    .command = "commfit",
    .operands = "BENCH... | FIT.json",
    .summary = "Fits the collectives of a cluster to the output of nccl-tests "
               "(text, JSON) or\nto CSV files. Prints how far the fit can "
               "be trusted.",
    .rows = rows,
};

static int commfit_fail(const struct err *err)
{
    fprintf(stderr, "commfit: %s\n", err->text);
    return FAILED;
}

static int fail_usage(const char *text)
{
    fprintf(stderr, "commfit: %s\nTry `commfit --help'.\n", text);
    return USAGE;
}

/* Everything a run of commfit holds. */
struct job {
    struct settings settings;
    struct bench bench;
    struct series_set set;
    struct scores scores;
    struct outliers outliers;
    struct fit fit;
    FILE *out; /* NULL where standard output carries a document */
};

static bool is_stdout(const char *path)
{
    return path && !strcmp(path, "-");
}

static void job_init(struct job *job, const struct settings *settings)
{
    *job = (struct job){.settings = *settings};
    bench_init(&job->bench);
    job->bench.takes_simulated = settings->simulated;
    if (settings->node_gpus)
        job->bench.node_gpus = settings->node_gpus;
    if (!is_stdout(settings->output) && !is_stdout(settings->json) &&
        !is_stdout(settings->plot))
        job->out = stdout;
}

static void job_fini(struct job *job)
{
    free(job->scores.rows);
    free(job->outliers.items);
    fit_fini(&job->fit);
    series_fini(&job->set);
    bench_fini(&job->bench);
}

/* The fit's own name: of --name, else of the file it goes to, without .json. */
static void name_fit(struct job *job)
{
    const char *path = job->settings.output;
    const char *base = path ? strrchr(path, '/') : NULL;
    char *name = job->fit.name;
    size_t size = sizeof job->fit.name;

    if (job->settings.name)
        snprintf(name, size, "%s", job->settings.name);
    else if (path && !is_stdout(path))
        snprintf(name, size, "%s", base ? base + 1 : path);
    else
        snprintf(name, size, "cluster");
    text_make_printable(name);
    size_t length = strlen(name);
    if (length > 5 && !strcmp(name + length - 5, ".json"))
        name[length - 5] = '\0';
    snprintf(job->fit.gpu, sizeof job->fit.gpu, "%s", job->bench.gpu);
}

static int read_benches(struct bench *b, char **paths, int count,
                        struct err *err)
{
    for (int i = 0; i < count; i++)
        if (bench_read(b, paths[i], err))
            return -1;
    bench_sort(b);
    return 0;
}

static int fit_benches(struct job *job, const struct operands *operands,
                       struct err *err)
{
    if (read_benches(&job->bench, operands->values, operands->count, err))
        return -1;
    series_make(&job->bench, &job->set);
    if (!job->set.count)
        return err_set(err,
                       "%s: one size alone makes no curve; give at least two "
                       "sizes of a collective on the same nodes",
                       operands->values[0]);
    score_held_out(&job->set, &job->scores);
    series_clean(&job->set, &job->outliers);
    if (model_fit(&job->set, &job->fit, err))
        return -1;
    stragglers_fit(&job->bench, &job->set, &job->fit);
    score_store(&job->scores, &job->fit);
    name_fit(job);
    return fit_check(&job->fit, job->fit.name, err);
}

static struct fit_story story_of(const struct job *job)
{
    return (struct fit_story){&job->bench, &job->set, &job->scores,
                              &job->outliers};
}

static int write_fit(const struct job *job, struct err *err)
{
    struct fit_story story = story_of(job);
    cJSON *root = fit_to_json(&job->fit, &story);
    int rc = json_write(root, job->settings.output, err);

    cJSON_Delete(root);
    return rc;
}

static int write_errors(const struct job *job, const struct scores *scores,
                        struct err *err)
{
    cJSON *root = scores_to_json(scores);
    if (job->settings.eval)
        cJSON_AddItemToObject(root, "predictions", eval_to_json(scores));
    int rc = json_write(root, job->settings.json, err);

    cJSON_Delete(root);
    return rc;
}

static int read_quantile(const char *text, double *q, struct err *err)
{
    char *end;

    *q = 0;
    if (!text)
        return 0;
    *q = strtod(text, &end);
    if (end == text || *end || !(*q >= 0.5 && *q <= 0.99))
        return err_set(err, "--quantile %s: not from 0.5 to 0.99", text);
    return 0;
}

static int evaluate_job(struct job *job, struct err *err)
{
    struct bench other;
    struct scores scores;
    double quantile;
    int rc = -1;

    bench_init(&other);
    other.node_gpus = job->bench.node_gpus;
    other.takes_simulated = job->bench.takes_simulated;
    if (read_quantile(job->settings.quantile, &quantile, err) ||
        read_benches(&other, (char **)&job->settings.eval, 1, err))
        goto fini_bench;
    score_eval(&other, &job->fit, quantile, &scores);
    if (job->out) {
        fit_report_bench(&other, job->out);
        fit_report_eval(&scores, job->out);
    }
    rc = job->settings.json ? write_errors(job, &scores, err) : 0;
    if (!rc && !fit_report_line(&scores, job->out ? job->out : stderr))
        rc = err_set(err,
                     "%s: the fit predicts none of its rows: other "
                     "collectives or node counts",
                     job->settings.eval);
    free(scores.rows);
fini_bench:
    bench_fini(&other);
    return rc;
}

/* What is wanted of a fit, new or old. */
static int use_fit(struct job *job, struct err *err)
{
    const struct settings *s = &job->settings;

    if (s->output && write_fit(job, err))
        return -1;
    if (s->plot && plot_write(&job->fit, &job->set, &job->scores, s->plot, err))
        return -1;
    if (s->eval)
        return evaluate_job(job, err);
    return s->json ? write_errors(job, &job->scores, err) : 0;
}

/* A JSON file that calls itself a fit; nccl-tests writes JSON too. A pipe is
 * none, and what is read of it would be gone. */
static bool is_fit(const char *path)
{
    char head[256] = "";
    struct stat status;
    bool regular = !stat(path, &status) && S_ISREG(status.st_mode);
    FILE *file = regular ? fopen(path, "re") : NULL;

    if (!file)
        return false;
    size_t length = fread(head, 1, sizeof head - 1, file);
    head[length] = '\0';
    fclose(file);
    return head[0] == '{' && strstr(head, "\"commfit\"");
}

/* --eval or --plot of a fit that was made before. */
static int run_old_fit(struct job *job, const char *path)
{
    const struct settings *s = &job->settings;
    struct err err = {""};

    if (s->output)
        return fail_usage("-o needs benchmarks, not a fit");
    if (!s->eval && !s->plot)
        return fail_usage("a fit alone: give --eval or --plot, or `commfit "
                          "report FIT.json'");
    if (fit_load(path, &job->fit, &err))
        return commfit_fail(&err);
    if (s->plot) {
        series_of_fit(&job->fit, &job->set);
        if (plot_write(&job->fit, &job->set, &job->scores, s->plot, &err))
            return commfit_fail(&err);
    }
    return s->eval && evaluate_job(job, &err) ? commfit_fail(&err) : OK;
}

static int run_fit(struct job *job, const struct operands *operands)
{
    struct err err = {""};

    if (fit_benches(job, operands, &err)) {
        if (job->bench.drop_count)
            fit_report_bench(&job->bench, stderr);
        return commfit_fail(&err);
    }
    if (job->out) {
        struct fit_story story = story_of(job);

        fit_report_all(&job->fit, &story, job->settings.verbose, job->out);
        fit_report_bench(&job->bench, job->out);
        if (!job->settings.output)
            fprintf(job->out, "the fit is not kept: -o FIT.json writes it\n");
    }
    return use_fit(job, &err) ? commfit_fail(&err) : OK;
}

static int run_update(const struct settings *s)
{
    struct err err = {""};

    if (update_file(s->update, s->from, s->output ? s->output : s->update,
                    stdout, &err))
        return commfit_fail(&err);
    return OK;
}

static int check_input(const struct settings *s, const char *input,
                       struct err *err)
{
    return file_write_check("-o", s->output, input, err) ||
                   file_write_check("--json", s->json, input, err) ||
                   file_write_check("--plot", s->plot, input, err)
               ? -1
               : 0;
}

/* Refuses an output that is also an input; --update's own fit may be both. */
static int check_inputs(const struct settings *s,
                        const struct operands *operands, struct err *err)
{
    for (int i = 0; i < operands->count; i++)
        if (check_input(s, operands->values[i], err))
            return -1;
    return check_input(s, s->eval, err) || check_input(s, s->from, err) ? -1
                                                                        : 0;
}

static bool asks_beside_bench(const struct settings *s,
                              const struct operands *operands)
{
    return operands->count || s->output || s->plot || s->json || s->eval ||
           s->update || s->from;
}

/* Refuses what would have no effect or cannot be. */
static int check_usage(const struct settings *s,
                       const struct operands *operands, struct err *err)
{
    double quantile;

    if (s->bench && asks_beside_bench(s, operands))
        return err_set(err, "--bench only prints commands; it takes no file "
                            "and no other option");
    if (read_quantile(s->quantile, &quantile, err))
        return -1;
    if (s->quantile && !s->eval)
        return err_set(err, "--quantile has no effect without --eval");
    if (check_inputs(s, operands, err))
        return -1;
    if (!s->update != !s->from)
        return err_set(err, "--update FIT.json and --from FILE go together");
    if (s->update && s->simulated)
        return err_set(err, "--update takes measurements alone, so it does not "
                            "go with --simulated");
    if (!s->bench && !s->update && !operands->count)
        return err_set(err, "no benchmark given");
    return s->plot ? plot_check(s->plot, err) : 0;
}

static int commfit_run(const struct settings *s,
                       const struct operands *operands)
{
    struct err err = {""};
    struct job job;
    int status;

    if (check_usage(s, operands, &err))
        return fail_usage(err.text);
    if (s->bench) {
        plan_print(stdout);
        return OK;
    }
    if (s->update)
        return run_update(s);
    job_init(&job, s);
    if (operands->count == 1 && is_fit(operands->values[0]))
        status = run_old_fit(&job, operands->values[0]);
    else
        status = run_fit(&job, operands);
    job_fini(&job);
    return status;
}

struct report_settings {
    const char *plot;
    bool verbose;
};

static const struct option_row report_rows[] = {
    {"verbose", 'v', OPTION_FLAG, NULL,
     offsetof(struct report_settings, verbose),
     .help = "print curves and link levels, too"},
    {"plot", 0, OPTION_STRING, "FILE.svg|FILE.png",
     offsetof(struct report_settings, plot), .help = "plot bandwidth and time"},
    {0},
};

static const struct options report_options = {
    .command = "commfit report",
    .operands = "FIT.json|CLUSTER",
    .summary = "Prints what a fit says: the bandwidth of each collective, and "
               "where it can be\ntrusted.",
    .rows = report_rows,
    .wanted = "a fit or a cluster",
    .operands_min = 1,
    .operands_max = 1,
};

static int run_report(const struct report_settings *s, const char *name)
{
    struct scores none = {0};
    struct err err = {""};
    struct cluster cluster;
    struct series_set set;
    int rc = 0;

    if (s->plot && plot_check(s->plot, &err))
        return fail_usage(err.text);
    if (cluster_load(name, &cluster, &err))
        return commfit_fail(&err);
    if (!s->plot || strcmp(s->plot, "-") != 0)
        fit_report_all(&cluster.fit, NULL, s->verbose, stdout);
    series_of_fit(&cluster.fit, &set);
    if (s->plot)
        rc = plot_write(&cluster.fit, &set, &none, s->plot, &err);
    series_fini(&set);
    cluster_fini(&cluster);
    return rc ? commfit_fail(&err) : OK;
}

static int start_report(int argc, char **argv)
{
    struct report_settings settings = {0};
    struct operands operands;
    struct err err = {""};

    switch (options_parse(&report_options, argc, argv, &settings, &operands,
                          &err)) {
    case OPTIONS_HELP:
        options_help(&report_options, stdout);
        return OK;
    case OPTIONS_ERROR:
        return fail_usage(err.text);
    case OPTIONS_OK:
        break;
    }
    return run_report(&settings, operands.values[0]);
}

static int start_predict(int argc, char **argv)
{
    struct predict_settings settings = {0};
    struct operands operands;
    struct err err = {""};

    switch (options_parse(&predict_options, argc, argv, &settings, &operands,
                          &err)) {
    case OPTIONS_HELP:
        options_help(&predict_options, stdout);
        return OK;
    case OPTIONS_ERROR:
        return fail_usage(err.text);
    case OPTIONS_OK:
        break;
    }
    switch (predict_run(&settings, &operands, stdout, &err)) {
    case 0:
        return OK;
    case -2:
        return fail_usage(err.text);
    default:
        return commfit_fail(&err);
    }
}

static int start_operators(int argc, char **argv)
{
    struct operators_settings settings = {.seed = 1};
    struct operands operands;
    struct err err = {""};

    switch (options_parse(&operators_options, argc, argv, &settings, &operands,
                          &err)) {
    case OPTIONS_HELP:
        options_help(&operators_options, stdout);
        return OK;
    case OPTIONS_ERROR:
        return fail_usage(err.text);
    case OPTIONS_OK:
        break;
    }
    return operators_run(&settings, &operands, stdout, &err)
               ? commfit_fail(&err)
               : OK;
}

static int commfit_start(int argc, char **argv)
{
    struct settings settings = {0};
    struct operands operands;
    struct err err = {""};

    if (argc > 1 && !strcmp(argv[1], "predict"))
        return start_predict(argc - 1, argv + 1);
    if (argc > 1 && !strcmp(argv[1], "report"))
        return start_report(argc - 1, argv + 1);
    if (argc > 1 && !strcmp(argv[1], "operators"))
        return start_operators(argc - 1, argv + 1);
    switch (options_parse(&options, argc, argv, &settings, &operands, &err)) {
    case OPTIONS_HELP:
        options_help(&options, stdout);
        return OK;
    case OPTIONS_ERROR:
        return fail_usage(err.text);
    case OPTIONS_OK:
        break;
    }
    if (settings.version) {
        printf("commfit %s\n", version_text());
        return OK;
    }
    return commfit_run(&settings, &operands);
}

int main(int argc, char **argv)
{
    struct err err = {""};

    standard_hold();
    temporary_handle_signals();
    gsl_set_error_handler_off();
    int status = commfit_start(argc, argv);
    if (!standard_finish(&err) || status == FAILED)
        return status;
    return commfit_fail(&err);
}
