/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/cli/output.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "common/base/share.h"
#include "common/base/xmalloc.h"
#include "memsim/advice/advice_gpus.h"
#include "memsim/advice/advice_run.h"
#include "memsim/advice/outlook.h"
#include "memsim/cli/cmd.h"
#include "memsim/cli/kept_options.h"
#include "memsim/cli/output_files.h"
#include "memsim/cli/output_time.h"
#include "memsim/replay/recording.h"
#include "memsim/report/flame.h"
#include "memsim/report/report_html.h"
#include "memsim/report/law_report.h"
#include "memsim/report/scan_read.h"
#include "memsim/report/seeds_report.h"
#include "memsim/run/job.h"
#include "memsim/report/result_host.h"
#include "fits/cluster_gpu.h"
#include "fits/machine.h"
#include "memsim/cli/traces.h"

enum color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

bool output_color(const struct output_options *options, FILE *out)
{
    const char *no_color = getenv("NO_COLOR"); /* no-color.org */

    if (options->color != COLOR_AUTO)
        return options->color == COLOR_ALWAYS;
    return isatty(fileno(out)) && !(no_color && *no_color);
}

int output_check_input(const struct output_options *options, const char *input,
                       struct err *err)
{
    struct output_target list[OUTPUT_TARGETS];
    size_t count = output_targets(options, list);

    return output_targets_any(options)
               ? output_targets_check_input(list, count, input, err)
               : 0;
}

static int check_cluster(const char *name, struct err *err)
{
    struct cluster cluster;

    if (cluster_load(name, &cluster, err))
        return -1;
    cluster_fini(&cluster);
    return 0;
}

int output_check(const struct output_options *options, struct err *err)
{
    if (options->cluster && check_cluster(options->cluster, err))
        return -1;
    struct result_wanted wanted;
    if (options->worst_batch && options->input_max)
        return err_set(err, "--input-max and --worst-batch both say what the "
                            "largest input is: give one of them");
    if (output_time_check(options, err) ||
        law_wanted_parse(options->input_max, &wanted, err))
        return -1;
    if (options->html && report_html_check(err))
        return -1;
    struct output_target list[OUTPUT_TARGETS];
    size_t count = output_targets(options, list);
    return output_targets_check(list, count, err) ||
                   output_check_input(options, options->cluster, err)
               ? -1
               : 0;
}

const char *output_cluster_gpu(const struct output_options *options,
                               const char *gpu)
{
    static char name[sizeof((struct gpu *)0)->name];
    struct cluster cluster;
    struct err ignored = {""};
    struct gpu found;

    if (!options->cluster ||
        cluster_load(options->cluster, &cluster, &ignored))
        return gpu;
    if (!machine_gpu(cluster.gpu, &found)) {
        snprintf(name, sizeof name, "%s", found.name);
        gpu = name;
    } else {
        cmd_note("--cluster %s: its GPU '%s' is not in the catalogue; --gpu "
                 "selects one",
                 options->cluster, cluster.gpu);
    }
    cluster_fini(&cluster);
    return gpu;
}

const char *output_cluster_assumed(const char *gpu, uint32_t local,
                                   struct cluster *cluster)
{
    static char name[PATH_MAX + 16];
    char path[PATH_MAX];
    struct err ignored = {""};

    if (share_is_path(gpu) && realpath(gpu, path))
        gpu = path;
    snprintf(name, sizeof name, "%s:%" PRIu32, gpu, local);
    return cluster_load(name, cluster, &ignored) ? NULL : name;
}

/* The number that the environment has as NAME; 0: none. */
static uint32_t environment_number(const char *name)
{
    const char *text = getenv(name);
    unsigned long number = text ? strtoul(text, NULL, 10) : 0;

    return number <= RUN_RANKS_MAX ? (uint32_t)number : 0;
}

const char *output_cluster_of_job(const struct job *job,
                                  struct cluster *cluster)
{
    const struct launch *l = &job->launch;
    uint32_t world = l->world, local = l->local;

    if (!world) {
        world = environment_number("WORLD_SIZE");
        local = environment_number("LOCAL_WORLD_SIZE");
    }
    if (!local || world <= local)
        return NULL;
    return output_cluster_assumed(share_is_path(job->options.gpu)
                                      ? job->options.gpu
                                      : job->gpu.name,
                                  local, cluster);
}

void output_cluster_follow(struct output_options *options, const char *gpu)
{
    char own[PATH_MAX];
    struct cluster cluster;
    uint32_t width;

    if (!options->cluster ||
        !cluster_gpu_parse(options->cluster, own, sizeof own, &width))
        return;
    const char *name = output_cluster_assumed(gpu, width, &cluster);
    if (!name)
        return;
    options->cluster = name;
    cluster_fini(&cluster);
}

FILE *output_summary_stream(const struct output_options *options)
{
    struct output_target list[OUTPUT_TARGETS];
    size_t count = output_targets(options, list);

    return output_targets_use_stdout(list, count) ? stderr : stdout;
}

int output_summary_check(FILE *out, struct err *err)
{
    errno = 0;
    if (!fflush(out) && !ferror(out))
        return 0;
    return err_set(err, "standard %s: cannot write it: %s",
                   out == stdout ? "output" : "error",
                   strerror(errno ? errno : EIO));
}

int output_price(const struct output_options *options, const struct run *run,
                 struct result *result, struct err *err)
{
    struct traces_wanted wanted = {.cluster = options->cluster,
                                   .placement = options->placement};

    return output_time_quantile(options, &wanted.quantile, err) ||
                   traces_price(result, run, &wanted, err)
               ? -1
               : 0;
}

/* How long each rank's steps take, by the processes whose peaks it has. */
static int time_ranks(const struct output_options *options,
                      const struct rundir *dir, const struct traces *traces,
                      struct result *result, struct err *err)
{
    struct output_time time;
    struct output_members members = {.all = NULL};
    char path[PATH_MAX];

    if (!result->rank_count)
        return 0;
    if (output_time_init(&time, options, &result->gpu, err))
        return -1;
    for (struct result_walk w = {NULL}; result_walk_next(result, &w);) {
        uint32_t process = w.device->process;
        if (w.device > w.rank->devices && w.device[-1].process == process)
            continue;
        run_trace_path(dir->path, process, path, sizeof path);
        output_members_add(&members, w.rank, process, path,
                           traces_plan(traces, process));
    }
    int rc = output_time_job(&time, result, &members, err);
    output_members_fini(&members);
    output_time_fini(&time);
    return rc;
}

/* memsim's own command line, for RESULT; the caller frees it. Without it there
 * is the command. */
static char **invocation_read(struct result *result, const char *directory)
{
    struct err err = {""};
    char **words;

    if (rundir_read_words(directory, RUN_INVOCATION, &words, &err))
        result_note(result, "memsim's own command line is not known: %s",
                    err.text);
    result->invocation = words;
    return words;
}

/* The ranks that each rank stood for, and what they take of the host. */
static void members_read(struct result *result, const struct rundir *dir)
{
    struct run_ranks classes;
    struct err err = {""};

    if (run_classes_read(&classes, dir->path, &err))
        result_note(result, "which ranks a rank stands for is not known: %s",
                    err.text);
    else
        result_ranks_expand(result, &classes);
    run_ranks_fini(&classes);
    result_hosts_fill(result, dir->session);
}

void output_result(struct result *result, const struct rundir *dir,
                   char *const *command)
{
    const struct traces_wanted peaks_alone = {
        .keep = SIMULATION_KEEP_WORK, .recorded_process = -1};
    struct output_options as_run = {0};
    struct kept_options kept;
    struct traces traces;
    struct err err = {""};

    result_init(result, dir->session, command);
    members_read(result, dir);
    traces_read(result, &traces, dir, &peaks_alone, &err);
    if (kept_options_recall(&kept, dir->path, false, &as_run, &err) ||
        output_time_check(&as_run, &err) ||
        time_ranks(&as_run, dir, &traces, result, &err))
        result_note(result, "its time is not known: %s", err.text);
    outlook_run(result, dir, &traces.recorded);
    kept_options_fini(&kept);
    traces_fini(&traces);
}

/* Unasked, only where a job did not fit. */
static void advise(struct result *result, const struct rundir *dir,
                   const struct recorded_list *recorded,
                   const struct output_sources *from, bool asked)
{
    advice_ranges(result, dir, recorded);
    if (!asked && result->verdict != VERDICT_OOM)
        return;
    if (asked)
        advice_run(result, dir, recorded, from->unlimited);
    if (asked && result->verdict == VERDICT_OOM)
        advice_gpus(result);
    if (result->verdict == VERDICT_OOM && !(asked && from->unlimited)) {
        advice_run_briefly(result, dir, recorded);
        result_note(result, "`memsim run --advice' runs it again on a GPU "
                            "without a limit, and shows on which GPUs it "
                            "fits, with which batch, and what would make it "
                            "fit here");
    }
    if (from->largest_batch)
        advice_batch(result, from->largest_batch, from->batch_command,
                     from->batch_option);
    else if (from->batch_command)
        result_note(result, "`%s' finds the largest batch that fits",
                    from->batch_command);
}

/* The GPU that came nearest to its end. */
static const struct result_device *fullest(const struct result *result)
{
    const struct result_device *found = NULL;

    for (struct result_walk w = {NULL}; result_walk_next(result, &w);)
        if (!found || w.device->headroom_bytes < found->headroom_bytes)
            found = w.device;
    return found;
}

/* A snapshot of the process that has it. */
static int write_snapshot(const char *to, const struct result *result,
                          const struct rundir *dir,
                          const struct recorded_list *recorded, struct err *err)
{
    const struct recording_options as_recorded = {0};
    const struct result_device *device = fullest(result);
    struct recording recording;
    char path[PATH_MAX];

    if (!device)
        return err_set(err, "--snapshot: no GPU was used: there is nothing to "
                            "write");
    run_trace_path(dir->path, device->process, path, sizeof path);
    if (recorded_open(&recording, recorded, device->process, path, &as_recorded,
                      err))
        return -1;
    int rc = recording_write_snapshot(&recording, recording.info.alloc_conf, to,
                                      err);
    recording_close(&recording);
    return rc;
}

/* What the traces are read for. */
static struct traces_wanted traces_want(const struct output_options *options,
                                        const struct output_sources *from,
                                        const struct result *result)
{
    const struct result_device *device = fullest(result);
    struct err checked = {""};
    double quantile;

    output_time_quantile(options, &quantile, &checked);
    return (struct traces_wanted){
        .cluster = options->cluster,
        .quantile = quantile,
        .placement = options->placement,
        .events = options->perfetto,
        .keep = options->kineto ? SIMULATION_KEEP_ALL : SIMULATION_KEEP_WORK,
        .recorded = (options->advice && !from->unlimited) ||
                    result->verdict == VERDICT_OOM,
        .recorded_most = ADVICE_RANGE_BYTES,
        .recorded_process =
            options->snapshot && device ? (int64_t)device->process : -1,
    };
}

/* What OPTIONS ask for beside the summary. */
static int write_files(const struct output_options *options,
                       const struct result *result, const struct rundir *dir,
                       const struct recorded_list *recorded, struct err *err)
{
    static const struct output_writers writers = {
        &report_json, &report_html, &report_perfetto, &report_flame};

    if (output_files(options, &writers, result, err))
        return -1;
    return options->snapshot
               ? write_snapshot(options->snapshot, result, dir, recorded, err)
               : 0;
}

/* Does anything ask for more than the session says? Whether ranks wait for each
 * other for ever, their traces say. */
static bool wants_traces(const struct output_options *o,
                         const struct result *result)
{
    return !o->quiet || result->rank_count > 1 || o->fail_slower ||
           o->check_collectives || o->depends || o->steps || o->input_max ||
           o->worst_batch || o->seeds ||
           o->step_mark ||
           output_targets_any(o);
}

/* Fills RESULT and TRACES with what OPTIONS ask for. Returns 0 or -1. */
static int gather(const struct output_options *options,
                  const struct output_sources *sources,
                  const struct rundir *dir, struct result *result,
                  struct traces *traces, struct err *err)
{
    const struct traces_wanted wanted = traces_want(options, sources, result);
    int rc = -1;

    if (!wants_traces(options, result))
        return 0;
    if (!traces_read(result, traces, dir, &wanted, err) &&
        !time_ranks(options, dir, traces, result, err) &&
        !output_time_gate(options, result, err))
        rc = 0;
    result->job_steps = options->steps;
    result->step_mark = options->step_mark;
    (void)law_wanted_parse(options->input_max, &result->wanted, err);
    result->seeds = options->seeds;
    scan_read(result, dir->path);
    if (options->worst_batch)
        scan_want(result);
    outlook_run(result, dir, &traces->recorded);
    law_judge(result);
    seeds_judge(result);
    advise(result, dir, &traces->recorded, sources, options->advice);
    return rc;
}

/* Of the terminal that OUT is; 0: it is none. */
static int output_columns(FILE *out)
{
    struct winsize size;

    return isatty(fileno(out)) && !ioctl(fileno(out), TIOCGWINSZ, &size)
               ? size.ws_col
               : 0;
}

static int write_summary(const struct output_options *options,
                         const struct result *result, FILE *out,
                         struct err *err)
{
    const struct report_style style = {.color = output_color(options, out),
                                       .timeline = options->timeline,
                                       .verbose = options->verbose,
                                       .columns = output_columns(out),
                                       .depth = options->depth,
                                       .top = options->top};

    if (options->quiet)
        return 0;
    report_summary.write(result, &style, out);
    return output_summary_check(out, err);
}

int output_run(const struct rundir *dir, const struct output_sources *sources,
               char *const *command, const struct output_options *options,
               FILE *out, bool *told)
{
    struct traces traces = {.plans = NULL};
    struct result result;
    struct err err = {""};
    char **invocation;

    result_init(&result, dir->session, command);
    members_read(&result, dir);
    invocation = invocation_read(&result, dir->path);
    if (!dir->temporary)
        result.directory = dir->path;
    result_note_unpriced(&result);
    *told = !gather(options, sources, dir, &result, &traces, &err);
    int status = *told ? result.exit_status : cmd_fail(CMD_RUN_FAILED, &err);
    if (write_summary(options, &result, out, &err) ||
        (*told &&
         (output_check_input(options, dir->path, &err) ||
          write_files(options, &result, dir, &traces.recorded, &err)))) {
        *told = false;
        status = cmd_fail(CMD_RUN_FAILED, &err);
    }
    traces_fini(&traces);
    result_fini(&result);
    free(invocation);
    return status;
}
