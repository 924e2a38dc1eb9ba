/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/svg_plot.h"
#include "common/base/xmalloc.h"
#include "memsim/report/text/scaling.h"

#define LEFT       60.0
#define TOP        40.0
#define WIDTH      480.0
#define HEIGHT     220.0
#define BOTTOM     44.0
#define KEY        16.0 /* a line of it */
#define KEY_LEFT   (LEFT + WIDTH + 24)
#define LABEL_MOST 60

static const char *const colours[] = {"#2f5f98", "#c46a1b", "#3f8f4f",
                                      "#8a4fa3", "#a3324a", "#5b5b5b"};

struct point {
    double nodes, percent;
};

/* Whether no row before ROW differs from it in the nodes alone. */
static bool is_first(const struct compare_report *r, size_t axis, size_t row)
{
    for (size_t i = 0; i < row; i++)
        if (compare_rows_alike(r, axis, &r->rows[i], &r->rows[row]))
            return false;
    return true;
}

static int by_nodes(const void *a, const void *b)
{
    double x = ((const struct point *)a)->nodes;
    double y = ((const struct point *)b)->nodes;

    return (x > y) - (x < y);
}

/* Sets POINTS to those of the curve of ROW, from few nodes to many. */
static size_t curve_find(const struct compare_report *r, size_t axis,
                         size_t row, struct point *points)
{
    size_t count = 0;

    for (size_t i = row; i < r->row_count; i++)
        if (r->rows[i].efficiency > 0 &&
            compare_rows_alike(r, axis, &r->rows[i], &r->rows[row]))
            points[count++] =
                (struct point){(double)scaling_nodes(&r->rows[i], axis),
                               100 * r->rows[i].efficiency};
    if (count)
        qsort(points, count, sizeof *points, by_nodes);
    return count;
}

/* The curve's other values, if there are any. */
static void draw_key(const struct svg_panel *p, const struct compare_report *r,
                     size_t axis, size_t row, size_t curve)
{
    double y = p->y + 8 + KEY * (double)curve;
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);

    if (!out)
        abort(); /* only for lack of memory */
    compare_row_write_rest(r, axis, &r->rows[row], out);
    fclose(out);
    if (length > LABEL_MOST)
        strcpy(text + LABEL_MOST - 3, "...");
    if (length) {
        svg_shape(p->out, KEY_LEFT, y - 4, colours[curve % 6], (uint32_t)curve,
                  false);
        svg_text(p->out, KEY_LEFT + 10, y, 11, "start", text + 2);
    }
    free(text);
}

static void draw_curve(const struct svg_panel *p, const struct point *points,
                       size_t count, size_t curve)
{
    const char *colour = colours[curve % 6];

    for (size_t i = 0; i < count; i++) {
        const struct point *end = &points[i + 1 < count ? i + 1 : i];
        const double across[] = {points[i].nodes, end->nodes};
        const double up[] = {points[i].percent, end->percent};
        svg_line(p, across, up, 2, colour, false);
        svg_point(p, points[i].nodes, points[i].percent, colour,
                  (uint32_t)curve, false);
    }
}

/* The panel, with axes that hold all rows. */
static struct svg_panel panel_of(const struct compare_report *r, size_t axis,
                                 double y, FILE *out)
{
    double least = INFINITY, most = 1, percent = 100;

    for (size_t i = 0; i < r->row_count; i++) {
        double nodes = (double)scaling_nodes(&r->rows[i], axis);
        if (!(r->rows[i].efficiency > 0))
            continue;
        least = fmin(least, nodes);
        most = fmax(most, nodes);
        percent = fmax(percent, 100 * r->rows[i].efficiency);
    }
    return (struct svg_panel){
        .out = out,
        .x = LEFT,
        .y = y + TOP,
        .width = WIDTH,
        .height = HEIGHT,
        .across = {least, fmax(most, 2 * least), true, SVG_TWOS, "nodes"},
        .up = {0, 1.05 * percent, false, SVG_PLAIN, "%"},
        .title = "efficiency by nodes"};
}

void scaling_chart(const struct compare_report *report, size_t axis, double y,
                   FILE *out)
{
    const struct svg_panel p = panel_of(report, axis, y, out);
    const double across[] = {p.across.low, p.across.high}, up[] = {100, 100};
    struct point *points = xcalloc(report->row_count + 1, sizeof *points);
    size_t curve = 0;

    svg_panel_draw(&p);
    svg_line(&p, across, up, 2, "#777", true);
    for (size_t i = 0; i < report->row_count; i++) {
        size_t count =
            is_first(report, axis, i) ? curve_find(report, axis, i, points) : 0;
        if (!count)
            continue;
        draw_curve(&p, points, count, curve);
        draw_key(&p, report, axis, i, curve++);
    }
    free(points);
}

double scaling_chart_height(const struct compare_report *report, size_t axis)
{
    size_t curves = 0;

    for (size_t i = 0; i < report->row_count; i++)
        curves += report->rows[i].efficiency > 0 && is_first(report, axis, i);
    return curves ? TOP + BOTTOM + fmax(HEIGHT, KEY * (double)curves) : 0;
}
