/* SPDX-License-Identifier: Apache-2.0
 * Carrying measured curves to node counts that were not measured.
 * doc/commfit.md compares the rules; the ones here had the least error over the
 * public data with a node count left out. */
#include "runtime/cost_nccl.h"
#include "runtime/fit_curve.h"

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

/* One node says nothing about a network: with nothing else below, only the
 * curve above counts. Else the middle of what is known: a ring or a tree from
 * below, a ring from above, and what lies between two rings or two trees; one
 * curve that was disturbed, or switched, does not decide alone. */
static double ring_between(const struct around *a, const struct target *t)
{
    double ring_high = ring_us(a->high, a->gpus, t);

    if (a->low->nodes == 1)
        return ring_high;
    double ring_low = ring_us(a->low, a->gpus, t);
    double tree_low = plain_us(a->low, t), tree_high = plain_us(a->high, t);
    double w = position(a, t);
    return median_of_3(median_of_3(ring_low, ring_high, tree_low),
                       log_mean(ring_low, ring_high, w),
                       log_mean(tree_low, tree_high, w));
}

/* How the time grew towards the largest count from the one before it: 0, as a
 * tree's, to 1, as a ring's; halfway where nothing tells. */
static double ring_share(const struct around *a, const struct target *t)
{
    if (!a->before)
        return 0.5;
    struct target seen = {t->bytes, a->low->nodes, a->gpus, t->in_place};
    double tree = plain_us(a->before, t);
    double grew = log(plain_us(a->low, t) / tree);
    double ring = log(ring_us(a->before, a->gpus, &seen) / tree);

    return ring > 0 ? fmin(fmax(grew / ring, 0), 1) : 0.5;
}

/* Which of ring and tree NCCL takes at a larger count is its cost model's
 * choice: by halves, and what it last did counts for one of them. */
static double ring_above(const struct around *a, const struct target *t)
{
    double ring = ring_us(a->low, a->gpus, t), tree = plain_us(a->low, t);

    return log_mean(tree, ring, (0.5 + ring_share(a, t)) / 2);
}

static double ring_below(const struct around *a, const struct target *t)
{
    return ring_us(a->high, a->gpus, t);
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

/* A pipeline grows with its depth, and by the square root of it as measured;
 * what the smallest size takes is not part of the pipeline. */
static double depth_us(const struct fit_curve *c, const struct target *t)
{
    double floor_us =
        fmin(fit_curve_us(c, c->bytes_min, t->in_place), plain_us(c, t));
    double depth = (1 + log2(t->nodes)) / (1 + log2(c->nodes));

    return floor_us + (plain_us(c, t) - floor_us) * sqrt(depth);
}

static double depth_above(const struct around *a, const struct target *t)
{
    return depth_us(a->low, t);
}

static double depth_below(const struct around *a, const struct target *t)
{
    return depth_us(a->high, t);
}

/* Of N equal parts those that go elsewhere. */
static double leaving(double n)
{
    return n > 1 ? (n - 1) / n : 1;
}

/* The part of the buffer that leaves a node grows as (N - 1) / N; where several
 * nodes are hardly slower than one (a rack with NVLink throughout) a node is no
 * boundary, and what leaves a rank counts, (P - 1) / P. */
#define NO_BOUNDARY 1.5

static double exchange_us(const struct around *a, const struct fit_curve *c,
                          const struct target *t)
{
    double from = c->nodes, to = t->nodes, us = plain_us(c, t);

    if (a->one && us < NO_BOUNDARY * plain_us(a->one, t)) {
        from *= a->gpus;
        to *= t->gpus;
    }
    return us * leaving(to) / leaving(from);
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
    [FIT_BROADCAST] = {plain_between, depth_above, depth_below},
    [FIT_REDUCE] = {plain_between, depth_above, depth_below},
    [FIT_ALLTOALL] = {plain_between, exchange_above, exchange_below},
    [FIT_SENDRECV] = {plain_between, trend_above, plain_below},
    [FIT_GATHER] = {plain_between, exchange_above, exchange_below},
    [FIT_SCATTER] = {plain_between, exchange_above, exchange_below},
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
