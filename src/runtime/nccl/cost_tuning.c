/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nccl/cost_tuning.h"

#include <math.h>
#include <string.h>

enum { LL, LL128, SIMPLE, PROTOCOLS };

/* Microseconds of one algorithm with each protocol. */
struct latencies {
    double base[PROTOCOLS]; /* of the whole call */
    double link[PROTOCOLS]; /* of a step on NVLink */
    double net[PROTOCOLS];  /* of a step on the network */
};

static const struct latencies latencies[COST_ALGO_COUNT] = {
    [COST_ALGO_RING] = {{6.6, 14.0, 8.4}, {0.6, 1.9, 3.4}, {2.7, 4.0, 14.0}},
    [COST_ALGO_TREE] = {{6.8, 14.0, 8.4}, {0.6, 1.25, 4.0}, {5.0, 8.5, 14.0}},
    [COST_ALGO_NVLS] = {{0}, {0, 0, 25}, {0, 0, 18}},
    [COST_ALGO_NVLS_TREE] = {{0}, {0, 0, 25}, {0, 0, 20.9}},
    [COST_ALGO_PAT] = {{8.0, 8.0, 8.0}, {0, 0, 4.0}, {0, 0, 14}},
};

static const char *const names[COST_ALGO_COUNT] = {
    "auto", "ring", "tree", "nvls", "nvls-tree", "pat"};

enum cost_algo cost_algo_find(const char *name)
{
    int i = 0;

    while (i < COST_ALGO_COUNT && strcmp(name, names[i]) != 0)
        i++;
    return (enum cost_algo)i;
}

static bool is_gather(enum fit_coll coll)
{
    return coll == FIT_ALL_GATHER || coll == FIT_REDUCE_SCATTER;
}

static bool is_tuned(enum fit_coll coll)
{
    return is_gather(coll) || coll == FIT_ALL_REDUCE ||
           coll == FIT_BROADCAST || coll == FIT_REDUCE;
}

/* Which algorithm NCCL has for which collective, and where. */
static bool has_algo(const struct cost_tuning *t, enum cost_algo algo)
{
    switch (algo) {
    case COST_ALGO_RING:
        return is_tuned(t->coll);
    case COST_ALGO_TREE:
        return t->coll == FIT_ALL_REDUCE;
    case COST_ALGO_NVLS:
        return t->nvls && t->nodes <= 1 && t->gpus > 4 &&
               (t->coll == FIT_ALL_REDUCE || is_gather(t->coll));
    case COST_ALGO_NVLS_TREE:
        return t->nvls && t->nodes > 1 && t->gpus > 4 &&
               t->coll == FIT_ALL_REDUCE;
    case COST_ALGO_PAT:
        return t->nodes > 1 && t->gpus <= 1 && is_gather(t->coll);
    default:
        return false;
    }
}

static bool has_protocol(enum cost_algo algo, int protocol)
{
    return algo == COST_ALGO_RING || algo == COST_ALGO_TREE ||
           protocol == SIMPLE;
}

static double log2_floor(double x)
{
    return x > 1 ? floor(log2(x)) : 0;
}

/* A ring's steps; a step inside a node still launches the network's part. */
static double ring_latency(enum fit_coll coll, double nodes, double gpus,
                           int protocol)
{
    const struct latencies *l = &latencies[COST_ALGO_RING];
    double passes = coll == FIT_ALL_REDUCE ? 2 : 1;
    double net_steps = nodes > 1 ? nodes - 1 : 0;
    double link = l->link[protocol], net = l->net[protocol];

    if (coll == FIT_BROADCAST || coll == FIT_REDUCE)
        return l->base[protocol] + (nodes > 1 ? net : link);
    if (nodes > 1)
        link = fmax(link, protocol == SIMPLE ? 3 : 1);
    if (gpus <= 1)
        net = latencies[COST_ALGO_TREE].net[protocol];
    return l->base[protocol] +
           passes * ((nodes * gpus - 1 - net_steps) * link + net_steps * net);
}

static double step_latency(enum fit_coll coll, double nodes, double gpus,
                           enum cost_algo algo, int protocol)
{
    const struct latencies *l = &latencies[algo];
    double link = l->link[protocol], net = l->net[protocol];
    double depth = log2_floor(nodes);

    switch (algo) {
    case COST_ALGO_RING:
        return ring_latency(coll, nodes, gpus, protocol);
    case COST_ALGO_TREE:
        return l->base[protocol] + 2 * ((gpus - 1) * link + depth * net);
    case COST_ALGO_NVLS_TREE:
        return link + 2 * depth * net;
    case COST_ALGO_PAT:
        return l->base[protocol] + depth * net / 3.5 + 2.8 * nodes * gpus;
    default:
        return link;
    }
}

/* LL moves 8 bytes a flag: its bandwidth ends here, by the GPU's generation
 * (which its links tell) on one node, by the host on more. */
static double ll_limit(const struct cost_tuning *t)
{
    static const struct {
        double links_below, one, two, more;
    } rows[] = {{130, 39, 39, 20.4},
                {280, 87.7, 22.5, 19},
                {500, 141, 45, 35},
                {INFINITY, 282, 90, 70}};
    int i = 0;

    while (t->intra_gbps >= rows[i].links_below)
        i++;
    return t->nodes <= 1   ? rows[i].one
           : t->nodes <= 2 ? rows[i].two
                           : rows[i].more;
}

/* An all-reduce in the switch sends each byte once: 480 GB/s where the ring
 * reaches 368 (8 H100, data/benchmarks/nccl/h100x10.csv). */
#define NVLS_GAIN 1.3

static double bus_gbps(const struct cost_tuning *t, enum cost_algo algo,
                       int protocol)
{
    double gbps = t->nodes > 1 ? t->inter_gbps : t->intra_gbps;

    if (t->nodes > 1 && t->intra_gbps > 0 && t->gpus > 1)
        gbps = fmin(gbps, algo == COST_ALGO_RING ? t->intra_gbps : gbps);
    switch (algo) {
    case COST_ALGO_RING:
        return protocol == LL      ? fmin(ll_limit(t), gbps / 2)
               : protocol == LL128 ? gbps * 0.92
                                   : gbps;
    case COST_ALGO_TREE:
        gbps *= 0.92;
        return protocol == LL      ? fmin(ll_limit(t), gbps / 3.8)
               : protocol == LL128 ? gbps * 120 / 128
                                   : gbps;
    case COST_ALGO_NVLS:
        return t->coll == FIT_ALL_REDUCE ? gbps * NVLS_GAIN : gbps;
    case COST_ALGO_PAT:
        return gbps * 0.75;
    default:
        return gbps;
    }
}

static double algo_us(const struct cost_tuning *t, enum cost_algo algo)
{
    double ranks = t->nodes * t->gpus, best = -1;
    double bus_bytes = fit_coll_factor(t->coll, ranks) * t->bytes;

    for (int protocol = 0; protocol < PROTOCOLS; protocol++) {
        double gbps = bus_gbps(t, algo, protocol);

        if (!has_protocol(algo, protocol) || !(gbps > 0))
            continue;
        double us = step_latency(t->coll, t->nodes, t->gpus, algo, protocol) +
                    bus_bytes / (1e3 * gbps);
        if (best < 0 || us < best)
            best = us;
    }
    return best;
}

double cost_tuning_us(const struct cost_tuning *t, enum cost_algo algo)
{
    double best = -1;

    for (int a = COST_ALGO_RING; a < COST_ALGO_COUNT; a++) {
        if ((algo && algo != (enum cost_algo)a) ||
            !has_algo(t, (enum cost_algo)a))
            continue;
        double us = algo_us(t, (enum cost_algo)a);
        if (us >= 0 && (best < 0 || us < best))
            best = us;
    }
    return best;
}

double cost_tuning_latency_us(enum fit_coll coll, double nodes, double gpus)
{
    double ranks = nodes * gpus;
    double ring = step_latency(coll, nodes, gpus, COST_ALGO_RING, LL);

    if (coll == FIT_ALL_REDUCE)
        return fmin(ring, step_latency(coll, nodes, gpus, COST_ALGO_TREE, LL));
    if (is_gather(coll) && nodes > 1 && gpus <= 1)
        return fmin(ring,
                    step_latency(coll, nodes, gpus, COST_ALGO_PAT, SIMPLE));
    if (is_tuned(coll))
        return ring;
    if (coll == FIT_SENDRECV)
        return latencies[COST_ALGO_RING].base[LL] +
               latencies[COST_ALGO_RING].link[LL];
    /* Each rank's P - 1 messages, one after the other. */
    return latencies[COST_ALGO_RING].base[LL] +
           (ranks - 1) * latencies[COST_ALGO_RING].link[LL];
}
