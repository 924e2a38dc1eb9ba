/* SPDX-License-Identifier: Apache-2.0
 * How much slower the slow ranks and iterations are: the ratios of t_50, t_75,
 * t_95, t_99 to the time that the curves follow, as a line in P log(S). */
#include "commfit/model.h"
#include "common/base/xmalloc.h"
#include "runtime/cost/cost_nccl.h"

#include <gsl/gsl_fit.h>
#include <math.h>
#include <stdlib.h>

#define MIN_SAMPLES 8 /* of one size, for quantiles to mean anything */
#define MIN_SIZES   3

static const double quantiles[FIT_QUANTILES] = {0.5, 0.75, 0.95, 0.99};

/* Of samples in order, on straight lines between them. */
static double quantile_of(const double *sorted, uint32_t count, double q)
{
    double at = q * (count - 1);
    uint32_t i = (uint32_t)at;

    if (i + 1 >= count)
        return sorted[count - 1];
    return sorted[i] + (at - i) * (sorted[i + 1] - sorted[i]);
}

struct ratios {
    size_t count, capacity;
    double (*rows)[FIT_QUANTILES + 1]; /* P log(S), then ratio - 1 of each */
};

static const struct series_point *find_point(const struct series_family *f,
                                             const struct bench_point *p)
{
    for (uint32_t i = 0; i < f->count; i++)
        for (uint32_t j = 0;
             f->series[i].nodes == p->nodes && j < f->series[i].count; j++)
            if (f->series[i].points[j].bytes == (double)p->bytes)
                return &f->series[i].points[j];
    return NULL;
}

/* P's samples are in order: series_make has sorted them. */
static void add_ratios(struct ratios *r, const struct series_family *f,
                       const struct bench_point *p)
{
    const struct series_point *base = find_point(f, p);

    if (!base || p->kept < MIN_SAMPLES)
        return;
    xgrow(&r->rows, r->count, &r->capacity, sizeof *r->rows);
    double *row = r->rows[r->count++];
    row[0] = (double)p->nodes * p->gpus * log((double)p->bytes);
    for (int i = 0; i < FIT_QUANTILES; i++)
        row[i + 1] =
            quantile_of(p->us, p->kept, quantiles[i]) / base->us[p->in_place] -
            1;
}

static void lines_fit(const struct ratios *r, struct fit_straggler *s)
{
    const size_t stride = FIT_QUANTILES + 1;

    s->known = true;
    for (int i = 0; i < FIT_QUANTILES; i++) {
        double a, b, aa, ab, bb, left;

        s->known &=
            !gsl_fit_linear(r->rows[0], stride, r->rows[0] + i + 1, stride,
                            r->count, &a, &b, &aa, &ab, &bb, &left) &&
            isfinite(a) && isfinite(b);
        s->intercept[i] = a;
        s->slope[i] = b;
    }
}

void stragglers_fit(const struct bench *b, const struct series_set *set,
                    struct fit *fit)
{
    for (uint32_t i = 0; i < set->count; i++) {
        const struct series_family *f = &set->families[i];
        struct ratios r = {0};

        for (size_t j = 0; j < b->point_count; j++) {
            const struct bench_point *p = &b->points[j];

            if (p->by_rank && p->coll == f->coll && p->gpus == f->gpus)
                add_ratios(&r, f, p);
        }
        if (r.count >= MIN_SIZES)
            lines_fit(&r, &fit->families[i].straggler);
        free(r.rows);
    }
}
