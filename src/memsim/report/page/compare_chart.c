/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/base/svg_page.h"
#include "common/base/text_clean.h"
#include "common/base/units.h"
#include "common/base/xmalloc.h"
#include "memsim/report/text/compare_figures.h"
#include "memsim/report/text/compare_report.h"
#include "memsim/report/text/scaling.h"

#define PAGE_WIDTH  960.0
#define ROW_HEIGHT  24.0
#define BAR_HEIGHT  16.0
#define TOP         64.0
#define LETTER      6.3 /* the width of one, about */
#define LABEL_MOST  44  /* letters */
#define TITLES_SIZE 400
#define MEMORY_FROM 0.0 /* of what the names leave */
#define MEMORY_TO   0.56
#define STEP_FROM   0.78
#define STEP_TO     0.9

static const char *const colours[] = {"#2f5f98", "#6f9bd1", "#b9d0ea"};
static const char *const parts[] = {"allocated", "reserved", "used"};

struct chart {
    FILE *out;
    const struct compare_report *report;
    struct compare_figures *figures;
    double left, width; /* right of the names */
    double most_bytes, most_ns;
};

/* The values of a run, as "4, on"; a long one is cut. */
static void label_of(const struct chart *c, size_t row, char *out, size_t size)
{
    char value[2 * LABEL_MOST];
    size_t at = 0;

    out[0] = '\0';
    for (size_t k = 0; k < c->report->title_count && at < size; k++) {
        text_quote(value, sizeof value, c->report->rows[row].cells[k]);
        at +=
            (size_t)snprintf(out + at, size - at, "%s%s", k ? ", " : "", value);
    }
}

/* The names of those values. */
static void titles_of(const struct chart *c, char out[TITLES_SIZE])
{
    size_t at = 0;

    out[0] = '\0';
    for (size_t k = 0; k < c->report->title_count && at < TITLES_SIZE; k++)
        at += (size_t)snprintf(out + at, TITLES_SIZE - at, "%s%s",
                               k ? ", " : "", c->report->titles[k]);
}

static double x_of(const struct chart *c, double share)
{
    return c->left + share * c->width;
}

static double memory_x(const struct chart *c, double bytes)
{
    return x_of(c, MEMORY_FROM +
                       (MEMORY_TO - MEMORY_FROM) * bytes / c->most_bytes);
}

static void draw_memory(const struct chart *c, size_t row, double y)
{
    const struct compare_figures *f = &c->figures[row];
    const uint64_t bytes[] = {f->allocated, f->reserved, f->used};
    double from = c->left;
    char size[32], text[80];

    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
        double to = memory_x(c, (double)bytes[i]);
        if (to > from)
            svg_rectangle(c->out, from, y, to - from, BAR_HEIGHT, colours[i]);
        from = to > from ? to : from;
    }
    if (f->capacity)
        svg_rectangle(c->out, memory_x(c, (double)f->capacity) - 1, y - 3, 2,
                      BAR_HEIGHT + 6, f->whole ? "#555" : "#c62828");
    snprintf(text, sizeof text, "%s%s, %s", f->whole ? "" : "at least ",
             units_format_bytes(f->used, size, sizeof size),
             result_verdict_name(c->report->rows[row].result->verdict));
    svg_text(c->out, x_of(c, MEMORY_TO) + 8, y + BAR_HEIGHT - 4, 11, "start",
             text);
}

static void draw_step(const struct chart *c, size_t row, double y)
{
    const struct compare_figures *f = &c->figures[row];
    double from = x_of(c, STEP_FROM), whole = x_of(c, STEP_TO) - from;
    char text[40];

    if (!f->step_ns)
        return;
    double width = whole * (double)f->step_ns / c->most_ns;
    svg_rectangle(c->out, from, y, width, BAR_HEIGHT, "#5b8f5b");
    snprintf(text, sizeof text, "%.1f ms", (double)f->step_ns / 1e6);
    svg_text(c->out, from + width + 6, y + BAR_HEIGHT - 4, 11, "start", text);
}

static void draw_row(const struct chart *c, size_t row)
{
    const struct compare_row *r = &c->report->rows[row];
    double y = TOP + (double)row * ROW_HEIGHT;
    char label[4 * LABEL_MOST];

    label_of(c, row, label, sizeof label);
    svg_text(c->out, c->left - 10, y + BAR_HEIGHT - 4, 11, "end", label);
    if (c->figures[row].known) {
        draw_memory(c, row, y);
        draw_step(c, row, y);
    } else {
        svg_text(c->out, c->left, y + BAR_HEIGHT - 4, 11, "start",
                 r->result ? result_verdict_name(r->result->verdict) : r->why);
    }
}

static void draw_head(const struct chart *c)
{
    double x = c->left;
    char titles[TITLES_SIZE];

    titles_of(c, titles);
    svg_text(c->out, c->left - 10, TOP - 14, 12, "end", titles);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        svg_rectangle(c->out, x, TOP - 50, 11, 11, colours[i]);
        svg_text(c->out, x + 16, TOP - 40, 11, "start", parts[i]);
        x += 90;
    }
    svg_rectangle(c->out, x, TOP - 53, 2, 17, "#555");
    svg_text(c->out, x + 8, TOP - 40, 11, "start", "the GPU's memory");
    svg_text(c->out, c->left, TOP - 14, 12, "start",
             "peak memory of the fullest GPU");
    if (c->most_ns > 0)
        svg_text(c->out, x_of(c, STEP_FROM), TOP - 14, 12, "start",
                 "predicted step");
}

static void chart_measure(struct chart *c)
{
    char label[4 * LABEL_MOST];
    char titles[TITLES_SIZE];

    titles_of(c, titles);
    size_t longest = strlen(titles) * 9 / 8; /* its letters are larger */
    longest = longest < 4 ? 4 : longest;
    c->most_bytes = 1;
    for (size_t i = 0; i < c->report->row_count; i++) {
        struct compare_figures *f = &c->figures[i];
        *f = compare_figures_of(c->report->rows[i].result, &c->report->terms);
        double bytes = (double)(f->capacity > f->used ? f->capacity : f->used);
        c->most_bytes = bytes > c->most_bytes ? bytes : c->most_bytes;
        c->most_ns =
            (double)f->step_ns > c->most_ns ? (double)f->step_ns : c->most_ns;
        label_of(c, i, label, sizeof label);
        longest = strlen(label) > longest ? strlen(label) : longest;
    }
    longest = longest < LABEL_MOST ? longest : LABEL_MOST;
    c->left = 30 + LETTER * (double)longest;
    c->width = PAGE_WIDTH - c->left - 20;
}

void compare_report_chart(const void *report, FILE *out)
{
    struct chart c = {.out = out, .report = report};

    c.figures = xcalloc(c.report->row_count + 1, sizeof *c.figures);
    chart_measure(&c);
    double end = TOP + (double)c.report->row_count * ROW_HEIGHT + 16;
    double more =
        c.report->nodes ? scaling_chart_height(c.report, *c.report->nodes) : 0;
    svg_begin(out, PAGE_WIDTH, end + more);
    draw_head(&c);
    for (size_t i = 0; i < c.report->row_count; i++)
        draw_row(&c, i);
    if (more > 0)
        scaling_chart(c.report, *c.report->nodes, end, out);
    svg_end(out);
    free(c.figures);
}
