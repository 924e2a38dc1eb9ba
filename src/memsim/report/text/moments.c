/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/text/moments.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/units.h"
#include "common/base/xmalloc.h"
#include "memsim/report/text/text_columns.h"

#define CHART_COLUMNS 60
#define CHART_ROWS    7 /* categories at most */
#define PHASE_ROWS    14
#define SIZE_LENGTH   16
#define COLUMNS_MAX   5  /* of the phases of a step */
#define NAME_COLUMN   43 /* of a module, after three sizes */

struct page {
    const struct attribution *a;
    const struct tree_style *style;
    FILE *out;
};

static void write_heading(const struct page *p, const char *text)
{
    fprintf(p->out, "\n  %s%s%s\n", p->style->bold, text, p->style->plain);
}

/* --- the chart ------------------------------------------------------------ */

/* The most that there was in each column's time, by category and of all. */
struct chart {
    uint64_t first_ns, column_ns;
    uint64_t bytes[TRACE_CATEGORY_COUNT][CHART_COLUMNS];
    uint64_t all[CHART_COLUMNS];
    uint64_t most; /* of all */
};

static void raise_bytes(uint64_t *bytes, uint64_t to)
{
    if (*bytes < to)
        *bytes = to;
}

static void column_raise(struct chart *c, size_t column,
                         const struct attribution_sums *sums)
{
    for (size_t i = 0; i < TRACE_CATEGORY_COUNT; i++)
        raise_bytes(&c->bytes[i][column], sums->bytes[i]);
    raise_bytes(&c->all[column], attribution_sum(sums));
    raise_bytes(&c->most, c->all[column]);
}

/* What a point says holds until the next one. */
static void chart_fill(struct chart *c, const struct attribution *a)
{
    const struct attribution_point *points = a->points;
    uint64_t last_ns = points[a->point_count - 1].time_ns;

    c->first_ns = points[0].time_ns;
    c->column_ns = (last_ns - c->first_ns) / CHART_COLUMNS + 1;
    for (size_t i = 0; i < a->point_count; i++) {
        uint64_t until_ns =
            i + 1 < a->point_count ? points[i + 1].time_ns : last_ns;
        size_t at = (points[i].time_ns - c->first_ns) / c->column_ns;
        size_t end = (until_ns - c->first_ns) / c->column_ns;
        for (; at <= end && at < CHART_COLUMNS; at++)
            column_raise(c, at, &points[i].sums);
    }
}

static void write_levels(const struct page *p, const char *name,
                         const uint64_t *bytes, uint64_t most)
{
    static const char levels[] = " .:-=+*#";
    char line[CHART_COLUMNS + 1] = "";

    for (size_t i = 0; i < CHART_COLUMNS; i++) {
        size_t level =
            (size_t)((double)bytes[i] / (double)most * (sizeof levels - 2) +
                     0.5);
        line[i] = bytes[i] && !level ? '.' : levels[level];
    }
    fprintf(p->out, "  %15.15s |%s|\n", name, line);
}

/* The category that was largest at some time, of those not yet told; it is
 * told then. -1: there is none. */
static int largest_take(const struct chart *c, bool *told)
{
    uint64_t most = 0;
    int largest = -1;

    for (int i = 0; i < TRACE_CATEGORY_COUNT; i++)
        for (size_t at = 0; at < CHART_COLUMNS && !told[i]; at++)
            if (c->bytes[i][at] > most) {
                most = c->bytes[i][at];
                largest = i;
            }
    if (largest >= 0)
        told[largest] = true;
    return largest;
}

static void write_chart(const struct page *p)
{
    struct chart *c = xcalloc(1, sizeof *c);
    bool told[TRACE_CATEGORY_COUNT] = {false};
    char text[80];

    chart_fill(c, p->a);
    snprintf(text, sizeof text,
             "over time: %.3g ms of the host's a column, # is the peak",
             (double)c->column_ns / 1e6);
    write_heading(p, text);
    write_levels(p, "allocated", c->all, c->most);
    for (int i = 0, category; i < CHART_ROWS; i++) {
        if ((category = largest_take(c, told)) < 0)
            break;
        write_levels(p,
                     attribution_category_name((enum trace_category)category),
                     c->bytes[category], c->most);
    }
    free(c);
}

/* --- phases --------------------------------------------------------------- */

static void write_phase(const struct page *p, const struct attribution_phase *f)
{
    char peak[SIZE_LENGTH], end[SIZE_LENGTH], bytes[SIZE_LENGTH];
    size_t most = 0;

    for (size_t c = 1; c < TRACE_CATEGORY_COUNT; c++)
        if (f->end.bytes[c] > f->end.bytes[most])
            most = c;
    units_format_bytes(f->peak_bytes, peak, sizeof peak);
    units_format_bytes(attribution_sum(&f->end), end, sizeof end);
    fprintf(p->out, "  %12s %12s  step %-5u %-10s", peak, end, f->step,
            attribution_phase_name(f->phase));
    if (f->end.bytes[most])
        fprintf(p->out, " %s %s",
                units_format_bytes(f->end.bytes[most], bytes, sizeof bytes),
                attribution_category_name((enum trace_category)most));
    fputc('\n', p->out);
}

/* Those of the peak's step, of the one before it and of later ones, as far as
 * there is room. */
static void write_phases(const struct page *p)
{
    const struct attribution *a = p->a;
    size_t at = 0;

    if (!a->phase_count)
        return;
    fprintf(p->out, "  %s%12s %12s  %-10s %-10s %s%s\n", p->style->bold, "peak",
            "at its end", "", "phase", "most of it", p->style->plain);
    while (at < a->phase_count && a->phases[at].step + 1 < a->peak_step)
        at++;
    for (size_t i = at; i < a->phase_count && i < at + PHASE_ROWS; i++)
        write_phase(p, &a->phases[i]);
}

/* --- modules -------------------------------------------------------------- */

static int own_peak_compare(const void *x, const void *y)
{
    const struct attribution_module *const *a = x, *const *b = y;

    if ((*a)->own_peak_bytes != (*b)->own_peak_bytes)
        return (*a)->own_peak_bytes < (*b)->own_peak_bytes ? 1 : -1;
    return strcmp((*a)->name, (*b)->name);
}

static void write_module(const struct page *p,
                         const struct attribution_module *m)
{
    char held[SIZE_LENGTH], self[SIZE_LENGTH], own[SIZE_LENGTH];

    fprintf(p->out, "  %12s %12s %12s  ",
            units_format_bytes(m->bytes_at_peak, held, sizeof held),
            units_format_bytes(m->self_bytes, self, sizeof self),
            units_format_bytes(m->own_peak_bytes, own, sizeof own));
    text_write_end(p->out, m->name, TEXT_COLUMNS - NAME_COLUMN);
    fputc('\n', p->out);
}

/* Those that ever held most first. To be freed. */
static const struct attribution_module **
modules_sort(const struct attribution *a)
{
    const struct attribution_module **sorted =
        xcalloc(a->module_count + 1, sizeof *sorted);

    for (size_t i = 0; i < a->module_count; i++)
        sorted[i] = &a->modules[i];
    qsort(sorted, a->module_count, sizeof *sorted, own_peak_compare);
    return sorted;
}

/* How many of them are told: none that never held anything. */
static size_t modules_top(const struct page *p,
                          const struct attribution_module **sorted)
{
    size_t top = p->style->top ? p->style->top : MOMENTS_TOP, count = 0;

    while (count < top && count < p->a->module_count &&
           sorted[count]->own_peak_bytes)
        count++;
    return count;
}

static void write_modules(const struct page *p)
{
    const struct attribution_module **sorted = modules_sort(p->a);
    size_t top = modules_top(p, sorted);

    fprintf(p->out, "  %s%12s %12s %12s  %s%s\n", p->style->bold, "at the peak",
            "it alone", "its own peak", "module", p->style->plain);
    for (size_t i = 0; i < top; i++)
        write_module(p, sorted[i]);
    free(sorted);
}

/* --- modules at the ends of phases ---------------------------------------- */

/* The phases of one step, those that modules are told of: a column each. */
struct columns {
    const struct attribution_phase *phases[COLUMNS_MAX];
    size_t count;
};

static void columns_fill(struct columns *c, const struct attribution *a,
                         unsigned step)
{
    c->count = 0;
    for (size_t i = 0; i < a->phase_count && c->count < COLUMNS_MAX; i++)
        if (a->phases[i].step == step && a->phases[i].module_bytes)
            c->phases[c->count++] = &a->phases[i];
}

/* Of the peak's step, or of the last one before it that has any. */
static unsigned columns_choose(struct columns *c, const struct attribution *a)
{
    unsigned step = a->peak_step;

    columns_fill(c, a, step);
    while (!c->count && step)
        columns_fill(c, a, --step);
    return step;
}

static void write_ends(const struct page *p, const struct columns *c,
                       size_t module)
{
    char held[SIZE_LENGTH];

    fputc(' ', p->out);
    for (size_t i = 0; i < c->count; i++)
        fprintf(p->out, " %10s",
                units_format_bytes(c->phases[i]->module_bytes[module], held,
                                   sizeof held));
    fputs("  ", p->out);
    text_write_end(p->out, p->a->modules[module].name,
                   TEXT_COLUMNS - 3 - 11 * (int)c->count);
    fputc('\n', p->out);
}

static void write_phase_modules(const struct page *p)
{
    const struct attribution_module **sorted = modules_sort(p->a);
    size_t top = modules_top(p, sorted);
    struct columns c;
    unsigned step = columns_choose(&c, p->a);
    char heading[80];

    snprintf(heading, sizeof heading, "held at the ends of step %u's phases",
             step);
    if (c.count) {
        write_heading(p, heading);
        fprintf(p->out, " %s", p->style->bold);
        for (size_t i = 0; i < c.count; i++)
            fprintf(p->out, " %10s",
                    attribution_phase_name(c.phases[i]->phase));
        fprintf(p->out, "  module%s\n", p->style->plain);
    }
    for (size_t i = 0; c.count && i < top; i++)
        write_ends(p, &c, (size_t)(sorted[i] - p->a->modules));
    free(sorted);
}

void moments_write(const struct attribution *attribution,
                   const struct tree_style *style, FILE *out)
{
    const struct page p = {attribution, style, out};

    if (!attribution->point_count || !attribution_sum(&attribution->at_peak))
        return;
    write_chart(&p);
    write_phases(&p);
    if (!attribution->module_count)
        return;
    write_modules(&p);
    write_phase_modules(&p);
}

/* Whether nothing of a step came after step STEP's last phase. */
static bool is_last(const struct attribution *a, unsigned step)
{
    const struct attribution_phase *last =
        a->phase_count ? &a->phases[a->phase_count - 1] : NULL;

    return last && last->step == step && last->phase == TRACE_PHASE_OTHER;
}

const char *moment_words(const struct attribution *a, unsigned step,
                         enum trace_phase_kind phase, enum episode episode,
                         char text[MOMENT_WORDS])
{
    static const char *const episodes[EPISODE_COUNT] = {
        [EPISODE_EVALUATION] = "evaluation",
        [EPISODE_GENERATION] = "generation",
        [EPISODE_SAVING] = "a checkpoint is saved",
        [EPISODE_LOADING] = "a checkpoint is loaded",
    };
    const char *during = episodes[episode];
    size_t used;

    if (phase == TRACE_PHASE_INIT)
        snprintf(text, MOMENT_WORDS, "before the first step");
    else if (phase == TRACE_PHASE_OTHER)
        snprintf(text, MOMENT_WORDS, "after step %u%s", step,
                 is_last(a, step) ? ", the last one" : "'s backward");
    else
        snprintf(text, MOMENT_WORDS, "in step %u, %s%s", step,
                 step ? "" : "the first, ",
                 during ? during : attribution_phase_name(phase));
    used = strlen(text);
    if (during && (phase == TRACE_PHASE_INIT || phase == TRACE_PHASE_OTHER))
        snprintf(text + used, MOMENT_WORDS - used, ", %s", during);
    return text;
}
