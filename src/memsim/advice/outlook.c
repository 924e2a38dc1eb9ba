/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/advice/outlook.h"

#include <limits.h>

#include "common/base/status.h"
#include "memsim/report/gaps.h"
#include "memsim/replay/replay_repeat.h"
#include "memsim/report/result_verdict.h"

#define CALLS_MOST 10000000 /* to be repeated: a few seconds */

_Static_assert(ATTRIBUTION_BEGINS == REPLAY_REPEAT_BEGINS,
               "the begins that are kept are those that a repetition takes");

static uint64_t step_bytes(const struct attribution *a)
{
    uint64_t bytes = 0;

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
    return bytes > a->growth_peak_bytes ? bytes : a->growth_peak_bytes;
}

/* At least the reserved memory that is free is lost to fragments, at most it is
 * used. */
static void growth_estimate(struct result_device *d)
{
    struct result_growth *g = &d->growth;
    uint64_t steps = d->attribution->growth_steps;
    uint64_t need = need_bytes(d->attribution);
    uint64_t cached = d->peak_reserved_bytes - d->peak_allocated_bytes;

    g->least = steps + d->headroom_bytes / need;
    g->most = steps + 1 + (d->headroom_bytes + cached) / need;
}

/* The device of REC that is the GPU of D. */
static unsigned recording_device(const struct recording *rec,
                                 const struct result_device *d)
{
    unsigned i = 0;

    while (i < REPLAY_DEVICES && (!rec->info.devices[i].used ||
                                  rec->info.devices[i].card != d->index))
        i++;
    return i;
}

/* Replays REPEAT until memory runs out. Where it does not, it lasts longer than
 * that. */
static int repeat_run(struct result_device *d, const struct recording *rec,
                      struct replay_repeat *repeat, struct err *err)
{
    struct replay_plan plan = *rec->whatif.plan;
    struct replay_result result;
    uint64_t steps = d->attribution->growth_steps;
    uint64_t end = d->attribution->begins[d->attribution->begin_count - 1];

    while (plan.count && plan.deeds[plan.count - 1].index >= end)
        plan.count--;
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

static void device_look(struct result *result, struct result_device *d,
                        const struct rundir *dir,
                        const struct recorded_list *recorded)
{
    const struct recording_options as_it_is = {
        .addresses = (enum vaspace_model)dir->session->address_model};
    struct recording rec;
    struct err err = {""};
    char path[PATH_MAX];

    if (d->attribution)
        d->growth.step_bytes = step_bytes(d->attribution);
    if (!d->growth.step_bytes || result->verdict == VERDICT_OOM)
        return;
    growth_estimate(d);
    run_trace_path(dir->path, d->process, path, sizeof path);
    int rc = recorded_open(&rec, recorded, d->process, path, &as_it_is, &err);
    if (!rc) {
        rc = recording_repeat(d, &rec, &err);
        recording_close(&rec);
    }
    if (rc)
        result_note(result, "how long memory lasts is an estimate: %s",
                    err.text);
}

static void verdict_judge(struct result *result)
{
    uint64_t wanted = result->job_steps ? result->job_steps : OUTLOOK_STEPS;
    bool short_of = false;

    for (struct result_walk w = {NULL}; result_walk_next(result, &w);)
        short_of |= w.device->growth.step_bytes &&
                    w.device->growth.least < wanted;
    if (!short_of || (result->verdict != VERDICT_FITS &&
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
};

static struct steps_seen steps_see(const struct result *result)
{
    struct steps_seen seen = {0};

    for (struct result_walk w = {NULL}; result_walk_next(result, &w);) {
        const struct attribution *a = w.device->attribution;
        seen.tensors |= w.device->peak_allocated_bytes != 0;
        if (!a || !a->begin_count)
            continue;
        seen.marked |= a->growth_rule == STEP_MARK;
        if (a->growth_steps + 1 > seen.count)
            seen.count = a->growth_steps + 1;
    }
    return seen;
}

/* A job of which too little is known does not fit. */
static void judge_unknown(struct result *result, const struct steps_seen *seen)
{
    if (result->verdict != VERDICT_FITS)
        return;
    if (result->step_mark && !seen->marked)
        result_verdict_unknown(result, "--step-mark's function was not called "
                                       "or not found");
    else if (result->job_steps > seen->count && seen->count < GROWTH_STEPS)
        result_verdict_unknown(
            result, seen->count ? "fewer than 6 recorded steps do not show "
                                  "whether memory grows"
                                : "no step was recorded");
}

/* What too few steps cannot show. */
static void note_few_steps(struct result *result, const struct steps_seen *seen)
{
    if (result->verdict != VERDICT_FITS && result->verdict != VERDICT_UNKNOWN)
        return;
    if (seen->count && seen->count < GROWTH_STEPS)
        result_note(result,
                    "whether memory grows from step to step is not known: "
                    "that takes %d recorded steps",
                    GROWTH_STEPS);
    else if (!seen->count && seen->tensors)
        result_note(result,
                    "no step was recorded: whether memory grows is not known; "
                    "--step-mark FUNC names the function of the script that "
                    "is a step");
}

_Static_assert(GROWTH_STEPS == 6, "a verdict says so in words");

void outlook_run(struct result *result, const struct rundir *dir,
                 const struct recorded_list *recorded)
{
    for (struct result_walk w = {NULL}; result_walk_next(result, &w);)
        device_look(result, w.device, dir, recorded);
    verdict_judge(result);
    const struct steps_seen seen = steps_see(result);
    judge_unknown(result, &seen);
    gaps_note(result);
    note_few_steps(result, &seen);
}
