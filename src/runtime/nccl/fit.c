/* SPDX-License-Identifier: Apache-2.0
 * What a fit must satisfy. */
#include "runtime/nccl/fit.h"
#include "common/base/err.h"

#include <math.h>

#define US_MAX    1e12
#define BYTES_MAX 0x1p60

static bool in_range(double x, double low, double high)
{
    return x >= low && x <= high; /* false for a NaN */
}

static bool sigmoids_good(const struct fit_sigmoid *pieces, uint32_t count)
{
    double last = -1;

    for (uint32_t i = 0; i < count; i++) {
        const struct fit_sigmoid *p = &pieces[i];

        if (!in_range(p->from_bytes, 0, BYTES_MAX) || p->from_bytes <= last ||
            !in_range(p->latency_us, 0, US_MAX) ||
            !in_range(p->limit_gbps, 0, 1e9) ||
            !in_range(p->steepness, 0, 100) ||
            !in_range(p->midpoint, -100, 100) ||
            !in_range(p->base_gbps, 1e-12, 1e9))
            return false;
        last = p->from_bytes;
    }
    return count >= 1 && count <= FIT_PIECES;
}

static bool knots_good(const struct fit_knot *knots, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!in_range(knots[i].bytes, 1, BYTES_MAX) ||
            (i && knots[i].bytes <= knots[i - 1].bytes))
            return false;
        for (int place = 0; place < 2; place++)
            if (!in_range(knots[i].us[place], 1e-6, US_MAX))
                return false;
    }
    return count >= 1 && count <= FIT_KNOTS_MAX;
}

static bool curve_good(const struct fit_curve *c)
{
    if (!in_range(c->bytes_min, 1, BYTES_MAX) ||
        !in_range(c->bytes_max, c->bytes_min, BYTES_MAX))
        return false;
    if (c->form == FIT_CHAIN || c->knot_count)
        if (!knots_good(c->knots, c->knot_count))
            return false;
    return c->form == FIT_CHAIN || sigmoids_good(c->pieces, c->piece_count);
}

static bool all_finite(const double *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return false;
    return true;
}

static bool family_good(const struct fit_family *f)
{
    uint32_t last = 0;

    if (!in_range(f->gpus_per_node, 1, 1 << 20) || !f->curve_count ||
        f->curve_count > FIT_CURVES_MAX)
        return false;
    for (uint32_t i = 0; i < f->curve_count; i++) {
        if (f->curves[i].nodes <= last || !curve_good(&f->curves[i]))
            return false;
        last = f->curves[i].nodes;
    }
    return all_finite(f->regression.terms, FIT_TERMS) &&
           all_finite(f->straggler.intercept, FIT_QUANTILES) &&
           all_finite(f->straggler.slope, FIT_QUANTILES) &&
           all_finite(f->update.shift, FIT_HATS) &&
           all_finite(&f->update.covariance[0][0], FIT_HATS * FIT_HATS);
}

static bool level_good(const struct fit_level *l)
{
    return !l->known || (in_range(l->latency_us, 0, US_MAX) &&
                         sigmoids_good(l->pieces, l->piece_count));
}

int fit_check(const struct fit *fit, const char *origin, struct err *err)
{
    for (int formula = 0; formula < FIT_FORMULA_COUNT; formula++)
        for (int i = 0; i < FIT_LEVELS; i++)
            if (!level_good(&fit->levels[formula][i]))
                return err_set(err,
                               "%s: level %d has a number out of range; fit "
                               "it anew",
                               origin, i);
    for (uint32_t i = 0; i < fit->family_count; i++)
        if (!family_good(&fit->families[i]))
            return err_set(err,
                           "%s: %s on %u GPUs a node has a number out of "
                           "range or out of order; fit it anew",
                           origin, fit_coll_name(fit->families[i].coll),
                           fit->families[i].gpus_per_node);
    return 0;
}
