/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/advice/outlook.h"

#include <limits.h>
#include <math.h>

#include "common/base/status.h"
#include "common/base/units.h"
#include "memsim/result/gaps.h"
#include "memsim/report/text/law_report.h"
#include "memsim/replay/replay_repeat.h"
#include "memsim/replay/replay_scale.h"
#include "memsim/result/result_verdict.h"

#define CALLS_MOST 10000000 /* to be repeated: a few seconds */

_Static_assert(ATTRIBUTION_BEGINS == REPLAY_REPEAT_BEGINS,
               "the begins that are kept are those that a repetition takes");

static uint64_t step_bytes(const struct attribution *a)
{
    uint64_t bytes = a->growth_held_bytes;

    for (size_t i = 0; i < a->growth_count; i++)
        bytes += a->growth[i].step_bytes;
    return bytes;
}

/* What each step needs more: by its peak, and by what it leaves behind. A
 * tensor that becomes longer is there twice while it is copied. */
static uint64_t need_bytes(const struct attribution *a)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < a->growth_count; i++)
        bytes += (a->growth[i].form == GROWTH_TENSOR ? 2 : 1) *
                 a->growth[i].step_bytes;
    bytes += a->growth_held_bytes;
    return bytes > a->growth_peak_bytes ? bytes : a->growth_peak_bytes;
}

/* How much more each step needs than the one before. */
static uint64_t more_bytes(const struct attribution *a)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < a->growth_count; i++)
        bytes += 2 * a->growth[i].step_more; /* of tensors alone */
    return bytes;
}

/* The steps that ROOM is enough for: n NEED + n^2 MORE / 2 = ROOM. */
static uint64_t steps_in(uint64_t room, uint64_t need, uint64_t more)
{
    double a = (double)need, b = (double)more;

    return more ? (uint64_t)((sqrt(a * a + 2 * b * (double)room) - a) / b)
                : room / need;
}

/* At least the reserved memory that is free is lost to fragments, at most it is
 * used. */
static void growth_estimate(struct result_device *d)
{
    struct result_growth *g = &d->growth;
    uint64_t steps = d->attribution->growth_steps;
    uint64_t need = need_bytes(d->attribution);
    uint64_t more = more_bytes(d->attribution);
    uint64_t cached = d->peak_reserved_bytes - d->peak_allocated_bytes;

    g->least = steps + steps_in(d->headroom_bytes, need, more);
    g->most = steps + 1 + steps_in(d->headroom_bytes + cached, need, more);
}

/* The device of REC that is the GPU of D. */
static unsigned recording_device(const struct recording *rec,
                                 const struct result_device *d)
{
    unsigned i = 0;

    while (i < REPLAY_DEVICES && (!rec->info.devices[i].used ||
                                  rec->info.devices[i].card != d->card))
        i++;
    return i;
}

/* Of REC, without what follows the begin of D's last step. */
static struct replay_plan plan_until(const struct result_device *d,
                                     const struct recording *rec)
{
    struct replay_plan plan = *rec->whatif.plan;
    uint64_t end = d->attribution->begins[d->attribution->begin_count - 1];

    while (plan.count && plan.deeds[plan.count - 1].index >= end)
        plan.count--;
    return plan;
}

/* Replays REPEAT until memory runs out. Where it does not, it lasts longer than
 * that. */
static int repeat_run(struct result_device *d, const struct recording *rec,
                      struct replay_repeat *repeat, struct err *err)
{
    struct replay_plan plan = plan_until(d, rec);
    struct replay_result result;
    uint64_t steps = d->attribution->growth_steps;

    if (replay_run(replay_repeat_source(repeat), &rec->whatif.config, &plan,
                   NULL, &result, err))
        return -1;
    uint64_t whole = steps + replay_repeat_whole(repeat, result.steps - 1);
    if (!result.fits) {
        d->growth.least = d->growth.most = whole;
        d->growth.replayed = true;
    } else if (whole > d->growth.least) {
        d->growth.least = whole;
        if (d->growth.most < whole)
            d->growth.most = whole;
    }
    replay_result_fini(&result);
    return 0;
}

/* Finds out how long memory lasts by replaying REC. Leaves the estimate where
 * the steps are not alike, or where the GPU serves other processes, too. */
static int recording_repeat(struct result_device *d,
                            const struct recording *rec, struct err *err)
{
    const struct attribution *a = d->attribution;
    struct replay_repeat *repeat;

    if (!recording_is_used(rec) || d->others_bytes ||
        recording_device(rec, d) == REPLAY_DEVICES || !a->begin_count)
        return 0;
    if (replay_repeat_create(&repeat, rec->whatif.source, a->begins,
                             a->begin_count, CALLS_MOST, err))
        return -1;
    int rc = repeat ? repeat_run(d, rec, repeat, err) : 0;
    replay_repeat_destroy(repeat);
    return rc;
}

/* What grows on D, by the steps that were recorded; false: nothing. */
static bool device_grows(const struct result *result, struct result_device *d)
{
    if (d->attribution)
        d->growth.step_bytes = step_bytes(d->attribution);
    if (!d->growth.step_bytes || result->verdict == VERDICT_OOM)
        return false;
    growth_estimate(d);
    return true;
}

static void note_estimate(struct result *result, const struct err *err)
{
    result_note(result, "how long memory lasts is an estimate: %s", err->text);
}

/* --- an input of another size --------------------------------------------- */

/* Replays SCALE with TIMES the memory of REC's GPU; fills *TO, which has its
 * device. */
static int scale_run(struct replay_repeat *scale, const struct recording *rec,
                     const struct replay_plan *plan, uint64_t times,
                     struct result_input *to, struct err *err)
{
    struct replay_config config = rec->whatif.config;
    struct replay_result result;

    config.total_bytes *= times;
    if (replay_run(replay_repeat_source(scale), &config, plan, NULL, &result,
                   err))
        return -1;
    to->known = true;
    to->fits = result.fits;
    to->allocated_bytes = result.devices[to->device].peak_allocated_bytes;
    to->used_bytes = result.devices[to->device].peak_used_bytes;
    replay_result_fini(&result);
    return 0;
}

#define UNLIMITED 1024 /* times the GPU's memory */

static int input_run(struct result_device *d, const struct recording *rec,
                     struct replay_repeat *scale, struct err *err)
{
    const struct replay_plan plan = plan_until(d, rec);
    struct result_input here = {.device = recording_device(rec, d)};

    d->input.device = here.device;
    if (scale_run(scale, rec, &plan, 1, &here, err) ||
        scale_run(scale, rec, &plan, UNLIMITED, &d->input, err))
        return -1;
    d->input.used_bytes += d->others_bytes;
    d->input.fits = here.fits && (!d->others_bytes || d->input.used_bytes <=
                                                          d->capacity_bytes);
    return 0;
}

/* What D needs in a step whose input is WANTED large. */
static int input_look(struct result_device *d, const struct recording *rec,
                      uint64_t wanted, struct err *err)
{
    const struct attribution *a = d->attribution;
    struct replay_repeat *scale;

    if (!recording_is_used(rec) ||
        recording_device(rec, d) == REPLAY_DEVICES || !a->begin_count)
        return 0;
    const struct replay_steps steps = {a->begins, a->sizes, a->begin_count};
    if (replay_scale_create(&scale, rec->whatif.source, &steps, wanted, err))
        return -1;
    int rc = scale ? input_run(d, rec, scale, err) : 0;
    replay_repeat_destroy(scale);
    return rc;
}

/* --- all GPUs ------------------------------------------------------------- */

static void recording_look(struct result *result, struct result_device *d,
                           const struct recording *rec)
{
    struct err err = {""};
    uint64_t wanted = law_wanted_size(&result->wanted, d);

    if (device_grows(result, d) && recording_repeat(d, rec, &err))
        note_estimate(result, &err);
    err.text[0] = '\0';
    if (wanted && input_look(d, rec, wanted, &err))
        result_note(result, "--input-max: %s", err.text);
}

static void device_look(struct result *result, struct result_device *d,
                        const struct rundir *dir,
                        const struct recorded_list *recorded)
{
    const struct recording_options as_it_is = {
        .addresses = (enum vaspace_model)dir->session->address_model};
    struct recording rec;
    struct err err = {""};
    char path[PATH_MAX];

    if (!device_grows(result, d) && !law_wanted_size(&result->wanted, d))
        return;
    run_trace_path(dir->path, d->process, path, sizeof path);
    if (recorded_open(&rec, recorded, d->process, path, &as_it_is, &err)) {
        note_estimate(result, &err);
        return;
    }
    recording_look(result, d, &rec);
    recording_close(&rec);
}

/* --- the host's memory ---------------------------------------------------- */

/* The most that a GPU's process leaves behind on the host with each step. */
static void rank_host(const struct result_rank *rank,
                      struct growth_rate rates[GROWTH_HOST_KINDS])
{
    for (size_t i = 0; i < rank->device_count; i++) {
        const struct attribution *a = rank->devices[i].attribution;

        for (size_t k = 0; a && k < GROWTH_HOST_KINDS; k++)
            if (a->host_growth[k].bytes > rates[k].bytes)
                rates[k] = a->host_growth[k];
    }
}

static uint64_t steps_recorded(const struct result *result)
{
    uint64_t most = 0;

    for (struct result_walk w = {NULL}; result_walk_next(result, &w);)
        if (w.device->attribution &&
            w.device->attribution->growth_steps + 1 > most)
            most = w.device->attribution->growth_steps + 1;
    return most;
}

static void rate_add(struct growth_rate *to, const struct growth_rate *rate)
{
    to->bytes += rate->bytes;
    to->least += rate->least;
    to->most += rate->most;
}

/* RATE of RUN ranks as that of a node with RANKS. */
static void rate_scale(struct growth_rate *rate, uint64_t ranks, uint64_t run)
{
    rate->bytes = rate->bytes * ranks / run;
    rate->least = rate->least * ranks / run;
    rate->most = rate->most * ranks / run;
}

/* Of a node: the ranks that were run stand for the others. What would not be a
 * GiB in the longest job is not told. */
static void host_rates(struct result *result)
{
    struct growth_rate *node = result->host_growth;

    for (int k = 0; k < GROWTH_HOST_KINDS; k++)
        node[k] = (struct growth_rate){0};
    for (size_t i = 0; i < result->rank_count; i++) {
        struct growth_rate rates[GROWTH_HOST_KINDS] = {{0}};
        rank_host(&result->ranks[i], rates);
        for (int k = 0; k < GROWTH_HOST_KINDS; k++)
            rate_add(&node[k], &rates[k]);
    }
    for (int k = 0; k < GROWTH_HOST_KINDS; k++) {
        if (result->host_node_ranks && result->rank_count)
            rate_scale(&node[k], result->host_node_ranks, result->rank_count);
        if (node[k].bytes < GIB / OUTLOOK_STEPS)
            node[k] = (struct growth_rate){0};
    }
}

/* Of the ranks whose heap was looked at too seldom, the one with the fewest
 * looks; of the others, what the least of which is seen grows by. */
static void heap_look(struct result *result)
{
    result->heap_unknown = false;
    for (struct result_walk w = {NULL}; result_walk_next(result, &w);) {
        const struct attribution *a = w.device->attribution;

        if (a && a->heap_least > result->heap_least)
            result->heap_least = a->heap_least;
        if (!a || !a->heap_unknown)
            continue;
        if (!result->heap_unknown || a->heap_looks < result->heap_looks)
            result->heap_looks = a->heap_looks;
        result->heap_unknown = true;
    }
}

static void host_look(struct result *result)
{
    struct growth_rate all = {0};

    host_rates(result);
    heap_look(result);
    for (int k = 0; k < GROWTH_HOST_KINDS; k++)
        rate_add(&all, &result->host_growth[k]);
    if (!all.bytes || result->host_limit_bytes <= result->host_bytes)
        return;
    uint64_t steps = steps_recorded(result);
    uint64_t room = result->host_limit_bytes - result->host_bytes;
    result->host_lasts_steps = steps + room / all.bytes;
    result->host_lasts_least = steps + room / all.most;
    result->host_lasts_most = all.least ? steps + room / all.least : 0;
}

static void host_judge(struct result *result)
{
    if (!result->host_lasts_steps ||
        result->job_steps <= result->host_lasts_least ||
        (result->verdict != VERDICT_FITS &&
         result->verdict != VERDICT_OVER_LIMIT))
        return;
    result->verdict = VERDICT_HOST;
    result->exit_status = CMD_RUN_HOST;
}

static void verdict_judge(struct result *result)
{
    uint64_t wanted = result->job_steps ? result->job_steps : OUTLOOK_STEPS;
    bool short_of = false;

    for (struct result_walk w = {NULL}; result_walk_next(result, &w);)
        short_of |= w.device->growth.step_bytes &&
                    w.device->growth.least < wanted;
    if (!short_of || result->whole_job ||
        (result->verdict != VERDICT_FITS &&
         result->verdict != VERDICT_OVER_LIMIT))
        return;
    if (result->job_steps)
        result->exit_status = CMD_RUN_GROWS;
    else if (result->verdict == VERDICT_OVER_LIMIT)
        return;
    result->verdict = VERDICT_GROWS;
}

/* What the GPU with the most steps has. */
struct steps_seen {
    unsigned count; /* that were recorded; 0: none */
    bool marked;    /* by --step-mark */
    bool tensors;   /* PyTorch allocated memory */
    bool traced;    /* a trace could be read */
};

static struct steps_seen steps_see(const struct result *result)
{
    struct steps_seen seen = {0};

    for (struct result_walk w = {NULL}; result_walk_next(result, &w);) {
        const struct attribution *a = w.device->attribution;
        seen.tensors |= w.device->peak_allocated_bytes != 0;
        seen.traced |= a != NULL;
        if (!a || !a->begin_count)
            continue;
        seen.marked |= a->growth_rule == STEP_MARK;
        if (a->growth_steps + 1 > seen.count)
            seen.count = a->growth_steps + 1;
    }
    return seen;
}

/* What was run may be the whole job, or its begin: unknown, for WHY. The exit
 * status says so to those who set a limit. */
static void judge_open(struct result *result, const char *why)
{
    const int status = result->exit_status;

    result_verdict_unknown(result, why);
    if (!result->job_steps && !result->fail_above_percent)
        result->exit_status = status;
}

static void judge_no_steps(struct result *result)
{
    result->no_steps = true;
    judge_open(result, result->damaged ? "its recording is damaged"
                                       : "no step was recorded");
}

static bool is_cut_early(const struct result *result,
                         const struct steps_seen *seen)
{
    return result->cut_short && !result->whole_job && seen->tensors &&
           seen->count < GROWTH_STEPS;
}

/* A job of which too little is known does not fit. */
static void judge_unknown(struct result *result, const struct steps_seen *seen)
{
    if (result->verdict != VERDICT_FITS)
        return;
    if (result->step_mark && !seen->marked)
        result_verdict_unknown(result, "--step-mark's function was not called "
                                       "or not found");
    else if (!seen->count && !result->whole_job &&
             ((seen->tensors && (seen->traced || result->damaged)) ||
              result->job_steps))
        judge_no_steps(result);
    else if (is_cut_early(result, seen))
        judge_open(result, "its recording is cut short");
    else if (result->job_steps > seen->count && seen->count < GROWTH_STEPS)
        result_verdict_unknown(result, "fewer than 6 recorded steps do not "
                                       "show whether memory grows");
}

/* Notes what too few steps cannot show. */
static void note_few_steps(struct result *result, const struct steps_seen *seen)
{
    if (result->whole_job || (result->verdict != VERDICT_FITS &&
                              result->verdict != VERDICT_UNKNOWN))
        return;
    if (seen->count && seen->count < GROWTH_STEPS)
        result_note(result,
                    "whether memory grows from step to step is not known: "
                    "that takes %d recorded steps",
                    GROWTH_STEPS);
    else if (result->no_steps && !result->damaged)
        result_note(result,
                    "what was run fits, but no step was recorded, so whether "
                    "memory grows is not known: --step-mark FUNC names the "
                    "function of the script that is a step, --whole-job says "
                    "that the command is the whole job");
    else if (!seen->count && seen->tensors)
        result_note(result, "whether memory grows is not known: no step was "
                            "recorded");
}

_Static_assert(GROWTH_STEPS == 6, "a verdict says so in words");

static void judge_result(struct result *result)
{
    const struct steps_seen seen = steps_see(result);

    verdict_judge(result);
    host_judge(result);
    judge_unknown(result, &seen);
    note_few_steps(result, &seen);
}

void outlook_run(struct result *result, const struct rundir *dir,
                 const struct recorded_list *recorded)
{
    for (struct result_walk w = {NULL}; result_walk_next(result, &w);)
        device_look(result, w.device, dir, recorded);
    host_look(result);
    judge_result(result);
    if (!result->whole_job)
        gaps_note(result);
}

void outlook_replay(struct result *result, struct result_rank *rank,
                    const struct recording *rec)
{
    for (size_t i = 0; i < rank->device_count; i++)
        recording_look(result, &rank->devices[i], rec);
}

/* Of a replay that is not of the recorded job nothing is known. */
void outlook_judge(struct result *result)
{
    bool known = false;

    for (struct result_walk w = {NULL}; result_walk_next(result, &w);)
        known |= w.device->attribution != NULL;
    host_look(result);
    if (known)
        judge_result(result);
}
