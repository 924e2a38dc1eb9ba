/* SPDX-License-Identifier: Apache-2.0 */
#include "commfit/predict.h"
#include "commfit/plot.h"
#include "common/base/svg_plot.h"
#include "common/base/xmalloc.h"

#include <math.h>
#include <stdlib.h>

#define WIDTH  360.0
#define HEIGHT 240.0
#define MARGIN 60.0

#define COLOURS (sizeof colours / sizeof *colours)
static const char *const colours[] = {"#1b6ca8", "#d1495b", "#2e933c",
                                      "#e59500", "#7b2d8b", "#00798c"};

/* The prediction's figure of one kind. */
typedef double figure_of(const struct prediction *p);

static double time_of(const struct prediction *p)
{
    return p->answer.us;
}

static double low_of(const struct prediction *p)
{
    return p->answer.low_us;
}

static double high_of(const struct prediction *p)
{
    return p->answer.high_us;
}

static double rate_of(const struct prediction *p)
{
    return p->busbw_gbps;
}

static double across_of(const struct prediction *p, bool nodes)
{
    return nodes ? p->nodes : p->bytes;
}

static void widen_range(const struct predictions *p, figure_of *figure,
                        double *low, double *high)
{
    for (size_t i = 0; i < p->count; i++) {
        double v = figure(&p->items[i]);

        if (!p->items[i].answered || !(v > 0))
            continue;
        *low = fmin(*low, v);
        *high = fmax(*high, v);
    }
}

/* Two predictions on one line: all but what is on the across axis is the same.
 */
static bool same_line(const struct prediction *a, const struct prediction *b,
                      bool nodes)
{
    return a->gpus == b->gpus &&
           (nodes ? a->bytes == b->bytes : a->nodes == b->nodes);
}

/* COUNT predictions from FIRST on, which differ across alone. */
struct line {
    const struct prediction *first;
    size_t count;
    uint32_t number; /* tells lines apart */
    bool nodes;      /* what is across */
};

static void draw_line(const struct svg_panel *panel, const struct line *line,
                      figure_of *figure, bool dashed)
{
    double *across = xcalloc(line->count, sizeof *across);
    double *up = xcalloc(line->count, sizeof *up);
    const char *colour = colours[line->number % COLOURS];

    for (size_t i = 0; i < line->count; i++) {
        const struct prediction *q = &line->first[i];

        across[i] = across_of(q, line->nodes);
        up[i] = q->answered ? figure(q) : NAN;
        if (!dashed && q->answered)
            svg_point(panel, across[i], up[i], colour, line->number,
                      q->answer.flags);
    }
    svg_line(panel, across, up, (uint32_t)line->count, colour, dashed);
    free(across);
    free(up);
}

/* What a panel shows. */
struct view {
    const char *title;
    figure_of *figure;
    int column;
    bool nodes, band;
};

static void draw_lines(const struct predictions *p, const struct view *v,
                       const struct svg_panel *panel)
{
    uint32_t number = 0;

    for (size_t i = 0, end; i < p->count; i = end, number++) {
        for (end = i + 1; end < p->count &&
                          same_line(&p->items[i], &p->items[end], v->nodes);
             end++)
            ;
        const struct line line = {&p->items[i], end - i, number, v->nodes};
        draw_line(panel, &line, v->figure, false);
        if (!v->band)
            continue;
        draw_line(panel, &line, low_of, true);
        draw_line(panel, &line, high_of, true);
    }
}

static void draw_panel(const struct predictions *p, const struct view *v,
                       FILE *out)
{
    double low = INFINITY, high = 0, left = INFINITY, right = 0;

    widen_range(p, v->figure, &low, &high);
    if (v->band) {
        widen_range(p, low_of, &low, &high);
        widen_range(p, high_of, &low, &high);
    }
    for (size_t i = 0; i < p->count; i++) {
        left = fmin(left, across_of(&p->items[i], v->nodes));
        right = fmax(right, across_of(&p->items[i], v->nodes));
    }
    if (!(high > 0))
        return;
    const struct svg_panel panel = {
        .out = out,
        .x = MARGIN + v->column * (WIDTH + MARGIN),
        .y = 60,
        .width = WIDTH,
        .height = HEIGHT,
        .across = {left / 1.2, right * 1.2, true,
                   v->nodes ? SVG_PLAIN : SVG_BYTES,
                   v->nodes ? "nodes" : "size"},
        .up = {low / 1.5, high * 1.5, true, v->band ? SVG_US : SVG_PLAIN,
               v->band ? "time" : "GB/s"},
        .title = v->title,
    };
    svg_panel_draw(&panel);
    draw_lines(p, v, &panel);
}

int predict_plot(const struct predictions *p, const char *cluster,
                 const char *path, struct err *err)
{
    const struct prediction *first = &p->items[0];
    const struct prediction *last = &p->items[p->count - 1];
    bool nodes = first->bytes == last->bytes && first->nodes != last->nodes;
    struct plot_page page;
    char title[160];

    if (plot_page_begin(&page, path, err))
        return -1;
    svg_begin(page.out, 2 * (WIDTH + MARGIN) + MARGIN, HEIGHT + 130);
    snprintf(title, sizeof title, "%s on %s", fit_coll_name(first->coll),
             cluster);
    svg_text(page.out, MARGIN, 26, 15, "start", title);
    draw_panel(
        p, &(struct view){"time, with its 80% band", time_of, 0, nodes, true},
        page.out);
    draw_panel(p, &(struct view){"bus bandwidth", rate_of, 1, nodes, false},
               page.out);
    svg_text(page.out, MARGIN, HEIGHT + 110, 10, "start",
             "filled: inside the measurements; hollow: carried over or "
             "extrapolated");
    svg_end(page.out);
    return plot_page_end(&page, path, err);
}
