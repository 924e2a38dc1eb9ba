/* SPDX-License-Identifier: Apache-2.0 */
#include "commfit/model.h"
#include "commfit/chain.h"
#include "commfit/sigmoid.h"
#include "runtime/nccl/fit_curve.h"
#include "common/base/xmalloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GOOD 0.004 /* a table's error that no form is tried for */

#define MIN_SIZES 5 /* for sigmoids to be compared at all */

static void take_chain(const struct chain *chain, struct fit_curve *curve)
{
    curve->form = FIT_CHAIN;
    curve->knot_count = chain->count;
    curve->knots = xcalloc(chain->count, sizeof *curve->knots);
    memcpy(curve->knots, chain->knots, chain->count * sizeof *curve->knots);
}

/* The sigmoids, times WEIGHT of what each size measured is off by (0: alone).
 */
static void take_sigmoids(const struct sigmoid_fit *fit, const struct series *s,
                          double weight, struct fit_curve *curve)
{
    curve->form = FIT_SIGMOID;
    curve->piece_count = fit->piece_count;
    memcpy(curve->pieces, fit->pieces, sizeof curve->pieces);
    for (uint32_t i = 0; i < fit->piece_count; i++)
        curve->pieces[i].latency_us = fit->latency_us;
    if (!(weight > 0))
        return;
    curve->knot_count = s->count;
    curve->knots = xcalloc(s->count, sizeof *curve->knots);
    for (uint32_t i = 0; i < s->count; i++) {
        const struct series_point *p = &s->points[i];
        double us =
            fit_sigmoid_us(curve->pieces, curve->piece_count, p->bytes);

        curve->knots[i].bytes = p->bytes;
        for (int place = 0; place < 2; place++)
            curve->knots[i].us[place] = pow(p->us[place] / us, weight);
    }
}

static void copy_curve(const struct fit_curve *from, struct fit_curve *to)
{
    *to = *from;
    if (from->knot_count) {
        to->knots = xcalloc(from->knot_count, sizeof *to->knots);
        memcpy(to->knots, from->knots, from->knot_count * sizeof *to->knots);
    }
}

static int curve_sigmoids(const struct series *s, struct sigmoid_fit *fit)
{
    struct sigmoid_point points[SERIES_SIZES];

    for (uint32_t i = 0; i < s->count; i++) {
        const struct series_point *p = &s->points[i];

        points[i] = (struct sigmoid_point){
            .bytes = p->bytes,
            .sent_bytes = p->bytes,
            .steps = 1,
            .us = sqrt(p->us[0] * p->us[1]),
        };
    }
    return sigmoid_fit(points, s->count, FIT_PIECES, fit);
}

/* Every form has been scored on sizes left out: the chain by relative error,
 * the sigmoids by the logarithm, which is the same for small ones. Leaving a
 * size out doubles the gap that a table must span: over the public tables its
 * error at the final gap is 0.59 of that, a form's stays. So each simpler form
 * must be this much better than the next. */
#define WORTH 0.7

static void curve_fit(const struct series *s, struct fit_curve *curve)
{
    struct sigmoid_fit fit;
    struct chain chain;

    if (s->known) {
        copy_curve(s->known, curve);
        return;
    }
    curve->nodes = s->nodes;
    curve->bytes_min = s->points[0].bytes;
    curve->bytes_max = s->points[s->count - 1].bytes;
    chain_fit(s, &chain);
    if (s->count < MIN_SIZES || (chain.error >= 0 && chain.error < GOOD) ||
        curve_sigmoids(s, &fit) || fit.error < 0) {
        take_chain(&chain, curve);
        return;
    }
    double best = fmin(fmin(fit.half_error, fit.corrected_error), chain.error);
    if (fit.error <= WORTH * best)
        take_sigmoids(&fit, s, 0, curve);
    else if (fmin(fit.half_error, fit.corrected_error) <= WORTH * chain.error)
        take_sigmoids(&fit, s, fit.half_error < fit.corrected_error ? 0.5 : 1,
                      curve);
    else
        take_chain(&chain, curve);
}

static void family_fit(const struct series_family *s, struct fit_family *family)
{
    *family = (struct fit_family){
        .coll = s->coll,
        .gpus_per_node = s->gpus,
        .model = FIT_MODEL_CURVES,
        .errors = {-1, -1, -1, -1, -1, -1, -1},
        .curve_count = s->count,
        .curves = xcalloc(s->count, sizeof *family->curves),
    };
    for (uint32_t i = 0; i < s->count; i++)
        curve_fit(&s->series[i], &family->curves[i]);
}

int model_fit(const struct series_set *set, struct fit *fit, struct err *err)
{
    *fit = (struct fit){
        .machine = set->machine,
        .family_count = set->count,
        .families = xcalloc(set->count + 1, sizeof *fit->families),
    };
    if (levels_fit(set, fit, err)) {
        free(fit->families);
        return -1;
    }
    for (uint32_t i = 0; i < set->count; i++) {
        family_fit(&set->families[i], &fit->families[i]);
        regression_fit(&set->families[i], fit, &fit->families[i]);
    }
    return 0;
}
