/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/study/replay_profile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/simulated.h"
#include "common/base/status.h"
#include "common/base/xmalloc.h"
#include "common/trace/trace_read.h"
#include "fits/cost_fit.h"
#include "memsim/study/job_time.h"
#include "memsim/import/profile_write.h"
#include "memsim/report/text/time_report.h"
#include "memsim/run/ranks.h"

#define DEFAULT_GPU "h100-sxm-80gb"
#define UNMODELLED  0.1 /* a larger share of the time makes it unknown */
#define GPU_NAME_BYTES 64

/* Does a SETTING at the head of the trace PATH say so? */
static bool head_says(const char *path,
                      bool (*says)(const struct trace_item *item))
{
    struct trace_reader reader;
    struct trace_item item;
    struct err err = {""};
    bool found = false;

    if (trace_reader_open(&reader, path, &err))
        return false;
    while (!found && trace_reader_next(&reader, &item, &err) > 0 &&
           (item.head.kind == TRACE_PROCESS || item.head.kind == TRACE_SETTING))
        found = says(&item);
    trace_reader_close(&reader);
    return found;
}

static bool says_imported(const struct trace_item *item)
{
    return trace_says_imported(item);
}

static bool says_simulated(const struct trace_item *item)
{
    static const char setting[] = PROFILE_SIMULATED;

    return trace_says_imported(item) &&
           item->head.text_bytes == sizeof setting - 1 &&
           !memcmp(item->text, setting, sizeof setting - 1);
}

bool replay_is_profile(const char *path)
{
    return head_says(path, says_imported);
}

bool replay_is_simulated(const char *path)
{
    return head_says(path, says_simulated);
}

static bool is_simulated(const struct replay_profile *p)
{
    for (size_t i = 0; i < p->run->count; i++)
        if (replay_is_simulated(p->run->traces[i].path))
            return true;
    return false;
}

/* Does P get prices in place of what was measured? That of a GPU that the
 * catalogue does not know cannot be scaled to another one. */
static bool uses_models(const struct replay_profile *p)
{
    struct gpu ignored;
    struct err err = {""};

    return p->models ||
           (p->gpu && study_gpu(p->run->traces[0].path, &ignored, &err));
}

/* Were all ranks of P measured on one sort of GPU? Times are scaled, and
 * priced, as those of the first. */
static int check_gpus(const struct replay_profile *p, struct result *result,
                      struct err *err)
{
    char first[GPU_NAME_BYTES], other[GPU_NAME_BYTES];
    const struct run_trace *traces = p->run->traces;
    struct err ignored = {""}; /* a GPU that is not named */

    study_gpu_name(traces[0].path, first, sizeof first, &ignored);
    for (size_t i = 1; i < p->run->count; i++) {
        study_gpu_name(traces[i].path, other, sizeof other, &ignored);
        if (!strcmp(first, other))
            continue;
        if (p->gpu || p->models)
            return err_set(err,
                           "%s: the profile is of several GPUs, %s and %s: "
                           "import the ranks of one of them",
                           p->gpu ? "--gpu" : "--models", first, other);
        result_note(result,
                    "the ranks were measured on several GPUs, %s and %s: each "
                    "has its own times",
                    first, other);
        break;
    }
    return 0;
}

/* The GPU that is asked for, or the profile's; one that the catalogue does not
 * know matters only where prices are asked for. *OWN: the profile's, where
 * another one is asked for; its name is empty where it is not known. */
static int find_gpu(const struct replay_profile *p, struct gpu *gpu,
                    struct gpu *own, struct err *err)
{
    struct gpu recorded;
    bool known = !study_gpu(p->run->traces[0].path, &recorded, err);

    own->name[0] = '\0';
    err_clear(err);
    if (p->gpu && gpu_load(p->gpu, gpu, err))
        return -1;
    if (p->gpu && known && strcmp(gpu->name, recorded.name))
        *own = recorded;
    if (!p->gpu && known)
        *gpu = recorded;
    if (p->gpu || known)
        return 0;
    if (p->models)
        return err_set(err, "%s",
                       "--models needs a GPU of the catalogue; give "
                       "--gpu (`memsim gpus' lists them)");
    if (gpu_load(DEFAULT_GPU, gpu, err))
        return -1;
    snprintf(gpu->device_name, sizeof gpu->device_name,
             "GPU not in the catalogue");
    return 0;
}

/* Prices on OWN, for what was measured there; *IMAGE is to be freed. */
static int own_prices(const struct gpu *own, struct price_options *prices,
                      void **image, struct err *err)
{
    *image = cost_fit_load(own, NULL, err);
    *prices = (struct price_options){.gpu = own, .image = *image};
    return *image ? 0 : -1;
}

static int read_ranks(const struct replay_profile *p, struct result *result,
                      const struct gpu *own, struct err *err)
{
    struct price_options prices;
    struct study_time time;
    void *image = NULL;
    struct study_members members = {.all = NULL};
    struct run_ranks ranks;
    int rc;

    if (study_time_init(&time, p->options, &result->gpu, err))
        return -1;
    time.timeline.models = uses_models(p);
    if (own->name[0] && !time.timeline.models) {
        if (own_prices(own, &prices, &image, err)) {
            study_time_fini(&time);
            return -1;
        }
        time.timeline.own = &prices;
    }
    time.timeline.data_parallel = p->data_parallel;
    time.timeline.average = p->average;
    time.timeline.contends = p->contends;
    time.timeline.without_profiler = p->without_profiler;
    rc = run_ranks_read(&ranks, p->run, err);
    result->ranks = xcalloc(p->run->count, sizeof *result->ranks);
    for (const struct run_rank *r = NULL; (r = run_next_rank(&ranks, r));) {
        struct result_rank *to = &result->ranks[result->rank_count++];
        to->rank = r->rank;
        for (size_t i = 0; i < r->trace_count; i++)
            study_members_add(&members, to, (uint32_t)(members.count),
                              r->traces[i]->path, NULL);
    }
    result_ranks_expand(result, &ranks);
    run_ranks_fini(&ranks);
    if (!rc)
        rc = study_time_job(&time, result, &members, err);
    study_members_fini(&members);
    study_time_fini(&time);
    free(image);
    return rc;
}

/* Is what is replayed another job, or another machine, than was measured? */
static bool is_edited(const struct replay_profile *p, const struct replayed *r,
                      const struct gpu *own)
{
    const struct study_options *o = p->options;

    return r->changed || own->name[0] || p->models || p->without_profiler ||
           p->data_parallel || o->change || o->scale || o->host_speed ||
           o->cluster || o->stragglers;
}

/* A changed job was not measured. */
static void measured_forget(struct result *result)
{
    for (size_t i = 0; i < result->rank_count; i++)
        for (size_t j = 0;
             result->ranks[i].timing && j < result->ranks[i].timing->step_count;
             j++)
            result->ranks[i].timing->steps[j].measured_ns = 0;
}

/* Most of a time of which little is known is no prediction. ASKED: models are
 * asked for, and not used because the catalogue lacks the profile's GPU. */
static void times_doubt(struct result *result, bool asked)
{
    const struct timing *t = time_slowest(result);

    if (!t || t->unmodelled <= UNMODELLED)
        return;
    result_note(result,
                "the step's time is unknown: there are no cost models for "
                "%.0f%% of the profile's device time; %s",
                100 * t->unmodelled,
                asked ? "without --models the measured durations are used, and "
                        "--gpu scales them"
                      : "its GPU is not in the catalogue, so that its "
                        "measured durations cannot be scaled to another one");
    for (size_t i = 0; i < result->rank_count; i++) {
        timing_destroy(result->ranks[i].timing);
        result->ranks[i].timing = NULL;
    }
    result->exit_status = CMD_RUN_UNKNOWN;
}

void replayed_fini(struct replayed *r)
{
    result_fini(&r->result);
    free(r->changed);
    *r = (struct replayed){.changed = NULL};
}

int replay_profile(const struct replay_profile *p, struct replayed *r,
                   struct err *err)
{
    struct result *result = &r->result;
    struct gpu own;

    *result = (struct result){.command = p->command,
                              .invocation = p->invocation,
                              .finished = true,
                              .verdict = VERDICT_UNKNOWN,
                              .why = p->why ? p->why
                                            : "a profile has no memory calls"};
    r->ranks = p->run->count;
    r->models = uses_models(p);
    r->simulated = is_simulated(p);
    if (check_gpus(p, result, err) || find_gpu(p, &result->gpu, &own, err) ||
        read_ranks(p, result, &own, err))
        return -1;
    if (r->simulated)
        result_note(result, SIMULATED_NOTE, "the profile");
    times_doubt(result, p->models);
    if (is_edited(p, r, &own))
        measured_forget(result);
    return 0;
}

int replay_profile_changed(const struct replay_profile *p,
                           const struct replay_made *made, struct replayed *r,
                           struct err *err)
{
    struct replay_profile as = *p;
    struct run run;
    int rc = -1;

    as.run = &run;
    r->changed = made->changed;
    if (!run_open(&run, made->path, err) && !replay_profile(&as, r, err)) {
        made->note(&r->result, made->what);
        rc = 0;
    }
    run_close(&run);
    return rc;
}
