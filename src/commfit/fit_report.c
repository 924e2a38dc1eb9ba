/* SPDX-License-Identifier: Apache-2.0 */
#include "commfit/fit_report.h"
#include "common/base/units.h"

#include <math.h>
#include <string.h>

void fit_report_bench(const struct bench *b, FILE *out)
{
    fprintf(out, "%llu rows from %zu file%s%s%s\n", (unsigned long long)b->rows,
            b->source_count, b->source_count == 1 ? "" : "s",
            b->gpu[0] ? ", " : "", b->gpu);
    for (size_t i = 0; i < b->note_count; i++)
        fprintf(out, "note: %s\n", b->notes[i].text);
    for (int i = 0; i < BENCH_REASONS; i++)
        if (b->dropped[i])
            fprintf(out, "dropped %llu row%s: %s\n",
                    (unsigned long long)b->dropped[i],
                    b->dropped[i] == 1 ? "" : "s",
                    bench_reason_text((enum bench_reason)i));
    for (uint32_t i = 0; i < b->drops_shown; i++) {
        const struct bench_drop *d = &b->drops[i];

        fprintf(out, "  %s", d->source);
        if (d->line) /* 0: it took all files to see it */
            fprintf(out, ":%llu", (unsigned long long)d->line);
        fprintf(out, ": %s: %s\n", bench_reason_text(d->reason), d->text);
    }
    if (b->drop_count > b->drops_told)
        fprintf(out, "  ... and %llu more\n",
                (unsigned long long)(b->drop_count - b->drops_told));
}

static void percent_write(FILE *out, double x)
{
    char text[16];

    if (x < 0)
        snprintf(text, sizeof text, "-");
    else
        snprintf(text, sizeof text, x < 9.9995 ? "%.1f%%" : "%.0f%%", 100 * x);
    fprintf(out, "  %8s", text);
}

static const char *size_text(double bytes, char text[16])
{
    return units_format_bytes((uint64_t)bytes, text, 16);
}

/* How many numbers of C were free to fit. */
static uint32_t free_numbers(const struct fit_curve *c)
{
    if (c->form == FIT_CHAIN)
        return 2 * c->knot_count;
    return 1 + 4 * c->piece_count + 2 * c->knot_count;
}

static void report_curve(const struct fit_family *f, const struct fit_curve *c,
                         const struct series *s, FILE *out)
{
    char low[16], high[16];

    fprintf(out, "  %-14s %4u x %-3u  %10s .. %-10s  ", fit_coll_name(f->coll),
            c->nodes, f->gpus_per_node, size_text(c->bytes_min, low),
            size_text(c->bytes_max, high));
    if (s)
        fprintf(out, "%3u points, ", 2 * s->count);
    fprintf(out, "%3u free: ", free_numbers(c));
    if (c->form == FIT_CHAIN)
        fprintf(out, "table of %u sizes\n", c->knot_count);
    else
        fprintf(out, "%u log-sigmoid%s%s\n", c->piece_count,
                c->piece_count == 1 ? "" : "s",
                c->knot_count ? ", corrected by the table" : "");
}

static void report_curves(const struct fit *fit, const struct fit_story *story,
                          FILE *out)
{
    if (fit->family_count)
        fprintf(out, "\nCurves (nodes x GPUs)\n");
    for (uint32_t i = 0; i < fit->family_count; i++)
        for (uint32_t j = 0; j < fit->families[i].curve_count; j++)
            report_curve(&fit->families[i], &fit->families[i].curves[j],
                         story ? &story->set->families[i].series[j] : NULL,
                         out);
}

static void report_levels(const struct fit *fit, FILE *out)
{
    static const char *const names[] = {"corrected", "published"};

    fprintf(out, "\nLink levels\n");
    for (int formula = 0; formula < FIT_FORMULA_COUNT; formula++)
        for (int i = FIT_INTRA; i <= FIT_INTER; i++) {
            const struct fit_level *l = &fit->levels[formula][i];

            fprintf(out, "  %-10s %-10s  ", names[formula], l->name);
            if (!l->known) {
                fprintf(out, "nothing in the data fixes it\n");
                continue;
            }
            const struct fit_sigmoid *p = &l->pieces[l->piece_count - 1];
            fprintf(out, "up to %.4g GB/s, latency %.3g us, %u piece%s\n",
                    p->limit_gbps + p->base_gbps, l->latency_us, l->piece_count,
                    l->piece_count == 1 ? "" : "s");
        }
}

static void report_row(const char *name, const struct score_summary *s,
                       FILE *out)
{
    char text[16];

    fprintf(out, "  %-16s", name);
    percent_write(out, s->median);
    percent_write(out, s->p95);
    percent_write(out, s->mape);
    fprintf(out, "  %9.3g ms", s->rmse_ms);
    percent_write(out, s->worst);
    fprintf(out, "  %s %u x %u at %s  n %zu\n",
            fit_coll_name(s->worst_row->coll), s->worst_row->nodes,
            s->worst_row->gpus, size_text(s->worst_row->bytes, text), s->count);
}

static void report_head(const char *title, FILE *out)
{
    fprintf(out, "\n%s\n  %-16s  %8s  %8s  %8s  %12s  %8s\n", title, "",
            "median", "p95", "MAPE", "RMSE", "worst");
}

/* A model that falls back on another one has its figures. */
static bool is_shown(const struct score_summary *shown, int count,
                     const struct score_summary *s)
{
    for (int i = 0; i < count; i++)
        if (shown[i].count == s->count && shown[i].mape == s->mape &&
            shown[i].rmse_ms == s->rmse_ms)
            return true;
    return false;
}

static void report_held(const struct scores *scores, enum held_out held,
                        FILE *out)
{
    struct score_filter filter = {.held = held};
    char title[80];

    if (!score_sum(scores, &filter, SCORE_CURVES).count)
        return;
    snprintf(title, sizeof title, "Held out: %s", held_out_name(held));
    report_head(title, out);
    struct score_summary shown[SCORER_COUNT];
    int count = 0;
    for (int who = SCORE_CURVES; who < SCORER_COUNT; who++) {
        struct score_summary s = score_sum(scores, &filter, (enum scorer)who);

        if (!s.count || is_shown(shown, count, &s))
            continue;
        shown[count++] = s;
        report_row(scorer_name((enum scorer)who), &s, out);
    }
}

static void report_decades(const struct scores *scores, enum held_out held,
                           FILE *out)
{
    for (double low = 1; low < 1e12; low *= 10) {
        struct score_filter f = {
            .held = held, .bytes_min = low, .bytes_max = 10 * low};
        struct score_summary s = score_sum(scores, &f, SCORE_FIT);
        char name[32];

        snprintf(name, sizeof name, "from %.0e B", low);
        if (s.count)
            report_row(name, &s, out);
    }
}

static void report_worlds(const struct scores *scores, enum held_out held,
                          FILE *out)
{
    uint64_t last = 0, next;

    for (;; last = next) {
        next = UINT64_MAX;
        for (size_t i = 0; i < scores->count; i++)
            if (scores->rows[i].nodes > last && scores->rows[i].nodes < next)
                next = scores->rows[i].nodes;
        if (next == UINT64_MAX)
            return;
        struct score_filter f = {.held = held, .nodes = (uint32_t)next};
        struct score_summary s = score_sum(scores, &f, SCORE_FIT);
        char name[32];

        snprintf(name, sizeof name, "%u node%s", f.nodes,
                 f.nodes == 1 ? "" : "s");
        if (s.count)
            report_row(name, &s, out);
    }
}

/* --- the verdict ---------------------------------------------------------- */

/* The most that F's curves on one node, or on several, reach on the bus. */
static double peak_gbps(const struct fit *fit, const struct fit_family *f,
                        bool several)
{
    double most = 0;

    for (uint32_t i = 0; i < f->curve_count; i++) {
        const struct fit_curve *c = &f->curves[i];
        unsigned flags = 0;

        if ((c->nodes > 1) != several)
            continue;
        const struct cost_nccl_query q = {.coll = f->coll,
                                          .nodes = c->nodes,
                                          .gpus_per_node = f->gpus_per_node,
                                          .bytes = c->bytes_max};
        double us = cost_nccl_curves_us(fit, f, &q, &flags);
        double factor =
            fit_coll_factor(f->coll, (double)c->nodes * f->gpus_per_node);
        most = fmax(most, factor * c->bytes_max / us / 1e3);
    }
    return most;
}

static void report_peaks(const struct fit *fit, const struct fit_family *f,
                         FILE *out)
{
    double one = peak_gbps(fit, f, false), more = peak_gbps(fit, f, true);
    uint32_t last = f->curves[f->curve_count - 1].nodes;
    uint32_t first = f->curves[one > 0 && f->curve_count > 1].nodes;

    fprintf(out, "  %s, %u GPU%s a node:", fit_coll_name(f->coll),
            f->gpus_per_node, f->gpus_per_node == 1 ? "" : "s");
    if (one > 0)
        fprintf(out, " %.4g GB/s on one node", one);
    if (one > 0 && fit->machine.link_gbps > 0)
        fprintf(out, " (%.0f%% of NVLink%s)",
                100 * one / fit->machine.link_gbps,
                one > fit->machine.link_gbps ? ", as its switch adds (NVLS)"
                                             : "");
    if (more > 0)
        fprintf(out, "%s %.4g GB/s on ", one > 0 ? "," : "", more);
    if (more > 0 && first != last)
        fprintf(out, "%u to ", first);
    if (more > 0)
        fprintf(out, "%u nodes", last);
    fputc('\n', out);
}

static void report_use(const char *name, double median, enum fit_model model,
                       FILE *out)
{
    if (median < 0)
        return;
    fprintf(out, ", %s %.1f%%", name, 100 * median);
    if (model > FIT_MODEL_CURVES)
        fprintf(out, " (%s)", fit_model_name(model));
}

/* Where F can be trusted, and how far. */
static void report_trust(const struct fit_family *f, FILE *out)
{
    const struct fit_errors *e = &f->errors;
    double low = INFINITY, high = 0;
    char from[16], to[16];
    uint32_t several = 0;

    for (uint32_t i = 0; i < f->curve_count; i++) {
        low = fmin(low, f->curves[i].bytes_min);
        high = fmax(high, f->curves[i].bytes_max);
        several += f->curves[i].nodes > 1;
    }
    fprintf(out, "    %s to %s", size_text(low, from), size_text(high, to));
    if (e->size_median >= 0)
        fprintf(out, ": off by %.1f%% in the median (1 in 20 by more than "
                     "%.0f%%)",
                100 * e->size_median, 100 * e->size_p95);
    else
        fprintf(out, ": too few sizes to tell the error");
    report_use("node counts between", e->between_median, f->between_model, out);
    report_use("the next larger", e->beyond_median, f->beyond_model, out);
    if (several == 0)
        fprintf(out, "; nothing is known of several nodes");
    else if (several == 1)
        fprintf(out, "; other node counts are carried over");
    fputc('\n', out);
    if (f->straggler.known)
        fprintf(out, "    stragglers: fitted from %s\n",
                f->straggler.of_means
                    ? "means that were measured again, single calls differ more"
                    : "single times");
}

static bool any_straggler(const struct fit *fit)
{
    for (uint32_t i = 0; i < fit->family_count; i++)
        if (fit->families[i].straggler.known)
            return true;
    return false;
}

/* The fit beside linear interpolation of its own table. */
static void report_baseline(const struct scores *scores, FILE *out)
{
    const struct score_filter filter = {.held = HELD_ALTERNATE};
    struct score_summary fit = score_sum(scores, &filter, SCORE_FIT);
    struct score_summary line = score_sum(scores, &filter, SCORE_INTERPOLATION);

    if (fit.count && line.count)
        fprintf(out,
                "  every other size left out: the fit is off by %.1f%%, linear "
                "interpolation by %.1f%%\n",
                100 * fit.median, 100 * line.median);
}

static void report_verdict(const struct fit *fit,
                           const struct fit_story *story, FILE *out)
{
    fprintf(out, "%s%s%s: bus bandwidth at the largest size\n", fit->name,
            fit->gpu[0] ? ", " : "", fit->gpu);
    if (fit->machine.link_gbps > 0)
        fprintf(out, "  data sheet: NVLink, which NCCL takes for %.4g GB/s of "
                     "a GPU each way%s\n",
                fit->machine.link_gbps,
                fit->machine.rack_gpus ? ", through the whole rack" : "");
    for (uint32_t i = 0; i < fit->family_count; i++) {
        report_peaks(fit, &fit->families[i], out);
        report_trust(&fit->families[i], out);
    }
    if (story)
        report_baseline(story->scores, out);
    if (!fit->family_count)
        fprintf(out, "  nothing was measured: all times are NCCL's model with "
                     "the data sheet's links\n");
    else if (!any_straggler(fit))
        fprintf(out, "  stragglers: none, the data has each mean once\n");
    if (story && story->outliers->count)
        fprintf(out, "  %zu outlier%s set aside (-v lists them)\n",
                story->outliers->count,
                story->outliers->count == 1 ? "" : "s");
}

static void report_outliers(const struct outliers *list, FILE *out)
{
    if (list->count)
        fprintf(out, "\nOutliers, reported and not fitted\n");
    for (size_t i = 0; i < list->count && i < 20; i++) {
        const struct outlier *x = &list->items[i];
        char text[16];

        fprintf(out, "  %s %u x %u at %s%s: %.4g us, expected %.4g us\n",
                fit_coll_name(x->coll), x->nodes, x->gpus,
                size_text(x->bytes, text), x->in_place ? " in place" : "",
                x->us, x->expected_us);
    }
    if (list->count > 20)
        fprintf(out, "  ... and %zu more\n", list->count - 20);
}

void fit_report_all(const struct fit *fit, const struct fit_story *story,
                    bool verbose, FILE *out)
{
    report_verdict(fit, story, out);
    if (!verbose && fit->family_count)
        return;
    report_curves(fit, story, out);
    report_levels(fit, out);
    if (!story)
        return;
    for (int held = 0; held < HELD_EVAL; held++)
        report_held(story->scores, (enum held_out)held, out);
    report_head("The fit, every other size held out, by size and world", out);
    report_decades(story->scores, HELD_ALTERNATE, out);
    report_worlds(story->scores, HELD_ALTERNATE, out);
    report_outliers(story->outliers, out);
}

void fit_report_eval(const struct scores *scores, FILE *out)
{
    struct score_filter all = {.held = HELD_EVAL};

    report_head("Other data", out);
    for (int who = 0; who <= SCORE_REGRESSION; who++) {
        struct score_summary s = score_sum(scores, &all, (enum scorer)who);

        if (s.count)
            report_row(scorer_name((enum scorer)who), &s, out);
    }
    report_decades(scores, HELD_EVAL, out);
    report_worlds(scores, HELD_EVAL, out);
}

bool fit_report_line(const struct scores *scores, FILE *out)
{
    struct score_filter all = {.held = HELD_EVAL};
    struct score_summary s = score_sum(scores, &all, SCORE_FIT);

    if (s.count)
        fprintf(out, "median %.1f%% p95 %.1f%% n %zu\n", 100 * s.median,
                100 * s.p95, s.count);
    return s.count;
}
