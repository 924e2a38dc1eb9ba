/* SPDX-License-Identifier: Apache-2.0 */
#include "commfit/plot.h"
#include "commfit/fit_write.h"
#include "commfit/plot_png.h"
#include "common/base/svg_plot.h"
#include "common/base/units.h"
#include "common/base/file_write.h"
#include "runtime/nccl/cost_nccl.h"
#include "runtime/nccl/fit_curve.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PANEL_WIDTH  300.0
#define PANEL_HEIGHT 190.0
#define MARGIN       60.0
#define ROW_HEIGHT   (PANEL_HEIGHT + 80)
#define STEPS        160
#define BEYOND       8.0  /* shown past the sizes measured */
#define RESIDUAL_MAX 50.0 /* percent; points beyond lie on the edge */
#define ROWS_MAX     24

static const char *const colours[] = {"#1b6ca8", "#d1495b", "#2e933c",
                                      "#e59500", "#7b2d8b", "#00798c",
                                      "#8d5524", "#555555"};

static const char *colour_of(uint32_t i)
{
    return colours[i % (sizeof colours / sizeof *colours)];
}

/* One family's row of panels. */
struct row {
    const struct fit *fit;
    const struct fit_family *family;
    const struct series_family *series;
    const struct scores *scores;
    FILE *out;
    double top;
    double bytes_low, bytes_high; /* measured */
};

static double answer_us(const struct row *r, uint32_t nodes, double bytes)
{
    struct cost_nccl_answer answer;
    const struct cost_nccl_query query = {
        .coll = r->family->coll,
        .nodes = nodes,
        .gpus_per_node = r->family->gpus_per_node,
        .bytes = bytes,
    };

    return cost_nccl(r->fit, &query, &answer) ? NAN : answer.us;
}

/* GB/s on the bus, as nccl-tests prints it. */
static double bus_bandwidth(const struct row *r, uint32_t nodes, double bytes,
                            double us)
{
    double ranks = (double)nodes * r->family->gpus_per_node;

    return fit_coll_factor(r->family->coll, ranks) * bytes / us / 1e3;
}

static void find_ranges(struct row *r, double *us_low, double *us_high,
                        double *rate_low, double *rate_high)
{
    *us_low = *rate_low = r->bytes_low = INFINITY;
    *us_high = r->bytes_high = *rate_high = 0;
    for (uint32_t i = 0; i < r->series->count; i++)
        for (uint32_t j = 0; j < r->series->series[i].count; j++) {
            const struct series *s = &r->series->series[i];
            const struct series_point *p = &s->points[j];

            r->bytes_low = fmin(r->bytes_low, p->bytes);
            r->bytes_high = fmax(r->bytes_high, p->bytes);
            *us_low = fmin(*us_low, fmin(p->raw_us[0], p->raw_us[1]));
            *us_high = fmax(*us_high, fmax(p->raw_us[0], p->raw_us[1]));
            *rate_low = fmin(*rate_low,
                             bus_bandwidth(r, s->nodes, p->bytes,
                                           fmax(p->raw_us[0], p->raw_us[1])));
            *rate_high = fmax(*rate_high,
                              bus_bandwidth(r, s->nodes, p->bytes,
                                            fmin(p->raw_us[0], p->raw_us[1])));
        }
}

static struct svg_panel panel_at(const struct row *r, int column,
                                 const char *title)
{
    return (struct svg_panel){
        .out = r->out,
        .x = MARGIN + column * (PANEL_WIDTH + MARGIN),
        .y = r->top + 30,
        .width = PANEL_WIDTH,
        .height = PANEL_HEIGHT,
        .across = {fmax(r->bytes_low / BEYOND, 1), r->bytes_high * BEYOND, true,
                   SVG_BYTES, "size"},
        .title = title,
    };
}

static void shade_beyond(const struct row *r, const struct svg_panel *p)
{
    svg_shade(p, p->across.low, r->bytes_low);
    svg_shade(p, r->bytes_high, p->across.high);
}

/* The fit's line for NODES: time, or the bus bandwidth. */
static void draw_line(const struct row *r, const struct svg_panel *p,
                      uint32_t nodes, bool rate, const char *colour,
                      bool dashed)
{
    double across[STEPS], up[STEPS];

    for (int i = 0; i < STEPS; i++) {
        double part = (double)i / (STEPS - 1);

        across[i] = p->across.low * pow(p->across.high / p->across.low, part);
        up[i] = answer_us(r, nodes, across[i]);
        if (rate)
            up[i] = bus_bandwidth(r, nodes, across[i], up[i]);
    }
    if (dashed) {
        svg_line(p, across, up, STEPS, colour, true);
        return;
    }
    uint32_t from = 0, to = 0;
    for (uint32_t i = 0; i < STEPS; i++) {
        from += across[i] < r->bytes_low;
        to += across[i] <= r->bytes_high;
    }
    svg_line(p, across, up, from + 1 < STEPS ? from + 1 : STEPS, colour, true);
    if (to > from)
        svg_line(p, across + from, up + from, to - from, colour, false);
    if (to && to < STEPS)
        svg_line(p, across + to - 1, up + to - 1, STEPS - to + 1, colour, true);
}

static void draw_points(const struct row *r, const struct svg_panel *p,
                        const struct series *s, bool rate, const char *colour,
                        uint32_t shape)
{
    for (uint32_t i = 0; i < 2 * s->count; i++) {
        const struct series_point *q = &s->points[i / 2];
        double us = q->raw_us[i % 2];

        if (q->measured[i % 2])
            svg_point(p, q->bytes,
                      rate ? bus_bandwidth(r, s->nodes, q->bytes, us) : us,
                      colour, shape, i % 2);
    }
}

/* Twice the largest count measured shows what extrapolation does. */
static void draw_curves(const struct row *r, struct svg_panel *p, bool rate)
{
    uint32_t last = r->series->series[r->series->count - 1].nodes;

    shade_beyond(r, p);
    svg_panel_draw(p);
    for (uint32_t i = 0; i < r->series->count; i++) {
        const struct series *s = &r->series->series[i];

        draw_points(r, p, s, rate, colour_of(i), i);
        draw_line(r, p, s->nodes, rate, colour_of(i), false);
    }
    if (last > 1)
        draw_line(r, p, 2 * last, rate, "#999", true);
}

static void draw_residuals(const struct row *r)
{
    struct svg_panel p = panel_at(r, 2, "residuals, every other size held out");

    p.up = (struct svg_axis){-RESIDUAL_MAX, RESIDUAL_MAX, false, SVG_PLAIN,
                             "% of the time"};
    shade_beyond(r, &p);
    svg_panel_draw(&p);
    for (size_t i = 0; i < r->scores->count; i++) {
        const struct score_row *row = &r->scores->rows[i];
        uint32_t c = 0;

        if (row->held != HELD_ALTERNATE || row->coll != r->family->coll ||
            row->gpus != r->family->gpus_per_node ||
            isnan(row->predicted[SCORE_FIT]))
            continue;
        while (r->series->series[c].nodes != row->nodes)
            c++;
        svg_point(&p, row->bytes,
                  100 * (row->predicted[SCORE_FIT] / row->us - 1), colour_of(c),
                  c, row->in_place);
    }
}

/* A line of the legend. */
struct key {
    const char *colour, *text;
    bool dashed;
    int shape; /* of the points; negative: none */
};

/* Draws KEY; returns where the next one goes. */
static double draw_key(FILE *out, double x, double y, const struct key *key)
{
    fprintf(out, "<path d=\"M%.1f %.1fh14\" stroke=\"%s\"%s/>\n", x, y,
            key->colour, key->dashed ? " stroke-dasharray=\"4 3\"" : "");
    if (key->shape >= 0)
        svg_shape(out, x + 7, y, key->colour, (uint32_t)key->shape, false);
    svg_text(out, x + 18, y + 3, 10, "start", key->text);
    return y + 14;
}

static void draw_legend(const struct row *r)
{
    double x = 3 * (PANEL_WIDTH + MARGIN) + 10, y = r->top + 40;
    uint32_t last = r->series->series[r->series->count - 1].nodes;
    char text[64];

    for (uint32_t i = 0; i < r->series->count; i++) {
        uint32_t nodes = r->series->series[i].nodes;

        snprintf(text, sizeof text, "%u node%s", nodes, nodes > 1 ? "s" : "");
        y = draw_key(r->out, x, y,
                     &(struct key){colour_of(i), text, false, (int)i});
    }
    if (last > 1) {
        snprintf(text, sizeof text, "%u, extrapolated", 2 * last);
        y = draw_key(r->out, x, y, &(struct key){"#999", text, true, -1});
    }
    svg_text(r->out, x, y + 3, 10, "start", "hollow: in place");
    svg_text(r->out, x, y + 17, 10, "start", "grey, dashed: no data");
}

static void draw_family(struct row *r)
{
    double us_low, us_high, rate_low, rate_high;
    char title[96];

    find_ranges(r, &us_low, &us_high, &rate_low, &rate_high);
    snprintf(title, sizeof title, "%s, %u GPUs a node: time",
             fit_coll_name(r->family->coll), r->family->gpus_per_node);
    struct svg_panel time = panel_at(r, 0, title);
    time.up =
        (struct svg_axis){us_low / 2, us_high * BEYOND, true, SVG_US, "time"};
    draw_curves(r, &time, false);
    struct svg_panel rate = panel_at(r, 1, "bus bandwidth");
    rate.up = (struct svg_axis){rate_low / BEYOND, 2 * rate_high, true,
                                SVG_PLAIN, "GB/s"};
    draw_curves(r, &rate, true);
    if (r->scores->count)
        draw_residuals(r);
    draw_legend(r);
}

/* The levels under one set of formulas, in one panel. */
static void draw_levels(const struct row *r, enum fit_formula formula,
                        int column, const char *title)
{
    struct svg_panel p = panel_at(r, column, title);
    double across[STEPS], up[2][STEPS], high = 0;

    for (int level = FIT_INTRA; level <= FIT_INTER; level++) {
        const struct fit_level *l = &r->fit->levels[formula][level];

        for (int i = 0; i < STEPS && l->known; i++) {
            across[i] = p.across.low * pow(p.across.high / p.across.low,
                                           (double)i / (STEPS - 1));
            up[level][i] =
                fit_sigmoid_gbps(l->pieces, l->piece_count, across[i]);
            high = fmax(high, up[level][i]);
        }
    }
    p.up = (struct svg_axis){0, 1.1 * high, false, SVG_PLAIN, "GB/s"};
    if (high <= 0)
        return;
    shade_beyond(r, &p);
    svg_panel_draw(&p);
    for (int level = FIT_INTRA; level <= FIT_INTER; level++)
        if (r->fit->levels[formula][level].known)
            svg_line(&p, across, up[level], STEPS, colour_of((uint32_t)level),
                     false);
}

static void draw_page(const struct fit *fit, const struct series_set *set,
                      const struct scores *scores, FILE *out)
{
    uint32_t rows = set->count < ROWS_MAX ? set->count : ROWS_MAX;
    struct row r = {.fit = fit, .scores = scores, .out = out, .top = 30};
    char title[200];

    svg_begin(out, 3 * (PANEL_WIDTH + MARGIN) + 180,
              (rows + 1) * ROW_HEIGHT + 40);
    snprintf(title, sizeof title, "%s%s%s", fit->name, fit->gpu[0] ? ": " : "",
             fit->gpu);
    svg_text(out, MARGIN, 22, 15, "start", title);
    for (uint32_t i = 0; i < rows; i++, r.top += ROW_HEIGHT) {
        r.family = &fit->families[i];
        r.series = &set->families[i];
        draw_family(&r);
    }
    draw_levels(&r, FIT_CORRECTED, 0, "link levels, corrected formulas");
    draw_levels(&r, FIT_PUBLISHED, 1, "link levels, published formulas");
    double x = 2 * (PANEL_WIDTH + MARGIN) + 10, y = r.top + 40;
    y = draw_key(
        out, x, y,
        &(struct key){colour_of(FIT_INTRA), "inside a node", false, -1});
    draw_key(out, x, y,
             &(struct key){colour_of(FIT_INTER), "between nodes", false, -1});
    svg_end(out);
}

static bool ends_in(const char *path, const char *end)
{
    size_t n = strlen(path), m = strlen(end);

    return n > m && !strcmp(path + n - m, end);
}

int plot_check(const char *path, struct err *err)
{
    if (ends_in(path, ".svg") || ends_in(path, ".png") || !strcmp(path, "-"))
        return 0;
    return err_set(err,
                   "%s: not a format that is drawn; give FILE.svg or "
                   "FILE.png",
                   path);
}

int plot_page_begin(struct plot_page *page, const char *path, struct err *err)
{
    *page = (struct plot_page){0};
    page->out = open_memstream(&page->text, &page->length);
    return page->out ? 0 : err_set(err, "%s: %s", path, strerror(errno));
}

int plot_page_end(struct plot_page *page, const char *path, struct err *err)
{
    int rc = fclose(page->out) ? err_set(err, "%s: %s", path, strerror(errno))
                               : 0;

    if (!rc)
        rc = ends_in(path, ".png")
                 ? plot_png_write(page->text, page->length, path, err)
                 : file_write_text(page->text, page->length, path, err);
    free(page->text);
    return rc;
}

int plot_write(const struct fit *fit, const struct series_set *set,
               const struct scores *scores, const char *path, struct err *err)
{
    struct plot_page page;

    if (plot_page_begin(&page, path, err))
        return -1;
    draw_page(fit, set, scores, page.out);
    return plot_page_end(&page, path, err);
}
