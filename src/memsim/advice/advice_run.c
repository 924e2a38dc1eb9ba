/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/advice/advice_run.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/units.h"
#include "common/base/xmalloc.h"
#include "memsim/advice/advice.h"
#include "memsim/advice/advice_edit.h"
#include "memsim/report/text/time_report.h"

#define BRIEF_BYTES (16 * MIB) /* of a trace: a second to replay */

/* Where advice comes from, and goes. */
struct advising {
    struct result *result;
    const struct rundir *dir; /* with the traces */
    const struct result *of;  /* that run's */
    const struct recorded_list *recorded;
    bool settings_only;
};

static void tell_rank(const struct advice *advice, const struct recording *rec,
                      struct result_rank *rank)
{
    for (unsigned i = 0; i < REPLAY_DEVICES; i++)
        for (size_t k = 0; rec->info.devices[i].used && k < rank->device_count;
             k++)
            if (rank->devices[k].card == rec->info.devices[i].card &&
                !rank->devices[k].advised)
                advice_tell(advice, i, &rank->devices[k]);
}

/* What the changes cost in time, where RANK's step is known. */
static void costs_add(struct result_rank *rank)
{
    const struct timing *t = rank->timing;

    for (size_t i = 0; t && i < rank->device_count; i++)
        for (size_t k = 0; k < rank->devices[i].advice_count; k++) {
            struct result_advice *a = &rank->devices[i].advice[k];
            if (!a->again || a->time_unknown)
                continue;
            a->costs_ns = time_forward_ns(t, a->again);
            a->step_ns = (double)(time_waits_for_cpu(t) ? t->keeps_up_ns
                                                        : timing_step_ns(t));
        }
}

static void tell_range(const struct recording *rec, struct result_rank *rank)
{
    struct reserved_range ranges[REPLAY_DEVICES] = {{0}};
    struct err err = {""};

    if (reserved_range_find(rec, ranges, &err))
        return;
    for (unsigned i = 0; i < REPLAY_DEVICES; i++)
        for (size_t k = 0; k < rank->device_count; k++)
            if (ranges[i].most_bytes &&
                rank->devices[k].card == rec->info.devices[i].card)
                rank->devices[k].reserved_range = ranges[i];
}

static void note_quality(struct result *result, const struct recording *rec)
{
    if (!rec->plan.exact)
        result_note(result,
                    "take the advice as an estimate, the replay departs from "
                    "the recording: %s",
                    rec->plan.difference);
}

static int advise_rank(struct result *result, struct result_rank *rank,
                       struct recording *rec,
                       const struct advice_options *options, struct err *err)
{
    struct advice advice;

    if (advice_make(&advice, rec, options, err))
        return -1;
    tell_rank(&advice, rec, rank);
    costs_add(rank);
    note_quality(result, rec);
    advice_fini(&advice);
    return 0;
}

void advice_recording(struct result *result, struct result_rank *rank,
                      struct recording *rec, const char *name)
{
    char gpu[48];
    const struct advice_options options = {
        .name = name,
        .gpu = gpu,
        .memory_bytes = rec->whatif.config.total_bytes};
    struct err err = {""};

    snprintf(gpu, sizeof gpu, " --memory %" PRIu64,
             rec->whatif.config.total_bytes);
    if (advise_rank(result, rank, rec, &options, &err))
        result_note(result, "no advice: %s", err.text);
}

/* Options of replay that name the GPU of RESULT. */
static void gpu_words(const struct result *result, char *text, size_t size)
{
    const struct gpu *gpu = &result->gpu;
    struct gpu found;
    struct err ignored = {""};

    if (gpu_load(gpu->name, &found, &ignored))
        snprintf(text, size, " --memory %" PRIu64, gpu->memory_bytes);
    else if (found.memory_bytes == gpu->memory_bytes)
        snprintf(text, size, " --gpu %s", gpu->name);
    else
        snprintf(text, size, " --gpu %s --memory %" PRIu64, gpu->name,
                 gpu->memory_bytes);
}

/* The size of the file PATH; UINT64_MAX: there is none. */
static uint64_t file_bytes(const char *path)
{
    struct stat st;

    return stat(path, &st) ? UINT64_MAX : (uint64_t)st.st_size;
}

/* DIR as one would type it here. */
static const char *short_name(const struct rundir *dir)
{
    char here[PATH_MAX];
    size_t length;

    if (dir->temporary)
        return "DIR";
    if (!getcwd(here, sizeof here))
        return dir->path;
    length = strlen(here);
    if (!strncmp(dir->path, here, length) && dir->path[length] == '/')
        return dir->path + length + 1;
    return dir->path;
}

/* Asks the trace of process NUMBER. */
static void ask_process(const struct advising *a, uint32_t number,
                        struct result_rank *rank)
{
    char gpu[96];
    struct advice_options options = {
        .name = short_name(a->dir),
        .gpu = gpu,
        .memory_bytes = a->result->gpu.memory_bytes,
        .settings_only = a->settings_only,
    };
    struct recording_options as_it_is = {
        .addresses = (enum vaspace_model)a->dir->session->address_model};
    struct recording rec;
    struct err err = {""};
    char path[PATH_MAX];

    gpu_words(a->result, gpu, sizeof gpu);
    run_trace_path(a->dir->path, number, path, sizeof path);
    if (a->settings_only && file_bytes(path) > BRIEF_BYTES)
        return;
    struct recorded *known = recorded_find(a->recorded, number);
    if (known) {
        options.notes = known->notes;
        known->notes = NULL;
    }
    if (!recorded_open(&rec, a->recorded, number, path, &as_it_is, &err)) {
        if (!recording_is_used(&rec))
            err_set(&err, "%s: it contains no GPU", path);
        else
            advise_rank(a->result, rank, &rec, &options, &err);
        recording_close(&rec);
    }
    tape_notes_destroy(options.notes);
    if (err.text[0] && !a->settings_only)
        result_note(a->result, "no advice: %s", err.text);
}

/* The process of the other run that is RANK's on GPU INDEX. */
static int64_t process_find(const struct result *of, unsigned rank,
                            unsigned index)
{
    const struct result_device *found = result_device_find(of, rank, index);

    return found ? (int64_t)found->process : -1;
}

static void ask_ranks(const struct advising *a)
{
    for (struct result_walk w = {NULL}; result_walk_next(a->result, &w);) {
        int64_t process = process_find(a->of, w.rank->rank, w.device->index);

        if (process >= 0 && !w.device->advised)
            ask_process(a, (uint32_t)process, w.rank);
    }
}

void advice_ranges(struct result *result, const struct rundir *dir,
                   const struct recorded_list *recorded)
{
    const struct recording_options as_it_is = {
        .addresses = (enum vaspace_model)dir->session->address_model};
    struct err err = {""};

    for (struct result_walk w = {NULL}; result_walk_next(result, &w);) {
        const struct recorded *known =
            recorded_find(recorded, w.device->process);
        struct recording rec;

        if (!known || w.device->reserved_range.most_bytes ||
            recorded_open(&rec, recorded, w.device->process, known->path,
                          &as_it_is, &err))
            continue;
        if (recording_is_used(&rec) && rec.plan.exact)
            tell_range(&rec, w.rank);
        recording_close(&rec);
    }
}

void advice_run(struct result *result, const struct rundir *dir,
                const struct recorded_list *recorded,
                const struct rundir *unlimited)
{
    struct advising a = {.result = result,
                         .dir = dir,
                         .of = result,
                         .recorded = unlimited ? NULL : recorded};
    struct result other;

    if (!unlimited) {
        ask_ranks(&a);
        return;
    }
    result_init(&other, unlimited->session, result->command);
    if (other.verdict == VERDICT_OOM)
        result_note(result, "it ran out of memory on a GPU without a limit, "
                            "too: the advice is on what came before");
    a.dir = unlimited;
    a.of = &other;
    ask_ranks(&a);
    result_fini(&other);
}

void advice_run_briefly(struct result *result, const struct rundir *dir,
                        const struct recorded_list *recorded)
{
    const struct advising a = {.result = result,
                               .dir = dir,
                               .of = result,
                               .recorded = recorded,
                               .settings_only = true};

    ask_ranks(&a);
}

static cJSON *batch_edits(const char *option, uint64_t batch)
{
    cJSON *edits = cJSON_CreateArray();
    char value[24];

    snprintf(value, sizeof value, "%" PRIu64, batch);
    advice_edit_option(edits, option, value);
    return edits;
}

static void batch_tell(struct result_device *d, uint64_t largest,
                       const char *command, const char *option)
{
    d->advice =
        xreallocarray(d->advice, d->advice_count + 1, sizeof *d->advice);
    d->advice[d->advice_count++] = (struct result_advice){
        .what = xasprintf("largest batch that fits: %" PRIu64, largest),
        .command = xstrdup(command),
        .basis = xstrdup("runs of the same command with other batches"),
        .edits = batch_edits(option, largest),
        .fits = true,
    };
    d->advised = true;
}

void advice_batch(struct result *result, uint64_t largest, const char *command,
                  const char *option)
{
    for (struct result_walk w = {NULL}; result_walk_next(result, &w);)
        batch_tell(w.device, largest, command, option);
}
