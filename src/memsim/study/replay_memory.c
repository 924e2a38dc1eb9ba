/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/study/replay_memory.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/text_begins.h"
#include "common/base/units.h"
#include "common/base/xmalloc.h"
#include "memsim/advice/outlook.h"
#include "memsim/study/job_time.h"
#include "memsim/report/text/growth_report.h"
#include "memsim/report/text/law_report.h"
#include "memsim/report/text/scan_read.h"
#include "memsim/result/replay_owners.h"
#include "memsim/result/result_host.h"
#include "memsim/run/ranks.h"
#include "memsim/run/rundir.h"

/* "memory=16GiB..80GiB" */
static int sweep_parse(const char *text, uint64_t *least, uint64_t *most,
                       struct err *err)
{
    const char *dots = strstr(text, "..");
    char first[64];

    if (!text_begins(text, "memory=") || !dots || dots - text - 7 > 63)
        return err_set(err,
                       "--sweep: '%s' is not of the form "
                       "memory=16GiB..80GiB",
                       text);
    snprintf(first, sizeof first, "%.*s", (int)(dots - text - 7), text + 7);
    if (units_parse_bytes(first, least) || units_parse_bytes(dots + 2, most) ||
        *least > *most || !*most)
        return err_set(err, "--sweep: '%s': not a range of sizes", text + 7);
    return 0;
}

/* Is there enough in the cache at the peak for other settings to matter? */
static bool is_wasteful(const struct whatif *w)
{
    const struct replay_result *r = &w->rows[0].result;
    const struct replay_device *d = &r->devices[w->device];

    return !r->fits || d->peak_reserved_bytes - d->peak_allocated_bytes >
                           d->peak_reserved_bytes / 10;
}

/* What the job needs at least, where more than that is not known. */
static int ask_least(struct recording *rec, struct err *err)
{
    struct whatif *w = &rec->whatif;

    if (whatif_outcome(w, &w->rows[0].result) != WHATIF_UNKNOWN)
        return 0;
    return whatif_least(w, recording_capacity(rec), err);
}

static int ask_question(struct recording *rec, const struct memory_question *q,
                        struct err *err)
{
    struct whatif *w = &rec->whatif;
    uint64_t least, most;

    for (size_t i = 0; i < q->conf_count; i++)
        if (whatif_add(w, q->confs[i], false, err))
            return -1;
    if (!q->conf_count && whatif_add(w, rec->info.alloc_conf, false, err))
        return -1;
    if (q->settings_alone)
        return 0; /* a row for each GPU, of these settings */
    if (!q->conf_count && is_wasteful(w) && whatif_advise(w, err))
        return -1;
    if (ask_least(rec, err))
        return -1;
    if (!q->sweep)
        return 0;
    if (sweep_parse(q->sweep, &least, &most, err))
        return -1;
    return whatif_sweep(w, w->rows[0].conf, least, most, err);
}

/* Times the ranks, which are those of the recordings that are used, in order.
 * Snapshots have no work. */
static int time_all(struct replay_memory *m, struct err *err)
{
    const struct memory_question *q = m->question;
    struct result *result = &m->report.result;
    struct study_members members = {.all = NULL};
    struct study_time time;
    struct gpu recorded;
    size_t rank = 0;

    if (!m->count || !run_is_trace(m->recordings[0].path))
        return 0;
    if (!m->has_gpu && study_gpu(m->recordings[0].path, &recorded, err)) {
        result_note(result, "its time is not known: %s", err->text);
        err->text[0] = '\0';
        return 0;
    }
    if (study_time_init(&time, q->options, m->has_gpu ? &m->gpu : &recorded,
                        err))
        return -1;
    time.timeline.data_parallel = q->data_parallel;
    time.changes_memory = q->what_if != NULL;
    for (size_t i = 0; i < m->count; i++)
        if (m->recordings[i].whatif.row_count)
            study_members_add(&members, &result->ranks[rank++], (uint32_t)i,
                              m->recordings[i].path, NULL);
    int rc = study_time_job(&time, result, &members, err);
    study_members_fini(&members);
    study_time_fini(&time);
    return rc;
}

/* Takes what was in memory. */
static void owners_take(struct replay_memory *m)
{
    const struct memory_question *q = m->question;
    struct result *result = &m->report.result;
    struct err err = {""};
    size_t rank = 0;

    if (q->what_if || q->torch || q->conf_count)
        return;
    for (size_t i = 0; i < m->count; i++) {
        if (!m->recordings[i].whatif.row_count)
            continue;
        if (replay_owners_take(&result->ranks[rank++], &m->recordings[i], &err))
            result_note(result, "what was in memory is not known: %s",
                        err.text);
    }
}

static bool result_grows(const struct result *result)
{
    return growth_first(result) || result_host_grows(result);
}

/* What the run of M's recordings read of its data set. */
static void data_find(struct replay_memory *m)
{
    char *directory = rundir_of(m->recordings[0].path);

    scan_read(&m->report.result, directory);
    scan_want(&m->report.result);
    free(directory);
}

bool replay_memory_outlook(struct replay_memory *m)
{
    const struct memory_question *q = m->question;
    struct result *result = &m->report.result;
    size_t rank = 0;

    owners_take(m);
    result->job_steps = q->options->steps;
    result->whole_job = q->options->whole_job;
    struct err ignored = {""}; /* output_check() has looked */
    (void)law_wanted_parse(q->options->input_max, &result->wanted, &ignored);
    if (q->options->worst_batch && m->count)
        data_find(m);
    for (size_t i = 0; i < m->count; i++)
        if (m->recordings[i].whatif.row_count)
            outlook_replay(result, &result->ranks[rank++], &m->recordings[i]);
    outlook_judge(result);
    law_judge(result);
    return !result_grows(result);
}

int replay_memory_time(struct replay_memory *m, struct err *err)
{
    if (time_all(m, err))
        return -1;
    for (size_t i = 0; m->question->what_if && i < m->count; i++)
        if (m->recordings[i].whatif.row_count) {
            replay_what_if_time(&m->report.result, &m->changed[i]);
            break;
        }
    return 0;
}

static int open_one(struct replay_memory *m, size_t i, char *path,
                    const struct recording_options *ro, struct err *err)
{
    const struct memory_question *q = m->question;
    struct recording *rec = &m->recordings[i];

    if (recording_open(rec, path, ro, err))
        return -1;
    if (!recording_is_used(rec))
        return 0;
    if (q->what_if && changed_apply(&m->changed[i], rec, q->what_if, err))
        return -1;
    return ask_question(rec, q, err);
}

static void close_recordings(struct replay_memory *m)
{
    for (size_t i = 0; i < m->count; i++) {
        recording_close(&m->recordings[i]);
        changed_fini(&m->changed[i]);
    }
    free(m->recordings);
    free(m->changed);
}

/* Opens the run directory of the trace PATH; the caller closes it. */
static bool open_run(struct rundir *dir, const char *path)
{
    char *directory = rundir_of(path);
    struct err ignored = {""};
    bool open = run_is_trace(path) && !rundir_open(dir, directory, &ignored);

    free(directory);
    return open;
}

/* What a replay needs to know of the GPU of the trace PATH: what it draws. */
static struct gpu recorded_gpu(const char *path)
{
    struct gpu gpu = {.name = "recorded", .device_name = "as recorded"};
    struct rundir dir;

    if (open_run(&dir, path)) {
        gpu.power_watts = dir.session->gpu.power_watts;
        gpu.idle_watts = dir.session->gpu.idle_watts;
        rundir_close(&dir);
    }
    return gpu;
}

static int find_gpu(struct replay_memory *m, const struct gpu *gpu,
                    const char *path, struct err *err)
{
    m->gpu = recorded_gpu(path);
    m->has_gpu = gpu || !run_is_trace(path);
    if (!gpu)
        return m->has_gpu ? gpu_load(REPLAY_GPU, &m->gpu, err) : 0;
    m->gpu = *gpu;
    return 0;
}

struct capability_set replay_memory_code(const char *path)
{
    struct capability_set code = {{0}};
    struct rundir dir;

    if (open_run(&dir, path)) {
        code = result_code(dir.session);
        rundir_close(&dir);
    }
    return code;
}

/* The ranks that each rank of RUN stood for. */
static void members_take(struct result *result, const struct run *run)
{
    struct run_ranks classes;
    struct err err = {""};

    if (!run->directory)
        return;
    if (run_classes_read(&classes, run->directory, &err))
        result_note(result, "which ranks a rank stands for is not known: %s",
                    err.text);
    else
        result_ranks_expand(result, &classes);
    run_ranks_fini(&classes);
}

int replay_memory_open(struct replay_memory *m, const struct memory_question *q,
                       const struct run *run, const struct gpu *gpu,
                       char **command, struct err *err)
{
    const char *first = run->traces[0].path;

    *m = (struct replay_memory){.question = q, .count = run->count};
    if (find_gpu(m, gpu, first, err))
        return -1;
    const struct recording_options ro = {
        .torch = q->torch,
        .gpu = m->has_gpu ? &m->gpu : NULL,
        .memory_bytes = q->memory_bytes,
        .modelled = q->addresses > 0,
        .addresses = q->addresses == 2 ? VASPACE_ASCENDING : VASPACE_CHUNKS};
    m->recordings = xcalloc(m->count, sizeof *m->recordings);
    m->changed = xcalloc(m->count, sizeof *m->changed);
    for (size_t i = 0; i < m->count; i++)
        if (open_one(m, i, run->traces[i].path, &ro, err)) {
            close_recordings(m);
            return -1;
        }
    replay_report_init(&m->report, m->recordings, m->count, &m->gpu,
                       q->fail_above_percent, command);
    m->report.result.code = replay_memory_code(first);
    members_take(&m->report.result, run);
    return 0;
}

void replay_memory_close(struct replay_memory *m)
{
    replay_report_fini(&m->report);
    close_recordings(m);
}
