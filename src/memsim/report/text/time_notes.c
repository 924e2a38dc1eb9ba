/* SPDX-License-Identifier: Apache-2.0
 * How firm a step's time is, as notes. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"
#include "memsim/report/text/time_report.h"

#define WORTH      0.05 /* of the step: the CPU matters */

void time_format_ns(double ns, char *text, size_t size)
{
    if (ns < 1e6)
        snprintf(text, size, "%.1f us", ns / 1e3);
    else if (ns < 1e10)
        snprintf(text, size, "%.1f ms", ns / 1e6);
    else
        snprintf(text, size, "%.1f s", ns / 1e9);
}

bool time_waits_for_cpu(const struct timing *t)
{
    double step = (double)timing_step_ns(t);

    return t->keeps_up_ns && step - (double)t->keeps_up_ns > WORTH * step;
}

/* Writes to TEXT what made this machine's CPU slow, as a clause. */
static void format_busy(const struct timing *t, char *text, size_t size)
{
    const struct host_busy *b = &t->host_busy;

    *text = '\0';
    if (b->others > TIMING_FIRM_OTHERS)
        snprintf(text, size,
                 ", which was busy: other processes had %.0f%% of its time",
                 100 * b->others);
    else if (b->waited > TIMING_FIRM_WAITED)
        snprintf(text, size,
                 ", which was busy: the script waited for it in %.0f%% of its "
                 "time",
                 100 * b->waited);
    else if (t->host_spread > TIMING_FIRM_SPREAD)
        snprintf(text, size, ", which was busy");
}

/* "a step takes 52.7 ms with this machine's CPU (by one step), and 21.5 ms ..."
 */
static void note_unsure(struct result *r, const struct timing *t)
{
    char step[32], keeps_up[32], by[40] = "one step", busy[96];
    bool few = t->host_steps < TIMING_FIRM_STEPS;

    time_format_ns((double)timing_step_ns(t), step, sizeof step);
    time_format_ns((double)t->keeps_up_ns, keeps_up, sizeof keeps_up);
    if (t->host_steps > 1)
        snprintf(by, sizeof by, "the best of %zu steps", t->host_steps);
    format_busy(t, busy, sizeof busy);
    result_note(r,
                "a step takes %s with this machine's CPU%s (by %s), and %s if "
                "the CPU keeps up; run %s on a quiet machine for a firm figure",
                step, busy, by, keeps_up, few ? "12 steps" : "it");
}

static const struct timing_row *module_find(const struct timing *t,
                                            const char *name)
{
    for (size_t i = 0; i < t->module_count; i++)
        if (!strcmp(t->modules[i].name, name))
            return &t->modules[i];
    return NULL;
}

double time_forward_ns(const struct timing *t, const char *names)
{
    char *copy = xstrdup(names), *rest = copy, *name;
    double sum = 0;
    bool known = true;

    while ((name = strsep(&rest, "+"))) {
        const struct timing_row *row = module_find(t, name);
        known = known && row && row->forward_ns > 0;
        sum += row ? row->forward_ns : 0;
    }
    free(copy);
    return known ? sum : 0;
}

/* The step stands for the run, though it is its first. */
static bool is_first_alone(const struct timing *t)
{
    return t->step_count == 1 || t->steps[t->typical].warm_up;
}

/* "a step is 64 calls of GPT2, which the script repeats, 5.2 ms each: a token
 * of each of 8 samples" */
static void note_repeat(struct result *r, const struct timing *t)
{
    const struct timing_step *s = &t->steps[t->typical];
    uint32_t given = s->input.calls ? s->input.calls : 1;
    uint32_t calls = s->calls ? s->calls : given;
    char each[32], tokens[80] = "", of[160] = "outermost modules";

    if (!s->calls && !s->input.generates)
        return;
    time_format_ns((double)timing_step_ns(t) / calls, each, sizeof each);
    if (s->input.generates)
        snprintf(tokens, sizeof tokens, ": a new token of each of %" PRIu64,
                 s->input.samples / given);
    if (t->input_module && given == calls)
        snprintf(of, sizeof of, "%s", t->input_module);
    if (s->calls)
        result_note(r,
                    "a step is %" PRIu32 " calls of %s, which the script "
                    "repeats together; a call takes %s%s",
                    calls, of, each, tokens);
    else if (calls > 1)
        result_note(r,
                    "a step has %" PRIu32 " calls of %s; a call takes %s%s",
                    calls, of, each, tokens);
    else
        result_note(r, "a step is one call of %s%s", of, tokens);
}

void time_notes(struct result *r)
{
    const struct timing *t = time_slowest(r);

    if (!t || t->imported)
        return;
    note_repeat(r, t);
    if (is_first_alone(t))
        result_note(r, "the step's time is that of one step, the first, in "
                       "which the optimizer makes its state");
    if (timing_is_unsure(t) && time_waits_for_cpu(t))
        note_unsure(r, t);
    if (t->unknown >= TIME_UNKNOWN_SHARE)
        result_note(r,
                    "%.0f%% of a step's operations have no cost model; they "
                    "count as a few microseconds each: the step may take "
                    "longer",
                    100 * t->unknown);
}
