/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/study/run_study.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>

#include "common/base/xmalloc.h"
#include "memsim/advice/advice_gpus.h"
#include "memsim/advice/advice_run.h"
#include "memsim/advice/outlook.h"
#include "memsim/replay/recording.h"
#include "memsim/report/text/law_report.h"
#include "memsim/report/text/scan_read.h"
#include "memsim/report/text/seeds_report.h"
#include "memsim/result/result_host.h"
#include "memsim/study/job_time.h"
#include "memsim/study/kept_options.h"
#include "memsim/study/time_gate.h"

int study_price(const struct study_options *options, const struct run *run,
                struct result *result, struct err *err)
{
    struct traces_wanted wanted = {.cluster = options->cluster,
                                   .placement = options->placement};

    return study_quantile(options, &wanted.quantile, err) ||
                   traces_price(result, run, &wanted, err)
               ? -1
               : 0;
}

/* How long each rank's steps take, by the processes whose peaks it has. */
static int time_ranks(const struct study_options *options,
                      const struct rundir *dir, const struct traces *traces,
                      struct result *result, struct err *err)
{
    struct study_time time;
    struct study_members members = {.all = NULL};
    char path[PATH_MAX];

    if (!result->rank_count)
        return 0;
    if (study_time_init(&time, options, &result->gpu, err))
        return -1;
    for (struct result_walk w = {NULL}; result_walk_next(result, &w);) {
        uint32_t process = w.device->process;
        if (w.device > w.rank->devices && w.device[-1].process == process)
            continue;
        run_trace_path(dir->path, process, path, sizeof path);
        study_members_add(&members, w.rank, process, path,
                          traces_plan(traces, process));
    }
    int rc = study_time_job(&time, result, &members, err);
    study_members_fini(&members);
    study_time_fini(&time);
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

void study_result(struct result *result, const struct rundir *dir,
                  char *const *command)
{
    const struct traces_wanted peaks_alone = {.keep = SIMULATION_KEEP_WORK,
                                              .recorded_process = -1};
    struct study_options as_run = {0};
    struct kept_options kept;
    struct traces traces;
    struct err err = {""};

    result_init(result, dir->session, command);
    members_read(result, dir);
    traces_read(result, &traces, dir, &peaks_alone, &err);
    if (kept_options_recall(&kept, dir->path, false, &as_run, &err) ||
        study_options_check(&as_run, &err) ||
        time_ranks(&as_run, dir, &traces, result, &err))
        result_note(result, "its time is not known: %s", err.text);
    outlook_run(result, dir, &traces.recorded);
    kept_options_fini(&kept);
    traces_fini(&traces);
}

/* Unasked, only where a job did not fit. */
static void advise_run(struct result *result, const struct rundir *dir,
                       const struct recorded_list *recorded,
                       const struct study_sources *from, bool asked)
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
static const struct result_device *fullest_device(const struct result *result)
{
    const struct result_device *found = NULL;

    for (struct result_walk w = {NULL}; result_walk_next(result, &w);)
        if (!found || w.device->headroom_bytes < found->headroom_bytes)
            found = w.device;
    return found;
}

int study_snapshot(const struct run_study *s, const char *to, struct err *err)
{
    const struct recording_options as_recorded = {0};
    const struct result_device *device = fullest_device(&s->result);
    struct recording recording;
    char path[PATH_MAX];

    if (!device)
        return err_set(err, "--snapshot: no GPU was used: there is nothing to "
                            "write");
    run_trace_path(s->dir->path, device->process, path, sizeof path);
    if (recorded_open(&recording, &s->traces.recorded, device->process, path,
                      &as_recorded, err))
        return -1;
    int rc = recording_write_snapshot(&recording, recording.info.alloc_conf, to,
                                      err);
    recording_close(&recording);
    return rc;
}

/* What the traces are read for. */
static struct traces_wanted traces_want(const struct run_question *q,
                                        const struct result *result)
{
    const struct study_options *o = q->options;
    const struct result_device *device = fullest_device(result);
    struct err checked = {""};
    double quantile;

    study_quantile(o, &quantile, &checked);
    return (struct traces_wanted){
        .cluster = o->cluster,
        .quantile = quantile,
        .placement = o->placement,
        .events = q->events,
        .keep = o->kineto ? SIMULATION_KEEP_ALL : SIMULATION_KEEP_WORK,
        .recorded = (o->advice && !q->sources->unlimited) ||
                    result->verdict == VERDICT_OOM,
        .recorded_most = ADVICE_RANGE_BYTES,
        .recorded_process =
            q->snapshot && device ? (int64_t)device->process : -1,
        .progress = q->progress,
    };
}

/* Does anything ask for more than the session says? Whether ranks wait for each
 * other for ever, their traces say. */
static bool wants_traces(const struct run_question *q,
                         const struct result *result)
{
    const struct study_options *o = q->options;

    return q->traces || result->rank_count > 1 || o->fail_slower ||
           o->check_collectives || o->depends || o->steps || o->input_max ||
           o->worst_batch || o->seeds || o->step_mark ||
           result->fail_above_percent != 0;
}

int study_run_ask(struct run_study *s, const struct run_question *q,
                  struct err *err)
{
    const struct study_options *o = q->options;
    struct result *result = &s->result;
    const struct traces_wanted wanted = traces_want(q, result);
    int rc = -1;

    if (!wants_traces(q, result))
        return 0;
    if (!traces_read(result, &s->traces, s->dir, &wanted, err) &&
        !time_ranks(o, s->dir, &s->traces, result, err) &&
        !study_gate(o, result, err))
        rc = 0;
    result->job_steps = o->steps;
    result->whole_job = o->whole_job;
    result->step_mark = o->step_mark;
    (void)law_wanted_parse(o->input_max, &result->wanted, err);
    result->seeds = o->seeds;
    scan_read(result, s->dir->path);
    if (o->worst_batch)
        scan_want(result);
    outlook_run(result, s->dir, &s->traces.recorded);
    law_judge(result);
    seeds_judge(result);
    advise_run(result, s->dir, &s->traces.recorded, q->sources, o->advice);
    return rc;
}

void study_run_open(struct run_study *s, const struct rundir *dir,
                    char *const *command)
{
    *s = (struct run_study){.dir = dir};
    result_init(&s->result, dir->session, command);
    members_read(&s->result, dir);
    s->invocation = invocation_read(&s->result, dir->path);
    if (!dir->temporary)
        s->result.directory = dir->path;
    result_note_unpriced(&s->result);
}

void study_run_close(struct run_study *s)
{
    traces_fini(&s->traces);
    result_fini(&s->result);
    free(s->invocation);
}
