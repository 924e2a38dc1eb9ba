/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nccl/fit_curve.h"
#include "common/base/bisect.h"

#include <math.h>

/* Bounds on the last segment's slope over the mean one from zero: tables that
 * end below saturation have less than 1, those whose bandwidth falls, more. */
#define SLOPE_MIN 0.3
#define SLOPE_MAX 1.2

static double line_us(const struct fit_knot *a, const struct fit_knot *b,
                      double bytes, bool in_place)
{
    double slope = (b->us[in_place] - a->us[in_place]) / (b->bytes - a->bytes);

    return a->us[in_place] + slope * (bytes - a->bytes);
}

/* Small collectives take what their steps' latencies add up to, which no size
 * above says: about this much on one node and for each doubling of nodes, in
 * the public tables (8 to 17 us on one node, 19 to 33 on 2, 42 to 55 on 8). */
#define DOUBLING_US 12.0

/* Below the first size times fall less steeply than between the first two. */
#define FLATTER 0.85

static double below_us(const struct fit_curve *c, double bytes, bool in_place)
{
    const struct fit_knot *k = c->knots;
    double first = k[0].us[in_place];
    double least = fmin(first, DOUBLING_US * (1 + log2(c->nodes)));

    if (c->knot_count < 2)
        return first;
    double steepness =
        log(k[1].us[in_place] / first) / log(k[1].bytes / k[0].bytes);
    steepness = FLATTER * fmin(fmax(steepness, 0), 1);
    return fmax(first * pow(bytes / k[0].bytes, steepness), least);
}

static double above_us(const struct fit_knot *knots, uint32_t count,
                       double bytes, bool in_place)
{
    const struct fit_knot *last = &knots[count - 1];
    double us = last->us[in_place], mean = us / last->bytes, slope = mean;

    if (count > 1)
        slope = (us - last[-1].us[in_place]) / (last->bytes - last[-1].bytes);
    slope = fmin(fmax(slope, SLOPE_MIN * mean), SLOPE_MAX * mean);
    return us + slope * (bytes - last->bytes);
}

/* Of COUNT > 1 knots the last one that is at most BYTES, but not the very last:
 * BYTES lies between it and the next one. */
static const struct fit_knot *knot_below(const struct fit_knot *knots,
                                         uint32_t count, double bytes)
{
    uint32_t above = BISECT(i, count - 1, knots[i].bytes <= bytes);

    return &knots[above ? above - 1 : 0];
}

double fit_chain_us(const struct fit_knot *knots, uint32_t count, double bytes,
                    bool in_place)
{
    if (bytes >= knots[count - 1].bytes)
        return above_us(knots, count, bytes, in_place);
    const struct fit_knot *low = knot_below(knots, count, bytes);
    return line_us(low, low + 1, bytes, in_place);
}

/* Pieces meet over a factor of 2 around the size where the next one begins, so
 * that no step is where no step was measured. Returns the piece of BYTES, and
 * in *WEIGHT how much of the next one counts. */
static const struct fit_sigmoid *piece_find(const struct fit_sigmoid *pieces,
                                            uint32_t count, double bytes,
                                            double *weight)
{
    uint32_t i = 0;

    *weight = 0;
    while (i + 1 < count && pieces[i + 1].from_bytes * M_SQRT2 <= bytes)
        i++;
    if (i + 1 < count && pieces[i + 1].from_bytes * M_SQRT1_2 < bytes)
        *weight = log2(bytes / pieces[i + 1].from_bytes) + 0.5;
    return &pieces[i];
}

static double piece_gbps(const struct fit_sigmoid *p, double bytes)
{
    double x = log(bytes + 1) - p->midpoint;

    return p->limit_gbps / (1 + exp(-p->steepness * x)) + p->base_gbps;
}

static double piece_us(const struct fit_sigmoid *p, double bytes)
{
    return p->latency_us + bytes / (1e3 * piece_gbps(p, bytes));
}

/* VALUE of the pieces at BYTES, between two of them on a line in logarithms. */
static double pieces_at(const struct fit_sigmoid *pieces, uint32_t count,
                        double bytes,
                        double (*value)(const struct fit_sigmoid *, double))
{
    double weight;
    const struct fit_sigmoid *p = piece_find(pieces, count, bytes, &weight);
    double x = value(p, bytes);

    if (weight > 0)
        x *= pow(value(p + 1, bytes) / x, weight);
    return x;
}

double fit_sigmoid_gbps(const struct fit_sigmoid *pieces, uint32_t count,
                        double bytes)
{
    return pieces_at(pieces, count, bytes, piece_gbps);
}

double fit_sigmoid_us(const struct fit_sigmoid *pieces, uint32_t count,
                      double bytes)
{
    return pieces_at(pieces, count, bytes, piece_us);
}

double fit_correction(const struct fit_knot *knots, uint32_t count,
                      double bytes, bool in_place)
{
    const struct fit_knot *last = &knots[count - 1];

    if (bytes <= knots[0].bytes)
        return knots[0].us[in_place];
    if (bytes >= last->bytes)
        return last->us[in_place];
    const struct fit_knot *a = knot_below(knots, count, bytes), *b = a + 1;
    double weight = log(bytes / a->bytes) / log(b->bytes / a->bytes);
    return a->us[in_place] + weight * (b->us[in_place] - a->us[in_place]);
}

double fit_curve_us(const struct fit_curve *curve, double bytes, bool in_place)
{
    double us;

    if (curve->form == FIT_CHAIN && bytes < curve->knots[0].bytes)
        us = below_us(curve, bytes, in_place);
    else if (curve->form == FIT_CHAIN)
        us = fit_chain_us(curve->knots, curve->knot_count, bytes, in_place);
    else
        us = fit_sigmoid_us(curve->pieces, curve->piece_count, bytes);
    if (curve->form == FIT_SIGMOID && curve->knot_count)
        us *= fit_correction(curve->knots, curve->knot_count, bytes, in_place);
    return fmax(us, FIT_MIN_US);
}
