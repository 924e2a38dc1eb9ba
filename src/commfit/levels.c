/* SPDX-License-Identifier: Apache-2.0
 * The bandwidth and latency of each link level, from all collectives at once,
 * seen through the formulas. */
#include "commfit/model.h"
#include "commfit/sigmoid.h"
#include "common/base/err.h"
#include "common/base/xmalloc.h"
#include "runtime/nccl/fit_formula.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEVEL_PIECES 3
#define POINTS_MAX   120

static const char *const level_names[2] = {"intra-node", "inter-node"};

struct points {
    size_t count, capacity;
    struct sigmoid_point *items;
};

/* What of a point the level LEVEL is to explain, the ones before it being
 * fitted already. */
static void add_point(struct points *points, const struct series *s,
                      const struct series_point *p, enum fit_formula formula,
                      const struct fit *fit, enum fit_level_index level)
{
    struct fit_shares shares =
        fit_formula_shares(formula, s->coll, p->bytes, s->nodes, s->gpus);
    struct sigmoid_point point = {
        .bytes = p->bytes,
        .us = sqrt(p->us[0] * p->us[1]),
    };

    if (level == FIT_INTRA) {
        point.sent_bytes = shares.intra_bytes;
        point.steps = shares.intra_steps;
    } else {
        point.sent_bytes = shares.inter_bytes;
        point.steps = shares.inter_steps;
        point.fixed_us = fit_formula_us(formula, s->coll, fit->levels[formula],
                                        p->bytes, s->nodes, s->gpus);
    }
    if (point.sent_bytes <= 0)
        return;
    xgrow(&points->items, points->count, &points->capacity, sizeof point);
    points->items[points->count++] = point;
}

static int compare_sizes(const void *a, const void *b)
{
    double x = ((const struct sigmoid_point *)a)->bytes;
    double y = ((const struct sigmoid_point *)b)->bytes;

    return (x > y) - (x < y);
}

/* Collectives that wait for every rank: their latencies are the levels'. A
 * broadcast's root has done its part long before the last rank has. */
static bool coll_waits(enum fit_coll coll)
{
    return coll == FIT_ALL_REDUCE || coll == FIT_ALL_GATHER ||
           coll == FIT_REDUCE_SCATTER;
}

static bool any_waits(const struct series_set *set)
{
    for (uint32_t i = 0; i < set->count; i++)
        if (coll_waits(set->families[i].coll))
            return true;
    return false;
}

static void collect_points(struct points *points, const struct series_set *set,
                           enum fit_formula formula, const struct fit *fit,
                           enum fit_level_index level)
{
    bool choosy = any_waits(set);

    for (uint32_t i = 0; i < set->count; i++)
        for (uint32_t j = 0; j < set->families[i].count; j++) {
            const struct series *s = &set->families[i].series[j];

            if ((s->nodes > 1) != (level == FIT_INTER) ||
                (choosy && !coll_waits(s->coll)))
                continue;
            for (uint32_t k = 0; k < s->count; k++)
                add_point(points, s, &s->points[k], formula, fit, level);
        }
    if (points->count)
        qsort(points->items, points->count, sizeof *points->items,
              compare_sizes);
}

/* Every so many of them, where there are more than the level's few numbers
 * need. */
static void thin_points(struct points *points)
{
    size_t step = (points->count + POINTS_MAX - 1) / POINTS_MAX, kept = 0;

    for (size_t i = 0; step > 1 && i < points->count; i += step)
        points->items[kept++] = points->items[i];
    if (step > 1)
        points->count = kept;
}

static int level_fit(const struct series_set *set, enum fit_formula formula,
                     enum fit_level_index level, struct fit *fit,
                     struct err *err)
{
    struct fit_level *to = &fit->levels[formula][level];
    struct points points = {0};
    struct sigmoid_fit s;
    int rc = 0;

    snprintf(to->name, sizeof to->name, "%s", level_names[level]);
    collect_points(&points, set, formula, fit, level);
    thin_points(&points);
    if (points.count) {
        rc =
            sigmoid_fit(points.items, (uint32_t)points.count,
                        set->draft ? 1 : LEVEL_PIECES, &s);
        if (rc)
            err_set(err,
                    "the %s level did not converge; nothing is written. Are "
                    "these tables of one cluster?",
                    level_names[level]);
    }
    if (points.count && !rc) {
        to->known = true;
        to->latency_us = s.latency_us;
        to->piece_count = s.piece_count;
        memcpy(to->pieces, s.pieces, sizeof to->pieces);
    }
    free(points.items);
    return rc;
}

int levels_fit(const struct series_set *set, struct fit *fit, struct err *err)
{
    for (int formula = 0; formula < FIT_FORMULA_COUNT; formula++)
        for (int level = FIT_INTRA; level <= FIT_INTER; level++)
            if (level_fit(set, (enum fit_formula)formula,
                          (enum fit_level_index)level, fit, err))
                return -1;
    return 0;
}
