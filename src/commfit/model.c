/* SPDX-License-Identifier: Apache-2.0 */
#include "commfit/model.h"
#include "commfit/chain.h"
#include "commfit/sigmoid.h"
#include "common/base/xmalloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CURVE_PIECES 2
#define MIN_SIZES    8 /* for a curve of sigmoids to be tried at all */

/* Sigmoids must be this much better than the chain. In cross-validation a chain
 * spans gaps twice as wide as it will have: over the public tables its error
 * at the final width is 0.59 of that (median), a sigmoid's stays; and one that
 * wins narrowly owes it to switches, and is worse at large sizes. */
#define WORTH 0.4

#define GOOD 0.015 /* an error that is not worth the trouble */

static void take_chain(const struct chain *chain, struct fit_curve *curve)
{
    curve->form = FIT_CHAIN;
    curve->knot_count = chain->count;
    curve->knots = xcalloc(chain->count, sizeof *curve->knots);
    memcpy(curve->knots, chain->knots, chain->count * sizeof *curve->knots);
}

static void take_sigmoids(const struct sigmoid_fit *s, struct fit_curve *curve)
{
    curve->form = FIT_SIGMOID;
    curve->piece_count = s->piece_count;
    memcpy(curve->pieces, s->pieces, sizeof curve->pieces);
    for (uint32_t i = 0; i < s->piece_count; i++)
        curve->pieces[i].latency_us = s->latency_us;
}

/* Both forms have been scored on sizes left out: the chain by relative error,
 * the sigmoids by the logarithm, which is the same for small ones. */
static void curve_fit(const struct series *s, struct fit_curve *curve)
{
    struct sigmoid_point points[SERIES_SIZES];
    struct sigmoid_fit sigmoids;
    struct chain chain;

    curve->nodes = s->nodes;
    curve->bytes_min = s->points[0].bytes;
    curve->bytes_max = s->points[s->count - 1].bytes;
    chain_fit(s, &chain);
    take_chain(&chain, curve);
    if (s->count < MIN_SIZES || chain.error < GOOD)
        return;
    for (uint32_t i = 0; i < s->count; i++) {
        const struct series_point *p = &s->points[i];

        points[i] = (struct sigmoid_point){
            .bytes = p->bytes,
            .sent_bytes = p->bytes,
            .steps = 1,
            .us = sqrt(p->us[0] * p->us[1]),
        };
    }
    if (sigmoid_fit(points, s->count, CURVE_PIECES, &sigmoids) ||
        sigmoids.error < 0 || sigmoids.error >= WORTH * chain.error)
        return;
    free(curve->knots);
    curve->knots = NULL;
    curve->knot_count = 0;
    take_sigmoids(&sigmoids, curve);
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
