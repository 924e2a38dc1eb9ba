/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/study/replay_study.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/xmalloc.h"
#include "memsim/advice/advice_gpus.h"
#include "memsim/advice/advice_run.h"
#include "memsim/study/replay_changed.h"
#include "memsim/study/replay_replicas.h"
#include "memsim/study/replay_stages.h"
#include "memsim/study/run_study.h"
#include "memsim/study/study_time.h"

/* Options that say more about a change that is not asked for. */
static int check_change(const struct replay_question *q,
                        const struct job_change *change, struct err *err)
{
    bool stages = change && change->kind == CHANGE_STAGES;

    if (q->second && (!change || stages))
        return err_set(err,
                       "--second is for --change with hidden, seq or batch");
    if ((q->microbatches || q->schedule || q->node_ranks) && !stages)
        return err_set(err, "--microbatches, --schedule and --nproc-per-node "
                            "are for --change stages=P");
    if (q->average && !q->memory.data_parallel)
        return err_set(err, "--average names the group that --dp widens; give "
                            "--dp N as well");
    if (q->shards && !q->memory.data_parallel)
        return err_set(err, "--fsdp shards a profile's parameters over the "
                            "ranks of --dp; give --dp N as well");
    if (q->shards && change)
        return err_set(err, "--fsdp is for --dp alone, without --change of the "
                            "recording");
    return 0;
}

int study_replay_check(const struct replay_question *q,
                       struct job_changes *changes, struct err *err)
{
    const char *text = q->memory.options->change;

    *changes = (struct job_changes){.count = 0};
    if (text && job_changes_parse(text, changes, err))
        return -1;
    return check_change(q, job_changes_recording(changes), err);
}

bool study_replay_is_times(const struct run *run,
                           const struct job_change *change)
{
    const char *path = run->traces[0].path;

    return run_is_trace(path) && (change || replay_is_profile(path));
}

struct replay_profile study_replay_profile(const struct replay_question *q,
                                           const struct run *run)
{
    bool imported = replay_is_profile(run->traces[0].path);

    return (struct replay_profile){
        .run = run,
        .gpu = imported && !q->gpu_asked ? NULL : q->gpu,
        .models = q->models,
        .without_profiler = q->without_profiler,
        .data_parallel = q->memory.data_parallel,
        .average = q->average,
        .shards = q->shards,
        .options = q->memory.options,
        .command = q->command,
        .invocation = q->invocation,
        .why = imported ? NULL
                        : "the memory of a changed job needs a run of the "
                          "changed script (`memsim run')"};
}

int study_replay_times(const struct replay_question *q,
                       const struct replay_profile *p,
                       const struct job_change *change, struct replayed *r,
                       struct err *err)
{
    const struct replay_stages stages = {change ? change->name : NULL,
                                         q->schedule, q->microbatches,
                                         q->node_ranks};

    if (!p->why && q->memory.data_parallel && !change)
        return replay_replicas(p, r, err);
    if (change && change->kind == CHANGE_STAGES)
        return replay_stages(p, &stages, r, err);
    return change ? replay_changed(p, change, q->second, r, err)
                  : replay_profile(p, r, err);
}

/* --- memory --------------------------------------------------------------- */

/* Traces have collectives; snapshots have not. */
static int price_traffic(const struct study_options *o, struct replay_report *r,
                         const struct run *run, struct err *err)
{
    if (o->cluster && !run_is_trace(run->traces[0].path))
        return err_set(err,
                       "%s: a snapshot has no collectives to price; "
                       "--cluster takes a trace",
                       run->traces[0].path);
    return study_price(o, run, &r->result, err);
}

/* The ranks are those of the recordings that are used, in order. */
static void advise_replay(struct replay_report *r, struct recording *recordings)
{
    size_t rank = 0;

    for (size_t i = 0; i < r->count; i++)
        if (recordings[i].whatif.row_count)
            advice_recording(&r->result, &r->result.ranks[rank++],
                             &recordings[i], recordings[i].path);
    if (r->result.verdict == VERDICT_OOM)
        advice_gpus(&r->result);
}

/* Where the whole job can be asked. */
static void note_whole(struct result *result, const char *path)
{
    const char *slash = strrchr(path, '/');
    int length = slash && run_is_trace(path) ? (int)(slash - path) : 0;
    char *whole = xasprintf("%.*s" ADVICE_UNLIMITED_END, length, path);

    if (result->verdict != VERDICT_UNKNOWN)
        length = -1;
    if (length > 0 && !access(whole, R_OK))
        result_note(result,
                    "%s is the same job on a GPU without a limit: `memsim "
                    "replay %s' shows whether it fits",
                    whole, whole);
    else if (length >= 0)
        result_note(result,
                    "run the job on a GPU that it fits on: `memsim run "
                    "--advice -o DIR -- COMMAND' records the whole job in "
                    "DIR" ADVICE_UNLIMITED_END);
    free(whole);
}

/* A cluster's GPU takes the place of the recorded one, where none is asked for:
 * of one that a file describes that may be a surprise. */
static void note_gpu(struct result *result, const struct replay_question *q,
                     const char *path, const struct gpu *gpu)
{
    struct err ignored = {""};
    struct gpu recorded;

    if (q->gpu && !q->gpu_asked && run_is_trace(path) &&
        !study_gpu(path, &recorded, &ignored) &&
        strcmp(recorded.name, gpu->name))
        result_note(result,
                    "the GPU is the cluster's, %s; the run's was %s (--gpu "
                    "keeps it)",
                    gpu->name, recorded.name);
}

int study_replay_memory(const struct replay_question *q, const struct run *run,
                        struct replay_memory *m, struct err *err)
{
    const struct study_options *o = q->memory.options;
    struct gpu gpu;

    if (q->shards)
        return err_set(err, "--fsdp is for imported profiles: `memsim run' of "
                            "the sharded script needs no GPU");
    if ((q->gpu && gpu_load(q->gpu, &gpu, err)) ||
        replay_memory_open(m, &q->memory, run, q->gpu ? &gpu : NULL, q->command,
                           err))
        return -1;
    if (q->memory.sweep)
        replay_report_sweep(&m->report);
    m->report.result.invocation = q->invocation;
    note_whole(&m->report.result, run->traces[0].path);
    note_gpu(&m->report.result, q, run->traces[0].path, &gpu);
    replay_memory_outlook(m);
    if (o->advice)
        advise_replay(&m->report, m->recordings);
    if (!price_traffic(o, &m->report, run, err) && !replay_memory_time(m, err))
        return 0;
    replay_memory_close(m);
    return -1;
}
