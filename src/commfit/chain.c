/* SPDX-License-Identifier: Apache-2.0 */
#include "commfit/chain.h"
#include "common/base/xmalloc.h"
#include "runtime/nccl/fit_curve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FOLDS 12 /* at most; every size is left out once */

/* A larger penalty is preferred only for this much less error: cross-validation
 * sees gaps twice as wide as the curve will have, and likes few knots too much.
 */
#define WORTH 0.85

/* Errors that differ by less are the same (data on straight lines): fewer knots
 * win. */
#define SAME 1e-6

#define MIN_SIZES 8 /* fewer are too few to choose by: every knot stays */

/* 0 keeps every size. Fewer knots must not cost accuracy on sizes left out: a
 * thinned table is worse there than the table (doc/evidence/commfit.md). */
static const double penalties[] = {0, 0.01, 0.02, 0.05, 0.1};

#define PENALTIES (sizeof penalties / sizeof *penalties)

/* Points that a chain is drawn through, and room for the work. */
struct work {
    uint32_t count;
    const struct fit_knot *points;
    double *segment; /* count x count: error of skipping what is between */
    double *best;    /* up to each point */
    uint32_t *from;
};

static double relative_error(double us, double measured)
{
    return fmin(fabs(us / measured - 1), CHAIN_ERROR_CAP);
}

static double skip_error(const struct fit_knot *p, uint32_t a, uint32_t b)
{
    double error = 0;

    for (int place = 0; place < 2; place++) {
        double slope =
            (p[b].us[place] - p[a].us[place]) / (p[b].bytes - p[a].bytes);

        for (uint32_t i = a + 1; i < b; i++)
            error += relative_error(p[a].us[place] +
                                        slope * (p[i].bytes - p[a].bytes),
                                    p[i].us[place]);
    }
    return error / 2;
}

static void work_init(struct work *w, const struct fit_knot *points,
                      uint32_t count)
{
    w->count = count;
    w->points = points;
    for (uint32_t a = 0; a < count; a++)
        for (uint32_t b = a + 1; b < count; b++)
            w->segment[a * count + b] = skip_error(points, a, b);
}

/* The knots from first to last with the least error + PENALTY each. */
static uint32_t choose_knots(struct work *w, double penalty,
                             struct fit_knot *knots)
{
    uint32_t n = w->count, count = 1;

    w->best[0] = 0;
    for (uint32_t b = 1; b < n; b++) {
        w->best[b] = INFINITY;
        for (uint32_t a = 0; a < b; a++) {
            double error = w->best[a] + w->segment[a * n + b] + penalty;

            if (error < w->best[b]) {
                w->best[b] = error;
                w->from[b] = a;
            }
        }
    }
    for (uint32_t b = n - 1; b; b = w->from[b])
        count++;
    uint32_t at = count;
    for (uint32_t b = n - 1; b; b = w->from[b])
        knots[--at] = w->points[b];
    knots[0] = w->points[0];
    return count;
}

/* The points of S, without every FOLDS-th from FOLD on (ends stay). */
static uint32_t points_without(const struct series *s, uint32_t fold,
                               uint32_t folds, bool shared,
                               struct fit_knot *points)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < s->count; i++) {
        const struct series_point *p = &s->points[i];
        double mean = sqrt(p->us[0] * p->us[1]);

        if (folds && i % folds == fold && i && i + 1 < s->count)
            continue;
        points[count++] = (struct fit_knot){
            .bytes = p->bytes,
            .us = {shared ? mean : p->us[0], shared ? mean : p->us[1]},
        };
    }
    return count;
}

static double fold_error(const struct series *s, uint32_t fold, uint32_t folds,
                         const struct fit_knot *knots, uint32_t count)
{
    double error = 0;

    for (uint32_t i = 1; i + 1 < s->count; i++) {
        const struct series_point *p = &s->points[i];

        if (i % folds != fold)
            continue;
        for (int place = 0; place < 2; place++)
            error += relative_error(fit_chain_us(knots, count, p->bytes, place),
                                    p->raw_us[place]);
    }
    return error / (2.0 * (s->count - 2));
}

/* The error of each penalty, all sizes but the ends left out in turn. */
static void validate_series(struct work *w, const struct series *s, bool shared,
                            double errors[PENALTIES])
{
    uint32_t folds = s->count < FOLDS ? s->count : FOLDS;
    struct fit_knot points[SERIES_SIZES], knots[SERIES_SIZES];

    memset(errors, 0, PENALTIES * sizeof *errors);
    for (uint32_t fold = 0; fold < folds; fold++) {
        work_init(w, points, points_without(s, fold, folds, shared, points));
        for (size_t i = 0; i < PENALTIES; i++)
            errors[i] += fold_error(s, fold, folds, knots,
                                    choose_knots(w, penalties[i], knots));
    }
}

static void consider_errors(struct chain *chain, const double errors[PENALTIES],
                            bool shared)
{
    for (size_t i = 0; i < PENALTIES; i++)
        if (chain->error < 0 || errors[i] < WORTH * chain->error ||
            (penalties[i] > chain->penalty &&
             fabs(errors[i] - chain->error) < SAME)) {
            chain->error = errors[i];
            chain->penalty = penalties[i];
            chain->shared = shared;
        }
}

void chain_fit(const struct series *s, struct chain *chain)
{
    size_t cells = (size_t)s->count * s->count;
    struct fit_knot points[SERIES_SIZES];
    double errors[PENALTIES];
    struct work w = {
        .segment = xcalloc(cells, sizeof *w.segment),
        .best = xcalloc(s->count, sizeof *w.best),
        .from = xcalloc(s->count, sizeof *w.from),
    };

    chain->error = -1;
    chain->penalty = penalties[0];
    chain->shared = false;
    if (s->count >= MIN_SIZES)
        for (int shared = 0; shared < 2; shared++) {
            validate_series(&w, s, shared, errors);
            consider_errors(chain, errors, shared);
        }
    work_init(&w, points, points_without(s, 0, 0, chain->shared, points));
    chain->count = choose_knots(&w, chain->penalty, chain->knots);
    free(w.segment);
    free(w.best);
    free(w.from);
}
