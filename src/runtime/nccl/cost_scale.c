/* SPDX-License-Identifier: Apache-2.0
 * Carrying measured curves to GPU and node counts that were not measured, by
 * what NCCL's algorithms send and how many steps they take. doc/commfit.md has
 * the rules and their errors.
 *
 * A time has two parts: what its bytes take at the rate of the curve's largest
 * size, and the rest, which is latency of steps. Each part grows by its own
 * rule. */
#include "runtime/nccl/cost_nccl.h"
#include "runtime/nccl/cost_tuning.h"
#include "runtime/nccl/fit_curve.h"

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
    const struct fit_machine *machine;
    enum fit_coll coll;
    double gpus;                    /* the curves' own width */
    const struct fit_curve *low;    /* the most nodes below, or NULL */
    const struct fit_curve *high;   /* the fewest above, or NULL */
    const struct fit_curve *before; /* on the same links, below LOW, or NULL */
};

/* NCCL's latency before the first step (tuning.cc, ring LL). */
#define BASE_US 6.6

static bool is_ring(enum fit_coll coll)
{
    return coll == FIT_ALL_REDUCE || coll == FIT_ALL_GATHER ||
           coll == FIT_REDUCE_SCATTER;
}

static bool is_exchange(enum fit_coll coll)
{
    return coll == FIT_ALLTOALL || coll == FIT_GATHER || coll == FIT_SCATTER;
}

/* --- the links ------------------------------------------------------------ */

/* A node, or a rack that NVLink joins: GPUs with one kind of link. */
enum side { SIDE_NODE, SIDE_RACK, SIDE_NETWORK };

static double rack_nodes(const struct around *a, double gpus)
{
    double nodes = floor(a->machine->rack_gpus / gpus);

    return nodes > 1 ? nodes : 1;
}

static enum side side_of(const struct around *a, double nodes, double gpus)
{
    if (nodes <= 1)
        return SIDE_NODE;
    return nodes <= rack_nodes(a, gpus) ? SIDE_RACK : SIDE_NETWORK;
}

/* Racks count as nodes: trees join racks. */
static double depth_of(const struct around *a, double nodes, double gpus)
{
    return 1 + log2(fmax(ceil(nodes / rack_nodes(a, gpus)), 1));
}

/* --- one curve at its own node count -------------------------------------- */

/* Microseconds a byte at the curve's largest size. */
static double byte_us(const struct fit_curve *c, bool in_place)
{
    return fit_curve_us(c, c->bytes_max, in_place) / c->bytes_max;
}

/* What NCCL's own model says of BYTES on C's nodes, with C's bandwidth. */
static double tuned_us(const struct around *a, const struct fit_curve *c,
                       double bytes, bool in_place)
{
    double ranks = c->nodes * a->gpus;
    double bus_us = byte_us(c, in_place);
    double gbps = fit_coll_factor(a->coll, ranks) / (1e3 * bus_us);
    const struct cost_tuning tuning = {.coll = a->coll,
                                       .bytes = bytes,
                                       .nodes = c->nodes,
                                       .gpus = a->gpus,
                                       .intra_gbps = gbps,
                                       .inter_gbps = gbps};
    double us = cost_tuning_us(&tuning, COST_ALGO_AUTO);

    if (us >= 0)
        return us;
    return cost_tuning_latency_us(a->coll, c->nodes, a->gpus) + bytes * bus_us;
}

/* How fast that is forgotten: with the fourth root of the size. The square root
 * and the eighth are no better (bench/commfit_uses, sizes outside). */
#define FORGET 0.25

/* Below the smallest size measured the time falls as NCCL's model does: the
 * bytes and the protocol go, the latency stays. What the cluster was slower
 * there than the model says less and less about smaller sizes. */
static double size_us(const struct around *a, const struct fit_curve *c,
                      double bytes, bool in_place)
{
    if (bytes >= c->bytes_min)
        return fit_curve_us(c, bytes, in_place);
    double first = fit_curve_us(c, c->bytes_min, in_place);
    double slower = first / tuned_us(a, c, c->bytes_min, in_place);
    double weight = pow(bytes / c->bytes_min, FORGET);

    return fmin(tuned_us(a, c, bytes, in_place) * pow(slower, weight), first);
}

/* The least time of C: of its smallest size, which is latency alone, where
 * that was measured. */
static double least_us(const struct around *a, const struct fit_curve *c,
                       bool in_place)
{
    double first = fit_curve_us(c, c->bytes_min, in_place);

    return fmin(first, cost_tuning_latency_us(a->coll, c->nodes, a->gpus));
}

/* How fast the bytes of one GPU go with GPUS a node, over that of the curve's
 * own width. A ring leaves a node once, through as many adapters as the ring
 * has GPUs there: the rate grows with them (10 nodes of H100: 48.9, 98, 196,
 * 364 GB/s with 1, 2, 4, 8), up to that of the links inside. Inside a node a
 * rate above the links' own is the switch's sum (NVLS), which 8 GPUs of a node
 * have and fewer do not. */
static double width_rate(const struct around *a, const struct fit_curve *c,
                         const struct target *t)
{
    double ranks = c->nodes * a->gpus, link = a->machine->link_gbps;
    double own = fit_coll_factor(a->coll, ranks) /
                 (1e3 * byte_us(c, t->in_place));
    double rate = own;

    if (!is_ring(a->coll) && a->coll != FIT_BROADCAST && a->coll != FIT_REDUCE)
        return 1;
    if (c->nodes > 1)
        rate *= t->gpus / a->gpus;
    if (link > 0 && (c->nodes > 1 ? t->gpus > a->gpus : t->gpus < a->gpus))
        rate = fmin(rate, fmax(link, c->nodes > 1 ? own : 0));
    return rate / own;
}

/* The steps of a ring, or the messages of an exchange. */
static double steps_of(double nodes, double gpus)
{
    return fmax(nodes * gpus - 1, 1);
}

/* C with t->gpus in each of its nodes. The least time changes as NCCL's
 * latencies do; what is between it and the bytes' own time are steps. */
static double curve_at(const struct around *a, const struct fit_curve *c,
                       const struct target *t, double bytes)
{
    double us = size_us(a, c, bytes, t->in_place), n = c->nodes;

    if (t->gpus == a->gpus || n * t->gpus < 2)
        return us;
    double moved = fmin(bytes * byte_us(c, t->in_place), us);
    double least = fmin(least_us(a, c, t->in_place), us - moved);
    double steps = us - moved - least;
    double to = cost_tuning_latency_us(a->coll, n, t->gpus);
    double from = cost_tuning_latency_us(a->coll, n, a->gpus);
    double ranks_to = n * t->gpus, ranks_from = n * a->gpus;

    least *= to / from;
    if (is_ring(a->coll) || is_exchange(a->coll))
        steps *= n > 1 ? steps_of(n, t->gpus) / steps_of(n, a->gpus)
                       : to / from;
    moved *= fit_coll_factor(a->coll, ranks_to) /
             fit_coll_factor(a->coll, ranks_from) / width_rate(a, c, t);
    return least + steps + moved;
}

/* --- one curve carried to another node count ------------------------------ */

/* A ring takes P - 1 equal steps of S / P bytes a pass, and the step's time is
 * a function of its bytes: from P0 to P ranks the size shifts by P0 / P,
 * protocol switches with it, and the steps scale. */
static double ring_us(const struct around *a, const struct fit_curve *c,
                      const struct target *t)
{
    double from = c->nodes * t->gpus, to = t->nodes * t->gpus;

    if (from < 2)
        return curve_at(a, c, t, t->bytes);
    return curve_at(a, c, t, t->bytes * from / to) * (to - 1) / (from - 1);
}

/* Of US the part that the bytes take at the curve's best rate. */
static double moved_us(const struct around *a, const struct fit_curve *c,
                       const struct target *t)
{
    struct target largest = *t;

    largest.bytes = c->bytes_max;
    return t->bytes * curve_at(a, c, &largest, largest.bytes) / largest.bytes;
}

/* The same bytes on T's nodes: each rank's part grows as (P - 1) / P. */
static double moved_there_us(const struct around *a, const struct fit_curve *c,
                             const struct target *t)
{
    return moved_us(a, c, t) *
           fit_coll_factor(a->coll, t->nodes * t->gpus) /
           fit_coll_factor(a->coll, fmax(c->nodes * t->gpus, 2));
}

/* A tree's latency grows with its depth; the bytes of a pipelined tree take the
 * same time at any depth. A measured rule from one count to the next is the
 * lesser of the ring's growth and the depth's. Far away the bytes' part lies
 * between that growth and none: half way, on a logarithmic scale. */
static double damped_us(const struct around *a, const struct fit_curve *c,
                        const struct target *t, double us, double growth)
{
    double doublings = fabs(log2(t->nodes / c->nodes));
    double weight = fmin(0.5 + exp2(-fmax(doublings, 1)), 1);
    double moved = fmin(moved_us(a, c, t), us);

    double there = fmin(moved_there_us(a, c, t), us * growth);
    return (us - moved) * growth + fmax(moved * pow(growth, weight), there);
}

static double carry_all_reduce(const struct around *a,
                               const struct fit_curve *c,
                               const struct target *t)
{
    double us = curve_at(a, c, t, t->bytes);
    double tree = us * depth_of(a, t->nodes, t->gpus) /
                  depth_of(a, c->nodes, t->gpus);
    double ring = ring_us(a, c, t);

    if (t->nodes < c->nodes)
        return fmax(ring, tree);
    /* Between racks the switches of each rack reduce: trees alone. */
    if (rack_nodes(a, t->gpus) > 1)
        return damped_us(a, c, t, us, tree / us);
    return damped_us(a, c, t, us, fmin(ring, tree) / us);
}

/* A buffer that is all latency. */
#define LATENCY_BYTES 1024

/* A small collective's time: what a call takes anyway, which no node adds to,
 * and NCCL's hops, which they do. A cluster that is faster than NCCL's own
 * figures is faster by the same part everywhere. */
static double latency_there_us(const struct around *a,
                               const struct fit_curve *c,
                               const struct target *t, double here)
{
    double from = cost_tuning_latency_us(a->coll, c->nodes, t->gpus);
    double to = cost_tuning_latency_us(a->coll, t->nodes, t->gpus);

    return here > from ? here + to - from : here * to / from;
}

/* A ring's latency by its hops, inside nodes and between them; the rest of the
 * time by its steps, each of the same bytes as C's. */
static double hops_us(const struct around *a, const struct fit_curve *c,
                      const struct target *t)
{
    double from = c->nodes * t->gpus, to = t->nodes * t->gpus;

    if (from < 2)
        return curve_at(a, c, t, t->bytes);
    double step = curve_at(a, c, t, t->bytes * from / to);
    double small = curve_at(a, c, t, fmin(c->bytes_min, LATENCY_BYTES));
    double least = fmin(small, step);
    return latency_there_us(a, c, t, least) +
           (step - least) * (to - 1) / (from - 1);
}

/* All-gather and reduce-scatter have rings alone. PAT (NCCL 2.23 on, one GPU a
 * node) has a logarithm of steps, and a small time for each rank. */
static double carry_ring(const struct around *a, const struct fit_curve *c,
                         const struct target *t)
{
    double ring = hops_us(a, c, t);

    if (t->gpus > 1 || t->nodes < c->nodes)
        return ring;
    double us = curve_at(a, c, t, t->bytes),
           moved = fmin(moved_us(a, c, t), us);
    double growth = cost_tuning_latency_us(a->coll, t->nodes, t->gpus) /
                    cost_tuning_latency_us(a->coll, c->nodes, t->gpus);
    return fmin(ring, moved_there_us(a, c, t) + (us - moved) * growth);
}

/* A root is done long before the last rank is, and calls follow each other: a
 * small broadcast takes as long on any number of nodes. What a larger one takes
 * beyond that grows as a ring's, and at most as a tree's. */
static double carry_chain(const struct around *a, const struct fit_curve *c,
                          const struct target *t)
{
    struct target small = *t;

    small.bytes = fmin(c->bytes_min, t->bytes);
    double us = curve_at(a, c, t, t->bytes);
    double least = fmin(curve_at(a, c, t, small.bytes), us);
    double ring = ring_us(a, c, t) - ring_us(a, c, &small);
    double tree = (us - least) * depth_of(a, t->nodes, t->gpus) /
                  depth_of(a, c->nodes, t->gpus);
    if (t->nodes < c->nodes)
        return least + fmax(fmax(ring, tree), 0);
    return fmax(least + fmin(ring, tree), us);
}

/* Of N equal parts those that go elsewhere. */
static double share_leaving(double n)
{
    return n > 1 ? (n - 1) / n : 1;
}

/* Each rank sends P - 1 messages of S / P: their latencies add up. The bytes
 * that leave a node set the pace, (N - 1) / N of the buffer. */
static double carry_exchange(const struct around *a, const struct fit_curve *c,
                             const struct target *t)
{
    double from = c->nodes * t->gpus, to = t->nodes * t->gpus;
    double message = t->bytes * from / to;
    double us = curve_at(a, c, t, message);
    struct target part = *t;

    part.bytes = message;
    double moved = fmin(moved_us(a, c, &part), us);
    double rest = us - moved, base = fmin(BASE_US, rest);
    double parts = share_leaving(t->nodes) / share_leaving(c->nodes);
    if (from < 2)
        return us;
    return base + (rest - base) * (to - 1) / (from - 1) +
           moved * to / from * parts;
}

/* A larger job goes through more of the switches (B200: 43, 44, 26, 15, 15, 15
 * GB/s on 2 to 64 nodes): the last growth goes on, halved with each doubling,
 * so that it never repeats itself more than once. */
static double carry_neighbour(const struct around *a, const struct fit_curve *c,
                              const struct target *t)
{
    double us = curve_at(a, c, t, t->bytes), growth = 1;

    if (t->nodes < c->nodes || !a->before)
        return us;
    double doublings = log2((double)c->nodes / a->before->nodes);
    growth = pow(us / curve_at(a, a->before, t, t->bytes), 1 / doublings);
    growth = fmin(fmax(growth, 1), 2);
    return us * pow(growth, 1 - exp2(-log2(t->nodes / c->nodes)));
}

/* In a rack NVLink joins everything. The switches reduce: an all-reduce takes
 * as long on any number of nodes; of the others each rank's own part grows as
 * (P - 1) / P, and an exchange still sends its P - 1 messages. */
static double carry_in_rack(const struct around *a, const struct fit_curve *c,
                            const struct target *t)
{
    double us = curve_at(a, c, t, t->bytes);
    double from = c->nodes * t->gpus, to = t->nodes * t->gpus;

    if (a->coll == FIT_ALL_REDUCE || from < 2)
        return us;
    double moved = fmin(moved_us(a, c, t), us), rest = us - moved;
    double base = fmin(BASE_US, rest);
    if (is_exchange(a->coll))
        rest = base + (rest - base) * (to - 1) / (from - 1);
    return rest + moved * fit_coll_factor(a->coll, to) /
                      fit_coll_factor(a->coll, from);
}

/* Out of a rack each GPU has an adapter of 400 Gbit/s (data sheet of GB200
 * NVL72); what an exchange sends to other racks goes through it. Rings and
 * trees leave a rack through all of them at once. */
#define RACK_ADAPTER_GBPS 50.0

static double carry_out_of_rack(const struct around *a,
                                const struct fit_curve *c,
                                const struct target *t)
{
    struct target full = *t;
    double rack = rack_nodes(a, t->gpus);

    full.nodes = rack;
    double us = carry_in_rack(a, c, &full);
    double racks = t->nodes / rack;
    double outside = (1 - 1 / racks) * t->bytes / (1e3 * RACK_ADAPTER_GBPS);
    if (is_exchange(a->coll))
        return us + outside;
    if (a->coll == FIT_SENDRECV)
        return fmax(us, t->bytes / (1e3 * RACK_ADAPTER_GBPS));
    double moved = fmin(moved_us(a, c, t), us);
    return moved + (us - moved) * (1 + log2(ceil(racks)));
}

typedef double carry_rule(const struct around *a, const struct fit_curve *c,
                          const struct target *t);

static carry_rule *const rules[FIT_COLL_COUNT] = {
    [FIT_ALL_REDUCE] = carry_all_reduce, [FIT_ALL_GATHER] = carry_ring,
    [FIT_REDUCE_SCATTER] = carry_ring,   [FIT_BROADCAST] = carry_chain,
    [FIT_REDUCE] = carry_chain,          [FIT_ALLTOALL] = carry_exchange,
    [FIT_SENDRECV] = carry_neighbour,    [FIT_GATHER] = carry_exchange,
    [FIT_SCATTER] = carry_exchange,
};

static double carry_curve(const struct around *a, const struct fit_curve *c,
                          const struct target *t)
{
    enum side from = side_of(a, c->nodes, t->gpus);
    enum side to = side_of(a, t->nodes, t->gpus);

    if (c->nodes == t->nodes)
        return curve_at(a, c, t, t->bytes);
    if (to == SIDE_NETWORK && from != SIDE_NETWORK && a->machine->rack_gpus)
        return carry_out_of_rack(a, c, t);
    if (to == SIDE_RACK && from != SIDE_NETWORK)
        return carry_in_rack(a, c, t);
    double us = rules[a->coll](a, c, t);
    /* More ranks have no less to send. */
    return t->nodes > c->nodes ? fmax(us, moved_there_us(a, c, t)) : us;
}

/* --- between two counts --------------------------------------------------- */

/* 0 at the lower count, 1 at the upper one. */
static double target_position(const struct around *a, const struct target *t)
{
    return log2(t->nodes / a->low->nodes) /
           log2((double)a->high->nodes / a->low->nodes);
}

/* A larger job that is slower than rings and trees explain was disturbed, or
 * its network is another one there: the more, the less it says about a smaller
 * job. Two samples of a point differ by 1.35 at most (series_clean.c). */
#define AGREE 1.35

static double target_between(const struct around *a, const struct target *t)
{
    double low = carry_curve(a, a->low, t), high = carry_curve(a, a->high, t);
    double weight = 0.5;

    if (!is_ring(a->coll))
        return low * pow(high / low, target_position(a, t));
    double off = fmax(log(high / low), 0) / log(AGREE);
    weight *= exp(-off * off);
    return low * pow(high / low, weight);
}

/* --- finding the curves --------------------------------------------------- */

/* Of curves on the links that NODES use; curves on others count where there
 * are none. */
static struct around find_around(const struct fit *fit,
                                 const struct fit_family *family,
                                 uint32_t nodes, uint32_t gpus)
{
    struct around a = {.machine = &fit->machine,
                       .coll = family->coll,
                       .gpus = family->gpus_per_node};
    enum side side = side_of(&a, nodes, gpus);
    const struct fit_curve *other = NULL;

    for (uint32_t i = 0; i < family->curve_count; i++) {
        const struct fit_curve *c = &family->curves[i];

        if (side_of(&a, c->nodes, family->gpus_per_node) != side) {
            if (!other || side != SIDE_NODE)
                other = c;
            continue;
        }
        if (c->nodes <= nodes) {
            a.before = a.low;
            a.low = c;
        }
        if (c->nodes >= nodes && !a.high)
            a.high = c;
    }
    if (!a.low && !a.high)
        *(side == SIDE_NODE ? &a.high : &a.low) = other;
    return a;
}

static void flag_range(const struct fit_curve *c, double bytes, unsigned *flags)
{
    if (bytes < c->bytes_min)
        *flags |= COST_NCCL_BELOW;
    if (bytes > c->bytes_max)
        *flags |= COST_NCCL_ABOVE;
}

double cost_nccl_curves_us(const struct fit *fit,
                           const struct fit_family *family,
                           const struct cost_nccl_query *q, unsigned *flags)
{
    struct target t = {q->bytes, q->nodes, q->gpus_per_node, q->in_place};
    struct around a = find_around(fit, family, q->nodes, q->gpus_per_node);
    const struct fit_curve *near = a.low ? a.low : a.high;

    flag_range(near, q->bytes, flags);
    if (side_of(&a, near->nodes, t.gpus) != side_of(&a, t.nodes, t.gpus))
        *flags |= COST_NCCL_OTHER_LINKS;
    if (near->nodes == q->nodes)
        return curve_at(&a, near, &t, q->bytes);
    if (a.low && a.high) {
        *flags |= COST_NCCL_BETWEEN;
        return target_between(&a, &t);
    }
    *flags |= COST_NCCL_BEYOND;
    return carry_curve(&a, near, &t);
}
