/* SPDX-License-Identifier: Apache-2.0
 * Carrying measured curves to node counts that were not measured.
 * doc/commfit.md compares the rules; the ones here had the least error over the
 * public data with a node count left out. */
#include "runtime/cost/cost_nccl.h"
#include "runtime/cost/fit_curve.h"

#include <math.h>

/* What is asked for. */
struct target {
    double bytes;
    double nodes;
    double gpus;
    bool in_place;
};

/* The measured curves around it. */
struct around {
    const struct fit_curve *low;    /* the most nodes below, or NULL */
    const struct fit_curve *high;   /* the fewest above, or NULL */
    double gpus;                    /* the curves' own width */
    const struct fit_curve *one;    /* on one node, or NULL */
    const struct fit_curve *before; /* several nodes, below LOW, or NULL */
};

typedef double scale_rule(const struct around *a, const struct target *t);

static double plain_us(const struct fit_curve *c, const struct target *t)
{
    return fit_curve_us(c, t->bytes, t->in_place);
}

/* A ring takes 2 (P - 1) or P - 1 equal steps of S / P bytes each, and the
 * step's time is a function of its bytes: from P0 to P1 ranks the size shifts
 * by P0 / P1, protocol switches with it, and the steps scale. */
static double ring_us(const struct fit_curve *c, double gpus,
                      const struct target *t)
{
    double from = c->nodes * gpus, to = t->nodes * t->gpus;

    if (from < 2)
        return plain_us(c, t);
    return fit_curve_us(c, t->bytes * from / to, t->in_place) * (to - 1) /
           (from - 1);
}

static double median_of_3(double a, double b, double c)
{
    return fmax(fmin(a, b), fmin(fmax(a, b), c));
}

static double log_mean(double a, double b, double weight_b)
{
    return a * pow(b / a, weight_b);
}

/* 0 at the lower count, 1 at the upper one. */
static double position(const struct around *a, const struct target *t)
{
    return log2(t->nodes / a->low->nodes) /
           log2((double)a->high->nodes / a->low->nodes);
}

/* A tree's time grows with its depth. */
static double tree_us(const struct fit_curve *c, const struct target *t)
{
    return plain_us(c, t) * (1 + log2(t->nodes)) / (1 + log2(c->nodes));
}

/* NCCL takes the faster of ring and tree, whose growth is not the same, so that
 * the time changes by the lesser of what the two say, up or down. */
static double grown_us(const struct fit_curve *c, double gpus,
                       const struct target *t)
{
    double ring = ring_us(c, gpus, t), tree = tree_us(c, t);

    return t->nodes < c->nodes ? fmax(ring, tree) : fmin(ring, tree);
}

/* What is told from below and from above may differ by this factor; above it
 * the larger job was slower than rings and trees explain (its network was
 * disturbed, or is another one there), and it says nothing about a smaller one.
 * As series_clean's for two samples of a point. */
#define AGREE 1.35

/* One node says nothing about a network: with nothing else below, only the
 * curve above counts. */
static double ring_between(const struct around *a, const struct target *t)
{
    double from_high = grown_us(a->high, a->gpus, t);

    if (a->low->nodes == 1)
        return from_high;
    double from_low = grown_us(a->low, a->gpus, t);
    return from_high > AGREE * from_low ? from_low : sqrt(from_low * from_high);
}

static double ring_above(const struct around *a, const struct target *t)
{
    return grown_us(a->low, a->gpus, t);
}

static double ring_below(const struct around *a, const struct target *t)
{
    return grown_us(a->high, a->gpus, t);
}

static double plain_between(const struct around *a, const struct target *t)
{
    double low = plain_us(a->low, t), high = plain_us(a->high, t);
    double w = position(a, t);

    return a->low->nodes == 1 ? low + w * (high - low) : log_mean(low, high, w);
}

/* As the last two counts did: a larger job goes through more of the switches
 * (16 nodes of B200: 43, 44, 26, 15 GB/s on 2, 4, 8, 16). */
static double trend_above(const struct around *a, const struct target *t)
{
    double us = plain_us(a->low, t);

    if (!a->before)
        return us;
    double slope = log(us / plain_us(a->before, t)) /
                   log((double)a->low->nodes / a->before->nodes);
    return us * pow(t->nodes / a->low->nodes, fmin(fmax(slope, 0), 1));
}

static double plain_below(const struct around *a, const struct target *t)
{
    return plain_us(a->high, t);
}

/* Of a pipeline on one node and on several the middle of three: a ring from
 * above, and what lies between two rings or two pipelines; one of the two
 * public tables is 10 times as slow on 4 nodes as on 2. */
static double pipeline_between(const struct around *a, const struct target *t)
{
    if (a->low->nodes > 1)
        return ring_between(a, t);
    double ring_high = ring_us(a->high, a->gpus, t);
    return median_of_3(
        ring_high, plain_between(a, t),
        log_mean(ring_us(a->low, a->gpus, t), ring_high, position(a, t)));
}

/* Of N equal parts those that go elsewhere. */
static double leaving(double n)
{
    return n > 1 ? (n - 1) / n : 1;
}

/* Several nodes that are hardly slower than one (a rack with NVLink throughout)
 * have no boundary between them. */
#define NO_BOUNDARY 1.5

static bool is_rack(const struct around *a, const struct fit_curve *c,
                    const struct target *t)
{
    return a->one && plain_us(c, t) < NO_BOUNDARY * plain_us(a->one, t);
}

/* In a rack each rank sends P - 1 messages of S / P. The part of the buffer
 * that leaves a rank grows as (P - 1) / P; the messages' latencies, which the
 * line through S and 2 S leaves at 0 bytes, add up or overlap: by halves. */
static double messages_us(const struct around *a, const struct fit_curve *c,
                          const struct target *t)
{
    double from = c->nodes * a->gpus, to = t->nodes * t->gpus;
    double us = plain_us(c, t);
    double twice = fit_curve_us(c, 2 * t->bytes, t->in_place);
    double latency = fmax(2 * us - twice, 0);
    double rest = (us - latency) * leaving(to) / leaving(from);

    if (from < 2)
        return us;
    return sqrt((rest + latency) * (rest + latency * (to - 1) / (from - 1)));
}

/* Else the part that leaves a node, (N - 1) / N, sets the pace. */
static double exchange_us(const struct around *a, const struct fit_curve *c,
                          const struct target *t)
{
    if (is_rack(a, c, t))
        return messages_us(a, c, t);
    return plain_us(c, t) * leaving(t->nodes) / leaving(c->nodes);
}

/* In a rack both neighbours are of one kind, and rings are P - 1 messages of
 * S / P, too. */
static double exchange_between(const struct around *a, const struct target *t)
{
    if (is_rack(a, a->high, t))
        return ring_us(a->high, a->gpus, t);
    return plain_between(a, t);
}

static double exchange_above(const struct around *a, const struct target *t)
{
    return exchange_us(a, a->low, t);
}

static double exchange_below(const struct around *a, const struct target *t)
{
    return exchange_us(a, a->high, t);
}

/* Between two counts, beyond the largest, below the smallest. */
static const struct {
    scale_rule *between, *above, *below;
} rules[FIT_COLL_COUNT] = {
    [FIT_ALL_REDUCE] = {ring_between, ring_above, ring_below},
    [FIT_ALL_GATHER] = {ring_between, ring_above, ring_below},
    [FIT_REDUCE_SCATTER] = {ring_between, ring_above, ring_below},
    [FIT_BROADCAST] = {pipeline_between, ring_above, ring_below},
    [FIT_REDUCE] = {pipeline_between, ring_above, ring_below},
    [FIT_ALLTOALL] = {exchange_between, exchange_above, exchange_below},
    [FIT_SENDRECV] = {plain_between, trend_above, plain_below},
    [FIT_GATHER] = {exchange_between, exchange_above, exchange_below},
    [FIT_SCATTER] = {exchange_between, exchange_above, exchange_below},
};

static struct around find_around(const struct fit_family *family,
                                 uint32_t nodes)
{
    struct around a = {.gpus = family->gpus_per_node};

    for (uint32_t i = 0; i < family->curve_count; i++) {
        const struct fit_curve *c = &family->curves[i];

        if (c->nodes == 1)
            a.one = c;
        if (c->nodes <= nodes && a.low && a.low->nodes > 1)
            a.before = a.low;
        if (c->nodes <= nodes)
            a.low = c;
        if (c->nodes >= nodes && !a.high)
            a.high = c;
    }
    return a;
}

static void flag_range(const struct fit_curve *c, double bytes, unsigned *flags)
{
    if (bytes < c->bytes_min)
        *flags |= COST_NCCL_BELOW;
    if (bytes > c->bytes_max)
        *flags |= COST_NCCL_ABOVE;
}

/* On as many nodes as the curve, but with other GPUs in each. Inside a node a
 * GPU brings its own links. Between nodes rings share the network adapters of
 * the node, one a GPU, so that a node's rate grows with its GPUs (10 nodes of
 * H100: 48.9, 98, 196, 364 GB/s with 1, 2, 4, 8), as if the buffer had shrunk;
 * an exchange gives each rank its own (44.8, 47.8, 49.7, 50.7). */
static double width_us(const struct fit_family *family,
                       const struct fit_curve *c, const struct target *t)
{
    struct target same = *t;

    if (t->gpus == family->gpus_per_node ||
        rules[family->coll].between != ring_between)
        return plain_us(c, t);
    if (c->nodes == 1)
        return ring_us(c, family->gpus_per_node, t);
    same.bytes *= family->gpus_per_node / t->gpus;
    return plain_us(c, &same);
}

double cost_nccl_curves_us(const struct fit_family *family, double bytes,
                           uint32_t nodes, uint32_t gpus, bool in_place,
                           unsigned *flags)
{
    struct target t = {bytes, nodes, gpus, in_place};
    struct around a = find_around(family, nodes);
    const struct fit_curve *near = a.low ? a.low : a.high;

    flag_range(near, bytes, flags);
    if (near->nodes == nodes)
        return width_us(family, near, &t);
    if (a.low && a.high) {
        *flags |= COST_NCCL_BETWEEN;
        return rules[family->coll].between(&a, &t);
    }
    *flags |= COST_NCCL_BEYOND;
    return a.low ? rules[family->coll].above(&a, &t)
                 : rules[family->coll].below(&a, &t);
}
