/* SPDX-License-Identifier: Apache-2.0
 * The errors of an answer's parts add up as independent ones do: that of a size
 * between measured ones, of a size outside by its distance, of a node count by
 * its distance, of another width, of another source.
 *
 * Each is the 80% quantile of |log(predicted / measured)|. What the cluster's
 * own data says of it, with parts left out, counts half; the other half, and
 * all where the data says nothing, are the public clusters together, each with
 * the same weight (bench/commfit_uses --rows; doc/commfit.md, errors). */
#include "runtime/nccl/cost_nccl_band.h"

#include <math.h>

/* FIRST + DOUBLING for each doubling of the distance, at most MOST. */
struct spread {
    double first, doubling, most;
};

static const struct spread inside = {0.07, 0, 0.07};
static const struct spread below = {0.30, 0.08, 0.95};
static const struct spread above = {0.05, 0.05, 0.50};
static const struct spread between_nodes = {0.24, 0, 0.24};
static const struct spread outside_nodes = {0.20, 0.10, 1.20};

/* All-gather and reduce-scatter have no trees: each node's latency adds up, and
 * the protocol changes with the number of steps (Polaris, 2 to 8 nodes: up to
 * 4.5 times the time below 2 MiB). */
static const struct spread outside_nodes_rings = {0.40, 0.30, 1.20};

static const struct {
    unsigned flag;
    double spread;
} sources[] = {
    {COST_NCCL_OTHER_WIDTH, 0.24}, {COST_NCCL_OTHER_COLL, 0.60},
    {COST_NCCL_FORMULA, 0.60},     {COST_NCCL_SHEET, 0.50},
    {COST_NCCL_OTHER_LINKS, 0.80}, {COST_NCCL_FALLBACK, 0.60},
};

/* A median error is about this part of the 80% quantile, over the same data. */
#define MEDIAN_OF_BAND 0.45

/* Sizes left out leave gaps twice as wide as those of the fit. */
#define GAP 0.75

static double at_distance(const struct spread *s, double doublings)
{
    return fmin(s->first + s->doubling * doublings, s->most);
}

/* OWN (negative: not measured) and what the public clusters say, half and half
 * on a logarithmic scale; PUBLIC_FIRST is theirs where OWN was measured. */
static double with_own(double own, double public_first, double spread)
{
    if (own < 0)
        return spread;
    return spread * sqrt(fmax(own, 0.2 * public_first) / public_first);
}

/* The curve whose node count is nearest to NODES. */
static const struct fit_curve *nearest_curve(const struct fit_family *f,
                                             uint32_t nodes)
{
    const struct fit_curve *best = &f->curves[0];

    for (uint32_t i = 1; i < f->curve_count; i++)
        if (fabs(log((double)f->curves[i].nodes / nodes)) <
            fabs(log((double)best->nodes / nodes)))
            best = &f->curves[i];
    return best;
}

static double size_spread(const struct fit_family *f, const struct fit_curve *c,
                          const struct cost_nccl_query *q, unsigned flags)
{
    double own = f->errors.size_band;

    if (flags & COST_NCCL_BELOW)
        return at_distance(&below, fmax(log2(c->bytes_min / q->bytes), 0));
    if (flags & COST_NCCL_ABOVE)
        return at_distance(&above, fmax(log2(q->bytes / c->bytes_max), 0));
    return own >= 0 ? fmax(own * GAP, 0.005) : inside.first;
}

/* Large sizes depend on the network, small ones on latencies, which differ less
 * from one node count to another. */
#define LARGE_BYTES  0x1p20
#define LARGE_SPREAD 1.3
#define SMALL_SPREAD 0.8

static bool is_gather(enum fit_coll coll)
{
    return coll == FIT_ALL_GATHER || coll == FIT_REDUCE_SCATTER;
}

static double nodes_spread(const struct fit_family *f,
                           const struct fit_curve *c,
                           const struct cost_nccl_query *q, unsigned flags)
{
    double size = q->bytes >= LARGE_BYTES ? LARGE_SPREAD : SMALL_SPREAD;

    if (flags & COST_NCCL_BETWEEN)
        return size * with_own(f->errors.between_band, between_nodes.first,
                               between_nodes.first);
    if (!(flags & COST_NCCL_BEYOND))
        return 0;
    double doublings = fabs(log2((double)q->nodes / c->nodes));
    if (is_gather(f->coll))
        return with_own(f->errors.beyond_band,
                        at_distance(&outside_nodes_rings, 1),
                        at_distance(&outside_nodes_rings, doublings));
    return size * with_own(f->errors.beyond_band,
                           at_distance(&outside_nodes, 1),
                           at_distance(&outside_nodes, doublings));
}

void cost_nccl_band(const struct fit_family *family,
                    const struct cost_nccl_query *query,
                    struct cost_nccl_answer *answer)
{
    double squares = 0;

    if (family) {
        const struct fit_curve *c = nearest_curve(family, query->nodes);
        double size = size_spread(family, c, query, answer->flags);
        double nodes = nodes_spread(family, c, query, answer->flags);

        squares = size * size + nodes * nodes;
    }
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
        if (answer->flags & sources[i].flag)
            squares += sources[i].spread * sources[i].spread;
    double band = sqrt(squares);
    answer->low_us = answer->us * exp(-band);
    answer->high_us = answer->us * exp(band);
    answer->error = expm1(MEDIAN_OF_BAND * band);
}
