/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/text/truth_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/array_sort.h"
#include "common/base/demangle.h"
#include "common/base/units.h"
#include "common/base/xmalloc.h"
#include "memsim/report/text/text_columns.h"
#include "memsim/report/text/time_report.h"
#include "memsim/time/timing.h"
#include "memsim/time/truth_blocks.h"

#define ROWS         15
#define NAME_COLUMNS 60
#define NAME_BYTES   4096

/* --- figures -------------------------------------------------------------- */

static const struct result_device *device_of(const struct truth_half *h)
{
    return &h->result->ranks[0].devices[0];
}

static double percent_off(double estimate, double run)
{
    return run > 0 ? 100 * (estimate / run - 1) : 0;
}

static void write_bytes(FILE *out, const char *name, uint64_t estimate,
                        uint64_t run)
{
    char a[16], b[16];

    if (estimate || run)
        fprintf(out, "  %-26s %14s %14s %+9.2f%%\n", name,
                units_format_bytes(estimate, a, sizeof a),
                units_format_bytes(run, b, sizeof b),
                percent_off((double)estimate, (double)run));
}

static void write_ns(FILE *out, const char *name, uint64_t estimate,
                     uint64_t run)
{
    if (estimate || run)
        fprintf(out, "  %-26s %11.3f ms %11.3f ms %+9.1f%%\n", name,
                (double)estimate / 1e6, (double)run / 1e6,
                percent_off((double)estimate, (double)run));
}

static void write_steps(const struct truth *t, FILE *out)
{
    const struct timing *a = time_slowest(t->estimate.result);
    const struct timing *b = time_slowest(t->run.result);

    if (!a || !b)
        return;
    const struct timing_step *x = &a->steps[a->typical];
    const struct timing_step *y = &b->steps[b->typical];
    write_ns(out, "a step", x->duration_ns, y->duration_ns);
    write_ns(out, "  compute", x->compute_ns, y->compute_ns);
    write_ns(out, "  communication, exposed", x->exposed_comm_ns,
             y->exposed_comm_ns);
    write_ns(out, "  copies, exposed", x->exposed_copy_ns, y->exposed_copy_ns);
    write_ns(out, "  waits for the host", x->host_bound_ns, y->host_bound_ns);
}

static const char *verdict_text(const struct truth_half *h)
{
    switch (h->result->verdict) {
    case VERDICT_FITS:
    case VERDICT_GROWS:
    case VERDICT_INPUT:
        return "fits";
    case VERDICT_OOM:
        return "out of memory";
    case VERDICT_FAILED:
        return "failed";
    default:
        return "other";
    }
}

static void write_figures(const struct truth *t, FILE *out)
{
    const struct result_device *a = device_of(&t->estimate);
    const struct result_device *b = device_of(&t->run);

    fprintf(out, "  %-26s %14s %14s %10s\n", "", "estimate", "run", "off by");
    fprintf(out, "  %-26s %14s %14s\n", "verdict", verdict_text(&t->estimate),
            verdict_text(&t->run));
    write_bytes(out, "peak allocated", a->peak_allocated_bytes,
                b->peak_allocated_bytes);
    write_bytes(out, "peak reserved", a->peak_reserved_bytes,
                b->peak_reserved_bytes);
    write_bytes(out, "peak used", a->peak_used_bytes, b->peak_used_bytes);
    write_bytes(out, "  context", a->context_bytes, b->context_bytes);
    write_bytes(out, "  libraries", a->libraries_bytes, b->libraries_bytes);
    write_steps(t, out);
}

/* --- blocks --------------------------------------------------------------- */

static void write_event(const struct truth_side *s, size_t i, FILE *out)
{
    char a[16];

    if (i >= s->event_count) {
        fputs("the end", out);
        return;
    }
    const struct truth_event *e = &s->events[i];
    fprintf(out, "%s of %s", e->is_free ? "free" : "block",
            units_format_bytes(e->block_bytes, a, sizeof a));
    if (*truth_operator(s, e))
        fprintf(out, " by %s", truth_operator(s, e));
    if (*truth_module(s, e))
        fprintf(out, " in %s", truth_module(s, e));
}

static uint64_t pair_bytes(const struct truth_event *e)
{
    return e ? e->requested_bytes : 0;
}

/* Blocks of another size in the same place, or of one side alone: workspaces,
 * as a rule. */
static void write_size(const struct truth *t, size_t number,
                       const struct truth_pair *p, FILE *out)
{
    char x[16], y[16];

    fprintf(out, "    event %zu: %s, %s in the run (%s)\n", number,
            units_format_bytes(pair_bytes(p->estimate), x, sizeof x),
            units_format_bytes(pair_bytes(p->run), y, sizeof y),
            p->run ? truth_operator(&t->run.side, p->run)
                   : truth_operator(&t->estimate.side, p->estimate));
}

/* Goes through the pairs to *AT, where they end. Returns how many blocks are in
 * one side alone. */
static size_t write_sizes(const struct truth *t, struct truth_walk *at,
                          FILE *out)
{
    struct truth_pair p;
    size_t sizes = 0, alone = 0, number = 0;

    for (; truth_walk_next(&t->estimate.side, &t->run.side, at, &p);
         number = at->estimate) {
        bool both = p.estimate && p.run;
        if (pair_bytes(p.estimate) == pair_bytes(p.run))
            continue;
        sizes += both;
        alone += !both;
        if (sizes + alone <= ROWS)
            write_size(t, number, &p, out);
    }
    if (sizes)
        fprintf(out, "  %zu blocks have another size in the run\n", sizes);
    if (alone)
        fprintf(out, "  %zu blocks are in one of both alone\n", alone);
    return alone;
}

static void write_blocks(const struct truth *t, FILE *out)
{
    const struct truth_side *a = &t->estimate.side, *b = &t->run.side;
    struct truth_walk at = {0};

    if (!a->event_count && !b->event_count)
        return; /* no PyTorch */
    size_t alone = write_sizes(t, &at, out);
    if (at.estimate == a->event_count && at.run == b->event_count) {
        if (alone)
            fputs("  the allocator has the same other events in both\n", out);
        else
            fprintf(out, "  the allocator has the same %zu events in both\n",
                    at.estimate);
        return;
    }
    fprintf(out, "  the allocator's events differ from number %zu on: ",
            at.estimate);
    write_event(a, at.estimate, out);
    fputs("; in the run ", out);
    write_event(b, at.run, out);
    fputc('\n', out);
}

/* --- workspaces ----------------------------------------------------------- */

static bool asks_otherwise(const struct truth_convolution *a,
                           const struct truth_convolution *b)
{
    return a && a->workspace_bytes != b->workspace_bytes;
}

/* Convolutions for which cuDNN asks for more or less than was estimated. */
static void write_workspaces(const struct truth *t, FILE *out)
{
    const struct truth_side *run = &t->run.side;
    size_t count = 0;

    for (size_t i = 0; i < run->convolution_count; i++) {
        const struct truth_convolution *b = &run->convolutions[i];
        const struct truth_convolution *a =
            truth_convolution_of(&t->estimate.side, b->key);
        char x[16], y[16], shape[NAME_COLUMNS * 2];

        if (!asks_otherwise(a, b) || count++ >= ROWS)
            continue;
        truth_shape(b->text, strlen(b->text), shape, sizeof shape);
        fprintf(out, "    workspace: %s, %s in the run (%s%s)\n",
                units_format_bytes(a->workspace_bytes, x, sizeof x),
                units_format_bytes(b->workspace_bytes, y, sizeof y),
                truth_pass(b->operation), shape);
    }
    if (run->convolution_count)
        fprintf(out, "  %zu of %zu convolutions of the run ask for another "
                     "workspace\n",
                count, run->convolution_count);
}

/* --- times ---------------------------------------------------------------- */

struct row {
    const char *name;
    double estimate_ns, run_ns;
    uint64_t estimate_count, run_count;
    const struct truth_work *a, *b; /* of a kernel; NULL: only in the other */
};

static int compare_rows(const void *one, const void *other)
{
    const struct row *x = one, *y = other;
    double a = fabs(x->estimate_ns - x->run_ns);
    double b = fabs(y->estimate_ns - y->run_ns);

    if (a != b)
        return a > b ? -1 : 1;
    return strcmp(x->name, y->name);
}

static void write_rows(struct row *rows, size_t count, const char *title,
                       FILE *out)
{
    char text[NAME_BYTES];

    if (!count)
        return;
    array_sort(rows, count, sizeof *rows, compare_rows);
    fprintf(out, "  %s\n  %9s %9s %10s %10s\n", title, "estimate", "run", "ms",
            "ms");
    for (size_t i = 0; i < count && i < ROWS; i++) {
        const struct row *r = &rows[i];

        fprintf(out, "  %9" PRIu64 " %9" PRIu64 " %10.3f %10.3f  ",
                r->estimate_count, r->run_count, r->estimate_ns / 1e6,
                r->run_ns / 1e6);
        demangle(r->name, text, sizeof text);
        text_write_end(out, text, NAME_COLUMNS);
        fputs(r->a && r->b && !r->a->grids && !r->b->grids &&
                      (r->a->grid_x_y != r->b->grid_x_y ||
                       r->a->grid_z != r->b->grid_z)
                  ? " (another grid)\n"
                  : "\n",
              out);
    }
    if (count > ROWS)
        fprintf(out, "  ... and %zu more\n", count - ROWS);
}

static void write_families(const struct truth *t, FILE *out)
{
    const struct truth_side *a = &t->estimate.side, *b = &t->run.side;
    struct row rows[WORK_FAMILIES];
    size_t count = 0;

    for (int f = 0; f < WORK_FAMILIES; f++)
        if (a->family_count[f] || b->family_count[f])
            rows[count++] = (struct row){
                .name = work_family_name((enum work_family)f),
                .estimate_ns = a->family_ns[f],
                .run_ns = b->family_ns[f],
                .estimate_count = a->family_count[f],
                .run_count = b->family_count[f]};
    write_rows(rows, count, "device time of the whole run, by what it is", out);
}

static bool work_differs(const struct truth_work *a, const struct truth_work *b)
{
    return !a || !b || a->count != b->count || a->grid_x_y != b->grid_x_y ||
           a->grid_z != b->grid_z;
}

static struct row row_of(const struct truth_work *a, const struct truth_work *b)
{
    return (struct row){.name = a ? a->name : b->name,
                        .estimate_ns = a ? a->ns : 0,
                        .run_ns = b ? b->ns : 0,
                        .estimate_count = a ? a->count : 0,
                        .run_count = b ? b->count : 0,
                        .a = a,
                        .b = b};
}

/* Kernels that only one side has, or another number or size of; or the others.
 */
static void write_kernels(const struct truth *t, bool other, const char *title,
                          FILE *out)
{
    const struct truth_side *a = &t->estimate.side, *b = &t->run.side;
    struct row *rows =
        xcalloc(a->work_count + b->work_count + 1, sizeof *rows);
    size_t count = 0;

    for (size_t i = 0; i < a->work_count; i++) {
        const struct truth_work *w = truth_work_of(b, a->works[i].name);
        if (work_differs(&a->works[i], w) == other)
            rows[count++] = row_of(&a->works[i], w);
    }
    for (size_t i = 0; other && i < b->work_count; i++)
        if (!truth_work_of(a, b->works[i].name))
            rows[count++] = row_of(NULL, &b->works[i]);
    write_rows(rows, count, title, out);
    free(rows);
}

/* -------------------------------------------------------------------------- */

void truth_text_write(const struct truth *t, FILE *out)
{
    fprintf(out, "memsim: %s beside %s, on %s\n", t->estimate.name,
            t->run.name, t->run.result->gpu.device_name);
    write_figures(t, out);
    write_blocks(t, out);
    write_workspaces(t, out);
    write_families(t, out);
    write_kernels(t, true, "kernels with another name, number or grid", out);
    write_kernels(t, false, "the same kernels", out);
    if (!t->run.side.measured)
        fputs("  note: the run has no times of a GPU: those are the cost "
              "models'\n",
              out);
}
