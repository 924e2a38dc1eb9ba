/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/cli/replay_profile.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/simulated.h"
#include "common/base/status.h"
#include "common/base/xmalloc.h"
#include "common/trace/trace_read.h"
#include "fits/cost_fit.h"
#include "memsim/cli/output_files.h"
#include "memsim/study/job_time.h"
#include "memsim/import/profile_write.h"
#include "memsim/report/time_report.h"
#include "memsim/run/ranks.h"

#define DEFAULT_GPU "h100-sxm-80gb"
#define STEPS_SHOWN 8 /* of each rank */
#define UNMODELLED  0.1 /* a larger share of the time makes it unknown */

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
           (item.head.kind == TRACE_PROCESS ||
            item.head.kind == TRACE_SETTING))
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
        return err_set(err, "%s", "--models needs a GPU of the catalogue; give "
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
    const struct study_options study = output_study(p->output);
    struct study_time time;
    void *image = NULL;
    struct study_members members = {.all = NULL};
    struct run_ranks ranks;
    int rc;

    if (study_time_init(&time, &study, &result->gpu, err))
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
    run_ranks_fini(&ranks);
    if (!rc)
        rc = study_time_job(&time, result, &members, err);
    study_members_fini(&members);
    study_time_fini(&time);
    free(image);
    return rc;
}

struct errors {
    double sum, worst; /* relative, without sign */
    size_t count;
};

static void errors_add(struct errors *e, const struct timing_step *s,
                       double *difference)
{
    *difference = (double)s->duration_ns / (double)s->measured_ns - 1;
    e->sum += fabs(*difference);
    e->worst = fmax(e->worst, fabs(*difference));
    e->count++;
}

static void print_rank(const struct result_rank *rank, struct errors *errors,
                       FILE *out)
{
    for (size_t i = 0; rank->timing && i < rank->timing->step_count; i++) {
        const struct timing_step *s = &rank->timing->steps[i];
        double difference;

        if (!s->measured_ns)
            continue;
        errors_add(errors, s, &difference);
        if (i < STEPS_SHOWN)
            fprintf(out, "  %4u  %4zu  %10.3f ms  %10.3f ms  %+7.2f%%\n",
                    rank->rank, i, (double)s->measured_ns / 1e6,
                    (double)s->duration_ns / 1e6, 100 * difference);
        else if (i == STEPS_SHOWN)
            fprintf(out, "  %4u  ... %zu more steps; --json has all\n",
                    rank->rank, rank->timing->step_count - i);
    }
}

static void print_title(const struct replay_profile *p,
                        const struct result *result, FILE *out)
{
    fprintf(out, "memsim: %s of %zu rank%s, %s, ",
            p->why ? "a recording" : "a profile", p->run->count,
            p->run->count == 1 ? "" : "s", result->gpu.device_name);
    if (p->changed)
        fprintf(out, "with %s\n", p->changed);
    else
        fprintf(out, "replayed with %s\n",
                p->output->study.change || p->output->study.scale ? "changes"
                : uses_models(p)  ? "the cost models' times"
                : is_simulated(p) ? "memsim's own times"
                : p->gpu          ? "the measured times, scaled"
                                  : "the measured durations");
    if (p->why)
        fprintf(out, "  times alone: %s\n", p->why);
}

static bool is_measured(const struct result *result)
{
    const struct timing *t = time_slowest(result);

    for (size_t i = 0; t && i < t->step_count; i++)
        if (t->steps[i].measured_ns)
            return true;
    return false;
}

static void print_steps(const struct result *result, FILE *out)
{
    struct errors errors = {0};

    if (!is_measured(result))
        return;
    fprintf(out, "  %4s  %4s  %13s  %13s  %8s\n", "rank", "step", "measured",
            "replayed", "error");
    for (size_t i = 0; i < result->rank_count; i++)
        print_rank(&result->ranks[i], &errors, out);
    if (errors.count)
        fprintf(out, "  error of %zu steps: mean %.2f%%, worst %.2f%%\n",
                errors.count, 100 * errors.sum / (double)errors.count,
                100 * errors.worst);
    if (time_slowest(result))
        time_measured_write(time_slowest(result), out);
}

static void print_summary(const struct replay_profile *p,
                          const struct result *result, FILE *out)
{
    const struct time_style style = {"", "", p->output->verbose, 0};

    print_title(p, result, out);
    print_steps(result, out);
    time_text_write_step(result, out);
    time_text_write(result, &style, out);
    for (size_t i = 0; i < result->note_count; i++)
        fprintf(out, "  note: %s\n", result->notes[i]);
}

/* Is what is replayed another job, or another machine, than was measured? */
static bool is_edited(const struct replay_profile *p, const struct gpu *own)
{
    const struct output_options *o = p->output;

    return p->changed || own->name[0] || p->models || p->without_profiler ||
           p->data_parallel || o->study.change || o->study.scale ||
           o->study.host_speed || o->study.cluster || o->study.stragglers;
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

/* Most of a time of which little is known is no prediction. */
static void times_doubt(struct result *result)
{
    const struct timing *t = time_slowest(result);

    if (!t || t->unmodelled <= UNMODELLED)
        return;
    result_note(result,
                "the step's time is unknown: there are no cost models for "
                "%.0f%% of the profile's device time; without --models the "
                "measured durations are used, and --gpu scales them",
                100 * t->unmodelled);
    for (size_t i = 0; i < result->rank_count; i++) {
        timing_destroy(result->ranks[i].timing);
        result->ranks[i].timing = NULL;
    }
    result->exit_status = CMD_RUN_UNKNOWN;
}

int replay_profile_read(const struct replay_profile *p, struct result *result,
                        struct err *err)
{
    struct gpu own;

    *result = (struct result){.command = p->command,
                              .invocation = p->invocation,
                              .finished = true,
                              .verdict = VERDICT_UNKNOWN,
                              .why = p->why ? p->why
                                            : "a profile has no memory calls"};
    if (find_gpu(p, &result->gpu, &own, err) ||
        read_ranks(p, result, &own, err))
        return -1;
    if (is_simulated(p))
        result_note(result, SIMULATED_NOTE, "the profile");
    times_doubt(result);
    if (is_edited(p, &own))
        measured_forget(result);
    return 0;
}

int replay_profile_show(const struct replay_profile *p,
                        const struct result *result, struct err *err)
{
    static const struct output_writers writers = {&report_json, &report_html,
                                                  &report_perfetto, NULL};
    FILE *out = output_summary_stream(p->output);

    if (!p->output->quiet)
        print_summary(p, result, out);
    return output_files(p->output, &writers, result, err)
               ? CMD_RUN_FAILED
               : result->exit_status;
}

int replay_profile(const struct replay_profile *p, struct err *err)
{
    int status = CMD_RUN_FAILED;
    struct result result;

    if (!replay_profile_read(p, &result, err))
        status = replay_profile_show(p, &result, err);
    result_fini(&result);
    return status;
}

int replay_profile_changed(const struct replay_profile *p, const char *path,
                           const char *changed, replay_note *note,
                           const void *what, struct err *err)
{
    struct replay_profile as = *p;
    struct run run;
    struct result result;
    int status = CMD_RUN_FAILED;

    as.run = &run;
    as.changed = changed;
    if (!run_open(&run, path, err)) {
        if (!replay_profile_read(&as, &result, err)) {
            note(&result, what);
            status = replay_profile_show(&as, &result, err);
        }
        result_fini(&result);
    }
    run_close(&run);
    return status;
}
