/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/text/batch_report.h"

#include <inttypes.h>

#include "common/base/units.h"
#include "memsim/report/text/growth_report.h"
#include "memsim/report/text/time_report.h"
#include "memsim/run/batch_guess.h"

#define SIZE_LENGTH 16
#define CELL_LENGTH 32

static enum batch_verdict outcome_verdict(const struct result *r, bool refused)
{
    switch (r->verdict) {
    case VERDICT_FITS:
    case VERDICT_GROWS:
        return refused ? BATCH_CAUGHT : BATCH_FITS;
    case VERDICT_OVER_LIMIT:
    case VERDICT_HOST:
    case VERDICT_INPUT:
        return refused ? BATCH_CAUGHT : BATCH_OVER_LIMIT;
    case VERDICT_OOM:
        return BATCH_OOM;
    case VERDICT_NONE:
        return BATCH_NONE;
    case VERDICT_UNKNOWN: /* of a batch without steps the memory is known */
        if (r->no_steps && !r->exit_status)
            return refused ? BATCH_CAUGHT : BATCH_FITS;
        break;
    case VERDICT_FAILED:
        break;
    }
    return BATCH_FAILED;
}

static void add_times(struct batch_outcome *o, const struct result *result)
{
    const struct timing *t = time_slowest(result);
    const struct time_rate rate = time_rate_of(result);

    if (!t)
        return;
    const struct timing_step *s = &t->steps[t->typical];
    o->step_ns = s->duration_ns;
    o->low_ns = s->low_ns;
    o->high_ns = s->high_ns;
    o->waits_for_cpu = time_waits_for_cpu(t);
    o->rate = rate.per_second;
    o->rate_is_tokens = rate.tokens;
}

struct batch_outcome batch_outcome_make(const struct result *result,
                                        uint64_t batch)
{
    struct batch_outcome o = {
        .batch = batch,
        .status = result->exit_status,
        .seconds = result->seconds,
    };
    bool refused = false;

    for (struct result_walk w = {NULL}; result_walk_next(result, &w);) {
        refused = refused || w.device->oom_count;
        if (w.device->peak_used_bytes <= o.peak_used_bytes)
            continue;
        o.peak_used_bytes = w.device->peak_used_bytes;
        o.peak_reserved_bytes = w.device->peak_reserved_bytes;
        o.peak_allocated_bytes = w.device->peak_allocated_bytes;
    }
    o.verdict = outcome_verdict(result, refused);
    const struct result_device *grows = growth_first(result);
    o.lasts_steps = grows ? grows->growth.least : 0;
    add_times(&o, result);
    return o;
}

/* Work a second; of batches if it is not known what is in one. */
static double speed_of(const struct batch_outcome *o)
{
    if (o->rate > 0 || !o->step_ns)
        return o->rate;
    return (double)o->batch / (double)o->step_ns;
}

const struct batch_outcome *batch_best(const struct batch_report *r)
{
    const struct batch_outcome *best = NULL;

    for (size_t i = 0; i < r->outcome_count; i++) {
        const struct batch_outcome *o = &r->outcomes[i];
        if (o->verdict == BATCH_FITS && o->step_ns &&
            (!best || speed_of(o) > speed_of(best)))
            best = o;
    }
    return best;
}

void batch_write_heading(FILE *out)
{
    fprintf(out, "  %8s  %-14s %11s %9s  %13s %8s\n", "batch", "verdict",
            "peak used", "step", "per second", "took");
}

/* "185000 tokens" */
static void format_rate(const struct batch_outcome *o, char text[CELL_LENGTH])
{
    char number[CELL_LENGTH / 2];

    text[0] = '\0';
    if (!(o->rate > 0))
        return;
    time_format_rate(o->rate, number, sizeof number);
    snprintf(text, CELL_LENGTH, "%s %s", number,
             o->rate_is_tokens ? "tokens" : "samples");
}

void batch_write_outcome(const struct batch_outcome *o, FILE *out)
{
    char used[SIZE_LENGTH], rate[CELL_LENGTH], step[CELL_LENGTH] = "";

    format_rate(o, rate);
    if (o->step_ns)
        time_format_ns((double)o->step_ns, step, sizeof step);
    fprintf(out, "  %8" PRIu64 "  %-14s %11s %9s%s %13s %6.1f s%s\n", o->batch,
            batch_verdict_text(o->verdict),
            units_format_bytes(o->peak_used_bytes, used, sizeof used), step,
            o->waits_for_cpu ? "c" : " ", rate, o->seconds,
            o->cached ? ", before" : "");
}

static const struct batch_outcome *outcome_find(const struct batch_report *r,
                                                uint64_t batch)
{
    for (size_t i = 0; i < r->outcome_count; i++)
        if (r->outcomes[i].batch == batch)
            return &r->outcomes[i];
    return NULL;
}

static const struct batch_outcome *find_failure(const struct batch_report *r)
{
    for (size_t i = 0; i < r->outcome_count; i++)
        if (batch_verdict_ends(r->outcomes[i].verdict))
            return &r->outcomes[i];
    return NULL;
}

/* Why batch LIMIT is too large. */
static void write_limit(const struct batch_report *r, uint64_t limit, FILE *out)
{
    static const char *const texts[] = {
        [BATCH_OOM] = "does not",
        [BATCH_CAUGHT] = "ran out of memory, which the command survived",
        [BATCH_OVER_LIMIT] = "is over the limit of --fail-above",
        [BATCH_GROWS] = "runs out of memory before the last step",
    };
    const struct batch_outcome *o = outcome_find(r, limit);

    if (o)
        fprintf(out, "; %" PRIu64 " %s", limit, texts[o->verdict]);
}

static void write_verdict(const struct batch_report *r, FILE *out)
{
    uint64_t largest = batch_search_largest(&r->search);
    uint64_t limit = batch_search_limit(&r->search);
    bool over = !r->signal && !find_failure(r);

    if (!largest && over)
        fprintf(out, "memsim: not even batch %" PRIu64 " fits", r->search.from);
    else if (!largest)
        fputs("memsim: no batch is known to fit", out);
    else if (over)
        fprintf(out, "memsim: largest batch that fits: %" PRIu64, largest);
    else
        fprintf(out, "memsim: batch %" PRIu64 " fits; larger ones may",
                largest);
    if (largest && over && limit)
        write_limit(r, limit, out);
    fputc('\n', out);
}

/* Without --steps nobody knows whether that is enough. */
static void write_growth(const struct batch_report *r, FILE *out)
{
    const struct batch_outcome *o =
        outcome_find(r, batch_search_largest(&r->search));

    if (o && o->lasts_steps)
        fprintf(out,
                "  note: memory grows from step to step: with batch %" PRIu64
                " it lasts %" PRIu64 " steps;\n        `memsim run' shows what "
                "grows, --steps N says how long the job is\n",
                o->batch, o->lasts_steps);
}

static void write_notes(const struct batch_report *r, FILE *out)
{
    const struct batch_outcome *failed = find_failure(r);

    if (failed && failed->verdict == BATCH_NONE)
        fprintf(out,
                "  note: with batch %" PRIu64 " the command used no GPU; the "
                "search ends there\n",
                failed->batch);
    else if (failed && failed->verdict == BATCH_TIMEOUT)
        fprintf(out,
                "  note: batch %" PRIu64 " was ended after %" PRIu32
                " s (--trial-timeout); the search ends\n        there\n",
                failed->batch, r->limit_s);
    else if (failed)
        fprintf(out,
                "  note: batch %" PRIu64 " failed (status %d), not for lack of "
                "GPU memory;\n        the search ends there\n",
                failed->batch, failed->status);
    write_growth(r, out);
    if (r->signal)
        fprintf(out, "  note: interrupted; the same command goes on from "
                     "here\n");
    if (batch_search_largest(&r->search) == r->search.to)
        fprintf(out, "  note: no larger one was tried, see --to\n");
    if (batch_search_is_deaf(&r->search))
        fprintf(out, "  note: the peak is the same for all of them: does the "
                     "command use {}?\n");
    if (batch_search_is_uneven(&r->search))
        fprintf(out,
                "  note: a larger batch took less memory than a smaller one "
                "(see the peaks), so\n        that a few beyond the limit were "
                "tried; still larger ones may fit\n");
    for (size_t i = 0; i < r->outcome_count; i++)
        if (r->outcomes[i].waits_for_cpu) {
            fprintf(out, "  note: steps marked c wait for this machine's CPU; "
                         "let the command do 10\n        steps for a firm "
                         "figure\n");
            break;
        }
    for (size_t i = 0; i < r->outcome_count; i++)
        if (r->outcomes[i].verdict == BATCH_CAUGHT) {
            fprintf(out,
                    "  note: the command catches out-of-memory errors and goes "
                    "on, maybe with\n        a smaller batch: where it had to "
                    "is counted as not fitting\n");
            break;
        }
}

/* Of those that were tried. */
static void write_best(const struct batch_report *r, FILE *out)
{
    const struct batch_outcome *best = batch_best(r);
    char step[CELL_LENGTH], rate[CELL_LENGTH];

    if (!best)
        return;
    format_rate(best, rate);
    time_format_ns((double)best->step_ns, step, sizeof step);
    fprintf(out,
            "  best throughput of these: %" PRIu64 ", a step of %s%s%s%s\n",
            best->batch, step, *rate ? ", " : "", rate,
            *rate ? " a second" : "");
}

void batch_write_conclusion(const struct batch_report *r, FILE *out)
{
    char capacity[SIZE_LENGTH];
    double seconds = 0;
    size_t cached = 0;

    write_verdict(r, out);
    write_best(r, out);
    for (size_t i = 0; i < r->outcome_count; i++) {
        cached += r->outcomes[i].cached;
        seconds += r->outcomes[i].cached ? 0 : r->outcomes[i].seconds;
    }
    fprintf(out, "  %s, %s; %zu run%s took %.1f s", r->result.gpu.device_name,
            units_format_bytes(r->result.gpu.memory_bytes, capacity,
                               sizeof capacity),
            r->outcome_count - cached,
            r->outcome_count - cached == 1 ? "" : "s", seconds);
    if (cached)
        fprintf(out, ", %zu were known", cached);
    fputc('\n', out);
    if (r->unneeded_runs)
        fprintf(out, "  not needed, of the runs made ahead: %zu\n",
                r->unneeded_runs);
    if (batch_search_largest(&r->search) && r->result.command[0]) {
        char **command = batch_command(r->result.command,
                                       batch_search_largest(&r->search));
        fputs("  with it:", out);
        batch_command_write(command, out);
        fputc('\n', out);
        batch_command_free(command);
    }
    write_notes(r, out);
}
