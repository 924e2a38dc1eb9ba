/* SPDX-License-Identifier: Apache-2.0
 * How many of the SMs had work, and the parts of an imported profile's steps.
 */
#include <math.h>
#include <stdlib.h>

#include "common/base/xmalloc.h"
#include "memsim/time/timing_internal.h"

void busy_add(struct busy *b, const struct simulation_op *op)
{
    struct span span = {.start_ns = op->done.start_ns,
                        .end_ns = op->done.end_ns,
                        .fill = op->price.fill,
                        .kind = (uint8_t)span_kind_of(op->price.engine),
                        .device = (uint8_t)op->device};

    if (span.kind == SPAN_KINDS || op->device >= SESSION_DEVICES)
        return;
    spans_add(&b->simulated, &span);
    span.start_ns = op->measured_start_ns;
    span.end_ns = op->measured_end_ns;
    spans_add(&b->measured, &span);
}

void busy_fini(struct busy *b)
{
    spans_fini(&b->simulated);
    spans_fini(&b->measured);
}

static double *busy_make(const struct spans *s, unsigned device,
                         const struct span_windows *windows)
{
    double *shares = xcalloc(windows->count + 1, sizeof *shares);

    spans_busy(s, device, windows, shares);
    return shares;
}

static double *windows_make(const struct spans *s, unsigned device,
                            const struct span_windows *windows)
{
    double *fills = xcalloc(windows->count + 1, sizeof *fills);

    spans_fill(s, device, windows, fills);
    return fills;
}

static double span_utilization(const struct spans *s, unsigned device,
                               uint64_t from_ns, uint64_t to_ns)
{
    const struct span_windows whole = {from_ns, to_ns, to_ns - from_ns, 1};
    double fill = 0;

    if (s->dropped || to_ns <= from_ns)
        return -1;
    spans_fill(s, device, &whole, &fill);
    return fill;
}

static size_t window_count(uint64_t ns, uint64_t window_ns)
{
    return (size_t)((ns + window_ns - 1) / window_ns);
}

static uint64_t window_of(uint64_t ns)
{
    uint64_t window_ns = TIMING_WINDOW_NS;

    while (window_count(ns, window_ns) > TIMING_WINDOWS_MAX)
        window_ns *= 2;
    return window_ns;
}

/* Windows of the whole length of both; a part of one is none. */
static double greatest_difference(const double *a, const double *b,
                                  size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += fabs(a[i] - b[i]);
    return count ? sum / (double)count : 0;
}

/* The moments of a step on both timelines. */
struct interval {
    uint64_t from_ns, to_ns, measured_from_ns, measured_to_ns;
};

static struct interval interval_of(const struct simulation *s, size_t step)
{
    return (struct interval){s->begins[step].ns, s->ends[step].ns,
                             s->begins[step].measured_ns,
                             s->ends[step].measured_ns};
}

static void step_measured(const struct busy *b, const struct interval *i,
                          unsigned device, struct timing_step *step)
{
    uint64_t from_ns = i->from_ns, measured_from_ns = i->measured_from_ns;
    uint64_t shorter = step->duration_ns < step->measured_ns
                           ? step->duration_ns
                           : step->measured_ns;
    uint64_t window_ns = window_of(shorter);
    const struct span_windows of = {from_ns, from_ns + shorter, window_ns,
                                    window_count(shorter, window_ns)};
    const struct span_windows of_measured = {
        measured_from_ns, measured_from_ns + shorter, window_ns, of.count};

    step->measured =
        spans_parts(&b->measured, device, measured_from_ns, i->measured_to_ns);
    step->measured_sm_utilization = span_utilization(
        &b->measured, device, measured_from_ns, i->measured_to_ns);
    double *simulated = windows_make(&b->simulated, device, &of);
    double *measured = windows_make(&b->measured, device, &of_measured);
    step->sm_utilization_error =
        greatest_difference(simulated, measured, of.count);
    free(simulated);
    free(measured);
}

static void windows_conclude(const struct busy *b, const struct interval *i,
                             unsigned device, bool imported,
                             struct timing_utilization *u)
{
    u->window_ns = window_of(i->to_ns - i->from_ns);
    u->count = window_count(i->to_ns - i->from_ns, u->window_ns);
    const struct span_windows of = {i->from_ns, i->to_ns, u->window_ns,
                                    u->count};
    const struct span_windows of_measured = {
        i->measured_from_ns, i->measured_to_ns, u->window_ns, u->count};
    u->windows = windows_make(&b->simulated, device, &of);
    u->busy = busy_make(&b->simulated, device, &of);
    if (!imported)
        return;
    u->measured = windows_make(&b->measured, device, &of_measured);
    u->measured_busy = busy_make(&b->measured, device, &of_measured);
}

void busy_conclude(struct busy *b, const struct simulation *s, unsigned device,
                   struct timing *t)
{
    spans_sort(&b->simulated);
    spans_sort(&b->measured);
    for (size_t i = 0; i < t->step_count; i++) {
        struct interval interval = interval_of(s, i);
        struct timing_step *step = &t->steps[i];
        step->sm_utilization = span_utilization(
            &b->simulated, device, interval.from_ns, interval.to_ns);
        step->measured_sm_utilization = -1;
        if (step->measured_ns)
            step_measured(b, &interval, device, step);
    }
    if (!t->step_count || b->simulated.dropped)
        return;
    struct interval typical = interval_of(s, t->typical);
    if (typical.to_ns > typical.from_ns)
        windows_conclude(b, &typical, device, t->imported, &t->utilization);
}
