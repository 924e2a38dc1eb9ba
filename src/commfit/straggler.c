/* SPDX-License-Identifier: Apache-2.0
 * How much slower the slow ranks and iterations are: the ratios of t_50, t_75,
 * t_95, t_99 to the time that the curves follow, as a line in P log(S).
 *
 * Most tables have means only, but the same size more than once: in another
 * run, or out of place and in place. How far these lie from their own middle,
 * over all sizes of a family, is then the spread; it is that of means. */
#include "commfit/model.h"
#include "common/base/xmalloc.h"
#include "runtime/nccl/cost_nccl.h"

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
    s->x_min = s->x_max = r->rows[0][0];
    for (size_t i = 1; i < r->count; i++) {
        s->x_min = fmin(s->x_min, r->rows[i][0]);
        s->x_max = fmax(s->x_max, r->rows[i][0]);
    }
}

/* --- means that were measured again --------------------------------------- */

#define MIN_AGAIN 8 /* figures of a family with others of the same */

/* log(time / the middle of its kind), of a family. */
struct again {
    double *logs;
    size_t count, capacity;
};

/* Adds COUNT figures of one kind. The middle is their own: their distances from
 * it are too small by sqrt(1 - 1 / COUNT). */
static void again_add(struct again *a, const double *us, uint32_t count)
{
    double middle = 0, scale = sqrt(count / (count - 1.0));

    for (uint32_t i = 0; i < count; i++)
        middle += log(us[i]) / count;
    for (uint32_t i = 0; i < count; i++) {
        xgrow(&a->logs, a->count, &a->capacity, sizeof *a->logs);
        a->logs[a->count++] = scale * (log(us[i]) - middle);
    }
}

/* The median of log(in place / out of place): no spread, a difference. */
static double placement_shift(const struct series_family *f)
{
    struct again a = {NULL, 0, 0};

    for (uint32_t i = 0; i < f->count; i++)
        for (uint32_t j = 0; j < f->series[i].count; j++) {
            const struct series_point *p = &f->series[i].points[j];
            if (!p->measured[0] || !p->measured[1])
                continue;
            xgrow(&a.logs, a.count, &a.capacity, sizeof *a.logs);
            a.logs[a.count++] = log(p->raw_us[1] / p->raw_us[0]);
        }
    bench_sort_values(a.logs, a.count);
    double shift = a.count ? quantile_of(a.logs, (uint32_t)a.count, 0.5) : 0;
    free(a.logs);
    return shift;
}

static void placements_add(struct again *a, const struct series_family *f)
{
    double shift = exp(placement_shift(f));

    for (uint32_t i = 0; i < f->count; i++)
        for (uint32_t j = 0; j < f->series[i].count; j++) {
            const struct series_point *p = &f->series[i].points[j];
            const double us[2] = {p->raw_us[0], p->raw_us[1] / shift};
            if (p->measured[0] && p->measured[1])
                again_add(a, us, 2);
        }
}

/* How far the quantile Q lies above the middle, to a billionth. */
static double excess_of(const struct again *a, double q)
{
    double excess = expm1(quantile_of(a->logs, (uint32_t)a->count, q));

    return excess > 1e-9 ? excess : 0;
}

static void again_fit(const struct bench *b, const struct series_family *f,
                      struct fit_straggler *s)
{
    struct again a = {NULL, 0, 0};

    for (size_t i = 0; i < b->point_count; i++) {
        const struct bench_point *p = &b->points[i];
        if (p->by_rank && p->coll == f->coll && p->gpus == f->gpus &&
            p->kept > 1)
            again_add(&a, p->us, p->kept);
    }
    if (!a.count)
        placements_add(&a, f);
    s->known = s->of_means = a.count >= MIN_AGAIN;
    bench_sort_values(a.logs, a.count);
    for (int i = 0; i < FIT_QUANTILES && s->known; i++)
        s->intercept[i] = excess_of(&a, quantiles[i]);
    free(a.logs);
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
        else
            again_fit(b, f, &fit->families[i].straggler);
        free(r.rows);
    }
}
