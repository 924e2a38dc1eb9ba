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

static void percent(FILE *out, double x)
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

static void report_curve(const struct fit_family *f, const struct fit_curve *c,
                         const struct series *s, FILE *out)
{
    char low[16], high[16];

    fprintf(out, "  %-14s %4u x %-3u  %10s .. %-10s  %3u sizes  ",
            fit_coll_name(f->coll), c->nodes, f->gpus_per_node,
            size_text(c->bytes_min, low), size_text(c->bytes_max, high),
            s->count);
    if (c->form == FIT_CHAIN)
        fprintf(out, "%u segments\n",
                c->knot_count > 1 ? c->knot_count - 1 : 1);
    else
        fprintf(out, "%u sigmoid%s\n", c->piece_count,
                c->piece_count == 1 ? "" : "s");
}

static void report_curves(const struct fit *fit, const struct fit_story *story,
                          FILE *out)
{
    fprintf(out, "\nCurves (nodes x GPUs)\n");
    for (uint32_t i = 0; i < fit->family_count; i++)
        for (uint32_t j = 0; j < fit->families[i].curve_count; j++)
            report_curve(&fit->families[i], &fit->families[i].curves[j],
                         &story->set->families[i].series[j], out);
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
    percent(out, s->median);
    percent(out, s->p95);
    percent(out, s->mape);
    fprintf(out, "  %9.3g ms", s->rmse_ms);
    percent(out, s->worst);
    fprintf(out, "  %s %u x %u at %s  n %zu\n",
            fit_coll_name(s->worst_row->coll), s->worst_row->nodes,
            s->worst_row->gpus, size_text(s->worst_row->bytes, text), s->count);
}

static void report_head(const char *title, FILE *out)
{
    fprintf(out, "\n%s\n  %-16s  %8s  %8s  %8s  %12s  %8s\n", title, "",
            "median", "p95", "MAPE", "RMSE", "worst");
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
    for (int who = SCORE_CURVES; who < SCORER_COUNT; who++) {
        struct score_summary s = score_sum(scores, &filter, (enum scorer)who);

        if (s.count)
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

/* What to expect of a prediction, in one line. */
static void report_expected(const struct fit_errors *e, FILE *out)
{
    fprintf(out, "    off by, in the median:");
    if (e->size_median >= 0)
        fprintf(out,
                " %.1f%% at sizes between those measured (1 in 20 by more "
                "than %.0f%%)",
                100 * e->size_median, 100 * e->size_p95);
    else
        fprintf(out, " unknown, too few sizes");
    if (e->between_median >= 0)
        fprintf(out, ", %.1f%% at a node count between",
                100 * e->between_median);
    if (e->beyond_median >= 0)
        fprintf(out, ", %.1f%% at the next larger one", 100 * e->beyond_median);
    fputc('\n', out);
}

static void report_trust(const struct fit *fit, FILE *out)
{
    fprintf(out, "\nTrust\n");
    for (uint32_t i = 0; i < fit->family_count; i++) {
        const struct fit_family *f = &fit->families[i];
        uint32_t several = 0;

        fprintf(out, "  %s on %u GPUs a node: model %s, nodes",
                fit_coll_name(f->coll), f->gpus_per_node,
                fit_model_name(f->model));
        for (uint32_t j = 0; j < f->curve_count; j++) {
            fprintf(out, " %u", f->curves[j].nodes);
            several += f->curves[j].nodes > 1;
        }
        fprintf(out, "%s%s\n",
                several == 1 ? "; other node counts are extrapolated" : "",
                several == 0 ? "; nothing is said about several nodes" : "");
        report_expected(&f->errors, out);
        fprintf(out, "    stragglers: %s\n",
                f->straggler.known ? "fitted from single times"
                                   : "none, the data has means only");
    }
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
                    FILE *out)
{
    report_curves(fit, story, out);
    report_levels(fit, out);
    for (int held = 0; held < HELD_EVAL; held++)
        report_held(story->scores, (enum held_out)held, out);
    report_head("The fit, every other size held out, by size and world", out);
    report_decades(story->scores, HELD_ALTERNATE, out);
    report_worlds(story->scores, HELD_ALTERNATE, out);
    report_trust(fit, out);
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
