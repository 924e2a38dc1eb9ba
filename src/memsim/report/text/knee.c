/* SPDX-License-Identifier: Apache-2.0
 *
 *   step                       /   end: slope = calls that a step waits for
 *    |                       /
 *    |______________________/      start: slope 0, all calls are hidden
 *    +---------------------|--->
 *                        knee   delay of each call
 *
 * The step's time is a convex function of the delay: the longest of the paths
 * through a step, each with so many delayed calls on it. */
#include "memsim/report/text/knee.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json_add.h"
#include "common/base/xmalloc.h"
#include "memsim/report/text/scaling.h"

#define FLAT      0.1 /* calls a step: fewer are a rounding's */
#define BAR_CELLS 40

static double slope_of(const struct knee_point *a, const struct knee_point *b)
{
    return ((double)b->step_ns - (double)a->step_ns) /
           ((double)b->delay_ns - (double)a->delay_ns);
}

/* Where the line through A of SLOPE_A crosses that through B of SLOPE_B; they
 * differ. */
static double cross_lines(const struct knee_point *a, double slope_a,
                          const struct knee_point *b, double slope_b)
{
    double at_a = (double)a->step_ns - slope_a * (double)a->delay_ns;
    double at_b = (double)b->step_ns - slope_b * (double)b->delay_ns;

    return (at_a - at_b) / (slope_b - slope_a);
}

/* The knee behind the point FLAT: its line goes on to that of the next two, but
 * not beyond the first of these. */
static double knee_at(const struct knee_point *points, size_t count,
                      size_t flat)
{
    const struct knee_point *next = &points[flat + 1];
    double least = (double)points[flat].delay_ns;

    if (flat + 2 >= count)
        return least;
    double slope = slope_of(next, next + 1);
    if (!(slope > FLAT))
        return least;
    double at = cross_lines(&points[0], 0, next, slope);
    return fmin(fmax(at, least), (double)next->delay_ns);
}

struct knee knee_find(const struct knee_point *points, size_t count)
{
    size_t last = count - 1, flat = 0;
    struct knee k = {.start = slope_of(&points[0], &points[1])};

    while (flat < last && slope_of(&points[0], &points[flat + 1]) < FLAT)
        flat++;
    k.all = flat == last;
    k.hidden_ns = k.all ? (double)points[last].delay_ns
                        : knee_at(points, count, flat);
    if (flat + 1 < last)
        k.slope = slope_of(&points[last - 1], &points[last]);
    if (!flat && k.slope > k.start + FLAT)
        k.turn_ns = cross_lines(&points[0], k.start, &points[last], k.slope);
    if (!flat)
        k.hidden_ns = 0;
    return k;
}

/* --- rows ----------------------------------------------------------------- */

static int point_compare(const void *a, const void *b)
{
    const struct knee_point *x = a, *y = b;

    return (x->delay_ns > y->delay_ns) - (x->delay_ns < y->delay_ns);
}

/* The points of the rows that differ from row AT in the delay alone, in POINTS;
 * none where an earlier row has them. */
static size_t points_of(const struct compare_report *r, size_t at,
                        struct knee_point *points)
{
    size_t count = 0, kept = 0;

    for (size_t i = 0; i < r->row_count; i++) {
        const struct compare_row *row = &r->rows[i];
        if (!compare_rows_alike(r, r->delays->axis, row, &r->rows[at]))
            continue;
        if (i < at)
            return 0;
        struct compare_figures f = compare_figures_of(row->result, &r->terms);
        if (f.step_ns)
            points[count++] =
                (struct knee_point){r->delays->ns[i], f.step_ns};
    }
    qsort(points, count, sizeof *points, point_compare);
    for (size_t i = 0; i < count; i++)
        if (!i || points[i].delay_ns > points[kept - 1].delay_ns)
            points[kept++] = points[i];
    return kept;
}

/* FIRST_NS: the second point's delay. */
static void write_words(const struct knee *k, uint64_t first_ns, FILE *out)
{
    double most = k->hidden_ns / 1e6;

    if (k->all)
        fprintf(out, "  up to %.2g ms a call is hidden, and that is the "
                     "longest that was tried\n", most);
    else if (k->hidden_ns > 0)
        fprintf(out, "  up to %.2g ms a call is hidden", most);
    else
        fprintf(out, "  the shortest delay that was tried, %.2g ms, is not "
                     "hidden: a step takes %.1f\n  times that longer",
                (double)first_ns / 1e6, k->start);
    if (k->all)
        return;
    if (k->turn_ns > 0)
        fprintf(out, ",\n  and from about %.2g ms on",
                k->turn_ns / 1e6);
    else if (k->slope > 0)
        fputs(k->hidden_ns > 0 ? "; beyond it" : ",\n  and at the end", out);
    if (k->slope > 0)
        fprintf(out, " a step takes %.1f times the delay longer (%.1f calls "
                     "a step)\n", k->slope, k->slope);
    else
        fputs("; longer delays will show how many calls a step waits for\n",
              out);
}

static void write_bars(const struct knee_point *points, size_t count, FILE *out)
{
    double most = (double)points[count - 1].step_ns;

    for (size_t i = 0; i < count; i++) {
        double part = (double)points[i].step_ns / most;
        int cells = (int)(fmin(part, 1) * BAR_CELLS + 0.5);
        fprintf(out, "  %8.3g ms %10.2f ms  [%.*s%.*s]\n",
                (double)points[i].delay_ns / 1e6,
                (double)points[i].step_ns / 1e6, cells,
                "########################################", BAR_CELLS - cells,
                "........................................");
    }
}

void knee_write(const struct compare_report *r, FILE *out)
{
    struct knee_point *points = xcalloc(r->row_count + 1, sizeof *points);

    for (size_t at = 0; at < r->row_count; at++) {
        size_t count = points_of(r, at, points);
        if (count < 2)
            continue;
        struct knee k = knee_find(points, count);
        fputs("\n  step by delay", out);
        compare_row_write_rest(r, r->delays->axis, &r->rows[at], out);
        fputc('\n', out);
        write_bars(points, count, out);
        write_words(&k, points[1].delay_ns, out);
    }
    free(points);
}

void knee_json(struct cJSON *root, const struct compare_report *r)
{
    struct knee_point *points = xcalloc(r->row_count + 1, sizeof *points);
    cJSON *list = cJSON_AddArrayToObject(root, "knees");

    for (size_t at = 0; at < r->row_count; at++) {
        size_t count = points_of(r, at, points);
        if (count < 2)
            continue;
        struct knee k = knee_find(points, count);
        cJSON *item = cJSON_CreateObject();
        json_add_uint(item, "first_run", at);
        json_add_uint(item, "hidden_ns", (uint64_t)llround(k.hidden_ns));
        cJSON_AddBoolToObject(item, "all_hidden", k.all);
        cJSON_AddNumberToObject(item, "calls_at_first", k.start);
        if (k.slope > 0)
            cJSON_AddNumberToObject(item, "calls", k.slope);
        cJSON_AddItemToArray(list, item);
    }
    free(points);
}
