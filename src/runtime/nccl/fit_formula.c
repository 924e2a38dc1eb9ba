/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nccl/fit_formula.h"
#include "runtime/nccl/fit_curve.h"

#include <math.h>

typedef struct fit_shares shares_of(double bytes, double nodes, double gpus);

static double tree_depth(double nodes)
{
    return nodes > 1 ? floor(log2(nodes)) + 1 : 0;
}

/* Published: a double binary tree between nodes, a chain inside; the whole
 * buffer up and down each level. */
static struct fit_shares published_all_reduce(double s, double n, double g)
{
    return (struct fit_shares){
        .intra_bytes = g > 1 ? 2 * s : 0,
        .inter_bytes = n > 1 ? 2 * s : 0,
        .intra_steps = g - 1,
        .inter_steps = tree_depth(n),
    };
}

/* Published: (P - N - 1) / (P - N) of the buffer inside, (N - 1) / N between.
 * With one GPU a node P - N is 0 and the first term has no meaning: none. */
static struct fit_shares published_gather(double s, double n, double g)
{
    double inside = n * g - n;

    return (struct fit_shares){
        .intra_bytes = inside > 0 ? fmax(inside - 1, 0) / inside * s : 0,
        .inter_bytes = (n - 1) / n * s,
        .intra_steps = g - 1,
        .inter_steps = n > 1 ? n : 0,
    };
}

static struct fit_shares published_broadcast(double s, double n, double g)
{
    return (struct fit_shares){
        .intra_bytes = g > 1 ? s : 0,
        .inter_bytes = n > 1 ? s : 0,
        .intra_steps = g - 1,
        .inter_steps = tree_depth(n),
    };
}

/* A ring over P ranks with N of its edges between nodes moves (P - 1) / P of
 * the buffer through every edge at once: the slower kind sets the pace. The
 * level of that kind is charged; on one node there is only the other. */
static struct fit_shares ring_shares(double passes, double s, double n,
                                     double g)
{
    double ranks = n * g, bytes = passes * (ranks - 1) / ranks * s;

    return (struct fit_shares){
        .intra_bytes = n > 1 ? 0 : bytes,
        .inter_bytes = n > 1 ? bytes : 0,
        .intra_steps = passes * (ranks - 1 - (n > 1 ? n - 1 : 0)),
        .inter_steps = n > 1 ? passes * (n - 1) : 0,
    };
}

/* The latency of a tree (NCCL takes it for small sizes), the bytes of the
 * ring. */
static struct fit_shares corrected_all_reduce(double s, double n, double g)
{
    struct fit_shares shares = ring_shares(2, s, n, g);

    shares.intra_steps = g - 1;
    shares.inter_steps = tree_depth(n);
    return shares;
}

static struct fit_shares corrected_gather(double s, double n, double g)
{
    return ring_shares(1, s, n, g);
}

/* Pipelined along a chain: the whole buffer through the slowest edge once. */
static struct fit_shares corrected_broadcast(double s, double n, double g)
{
    return (struct fit_shares){
        .intra_bytes = n > 1 ? 0 : s,
        .inter_bytes = n > 1 ? s : 0,
        .intra_steps = g - 1,
        .inter_steps = tree_depth(n),
    };
}

/* Every rank keeps 1 / P; of what it sends, (N - 1) G of P - 1 parts leave the
 * node, through a network that its G ranks share. The same bytes pass through
 * the links of gather's and scatter's one root. */
static struct fit_shares exchange_shares(double s, double n, double g)
{
    double ranks = n * g;

    return (struct fit_shares){
        .intra_bytes = (g - 1) / ranks * s,
        .inter_bytes = (n - 1) * g / ranks * s * g,
        .intra_steps = g > 1,
        .inter_steps = n > 1 ? n - 1 : 0,
    };
}

/* Each rank sends to the next: with several nodes the slowest edge crosses,
 * through the adapter of one of the node's GPUs. */
static struct fit_shares neighbour_shares(double s, double n, double g)
{
    return (struct fit_shares){
        .intra_bytes = n > 1 ? 0 : s,
        .inter_bytes = n > 1 ? s * g : 0,
        .intra_steps = n > 1 ? 0 : 1,
        .inter_steps = n > 1,
    };
}

static shares_of *const formulas[FIT_FORMULA_COUNT][FIT_COLL_COUNT] = {
    [FIT_CORRECTED] =
        {
            [FIT_ALL_REDUCE] = corrected_all_reduce,
            [FIT_ALL_GATHER] = corrected_gather,
            [FIT_REDUCE_SCATTER] = corrected_gather,
            [FIT_BROADCAST] = corrected_broadcast,
            [FIT_REDUCE] = corrected_broadcast,
            [FIT_ALLTOALL] = exchange_shares,
            [FIT_SENDRECV] = neighbour_shares,
            [FIT_GATHER] = exchange_shares,
            [FIT_SCATTER] = exchange_shares,
        },
    [FIT_PUBLISHED] =
        {
            [FIT_ALL_REDUCE] = published_all_reduce,
            [FIT_ALL_GATHER] = published_gather,
            [FIT_REDUCE_SCATTER] = published_gather,
            [FIT_BROADCAST] = published_broadcast,
            [FIT_REDUCE] = published_broadcast,
            [FIT_ALLTOALL] = exchange_shares,
            [FIT_SENDRECV] = neighbour_shares,
            [FIT_GATHER] = exchange_shares,
            [FIT_SCATTER] = exchange_shares,
        },
};

struct fit_shares fit_formula_shares(enum fit_formula formula,
                                     enum fit_coll coll, double bytes,
                                     double nodes, double gpus)
{
    return formulas[formula][coll](bytes, nodes, gpus);
}

/* A level's bandwidth is a function of the collective's size, not of the part
 * of it that the level carries. */
static double level_us(const struct fit_level *level, double size, double bytes,
                       double steps)
{
    if (!level->known || (bytes <= 0 && steps <= 0))
        return 0;
    return steps * level->latency_us +
           bytes / (1e3 *
                    fit_sigmoid_gbps(level->pieces, level->piece_count, size));
}

double fit_formula_us(enum fit_formula formula, enum fit_coll coll,
                      const struct fit_level *levels, double bytes,
                      double nodes, double gpus)
{
    struct fit_shares s = fit_formula_shares(formula, coll, bytes, nodes, gpus);

    return level_us(&levels[FIT_INTRA], bytes, s.intra_bytes, s.intra_steps) +
           level_us(&levels[FIT_INTER], bytes, s.inter_bytes, s.inter_steps);
}

/* Of fit_formula_us the latencies. */
static double fit_formula_latency_us(enum fit_formula formula,
                                     enum fit_coll coll,
                                     const struct fit_level *levels,
                                     double nodes, double gpus)
{
    struct fit_shares s = fit_formula_shares(formula, coll, 1, nodes, gpus);
    double us = 0;

    if (levels[FIT_INTRA].known)
        us += s.intra_steps * levels[FIT_INTRA].latency_us;
    if (levels[FIT_INTER].known)
        us += s.inter_steps * levels[FIT_INTER].latency_us;
    return us;
}

void fit_regression_features(enum fit_coll coll, const struct fit_level *levels,
                             double bytes, double nodes, double gpus,
                             double features[FIT_TERMS])
{
    double t = fit_formula_us(FIT_PUBLISHED, coll, levels, bytes, nodes, gpus);
    double latency =
        fit_formula_latency_us(FIT_PUBLISHED, coll, levels, nodes, gpus);
    double ranks = nodes * gpus, mib = bytes / 0x1p20;
    const double values[FIT_TERMS] = {
        1, t, latency, ranks, mib, t * mib, t * ranks, latency * mib,
    };

    for (int i = 0; i < FIT_TERMS; i++)
        features[i] = values[i];
}
