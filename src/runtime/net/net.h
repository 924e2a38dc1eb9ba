/* SPDX-License-Identifier: Apache-2.0
 * A network of switches, and what flows that are under way at the same time get
 * of it.
 *
 *   node 0          node 1
 *   adapter 0 1     2 3            adapters: A of a node, each on one switch
 *           | |     | |
 *          leaf0   leaf1           links join switches, one entry each way
 *              \   /
 *             spine0
 *
 * A collective is one variable of a linear program: all its flows have the same
 * rate, and each link carries so many of them (net_row). Rates are max-min
 * fair: they rise together until a link is full; its flows stay there, the
 * others go on (progressive filling). */
#ifndef MEMSIM_RUNTIME_NET_NET_H
#define MEMSIM_RUNTIME_NET_NET_H

#include <stdbool.h>
#include <stdint.h>

#define NET_NONE UINT32_MAX
#define NET_FAR  UINT16_MAX /* no way */

/* From a switch to another one. */
struct net_link {
    uint32_t from, to;
    double gbps; /* 1e9 bytes a second; 0: it has failed */
};

/* At switch AT, what goes to switch TO leaves for VIA. */
struct net_given {
    uint32_t at, to, via;
};

struct net_graph {
    uint32_t switches, adapters, links, given_count;
    uint32_t *adapter_at;    /* switch of each adapter */
    double *adapter_gbps;    /* each way */
    struct net_link *link;   /* by from; there and back */
    uint32_t *first;         /* by switch: its first link; and the end */
    struct net_given *given; /* routes; all others are shortest ways */
    uint32_t hop_ns;         /* latency of a link between switches */
    bool hash; /* a flow takes one of the shortest ways, else all evenly */
};

/* --- routes ---------------------------------------------------------------
 *
 * Resources are numbered: the links, then for each adapter out and in. */

static inline uint32_t net_resources(const struct net_graph *g)
{
    return g->links + 2 * g->adapters;
}

/* What resource R carries. */
double net_gbps(const struct net_graph *g, uint32_t r);

/* Sorts the links of G by their switches, and sets g->first. */
void net_sort(struct net_graph *g);

/* Sets FAR of each switch to its links from switch TO, or NET_FAR, and QUEUE to
 * the switches in that order. Both have room for all. Returns how many can be
 * reached. */
uint32_t net_distances(const struct net_graph *g, uint32_t to, uint16_t *far,
                       uint32_t *queue);

/* The shortest ways to switch TO. */
struct net_ways {
    uint32_t to, reached;  /* reached: so many switches are in queue */
    const uint16_t *far;   /* net_distances' */
    const uint32_t *queue; /* likewise */
};

/* A flow between two adapters. WEIGHT: so many of one flow's bytes. */
struct net_flow {
    uint32_t from, to; /* adapters */
    double weight;
};

/* Adds COUNT flows to LOADS, by resource, all to adapters of the switch that
 * WAYS lead to. AMOUNT has room for all switches, and is zero before and after.
 * Every flow has a way. */
void net_route(const struct net_graph *g, const struct net_ways *ways,
               const struct net_flow *flows, uint32_t count, double *amount,
               double *loads);

/* --- shares --------------------------------------------------------------- */

/* What a link carries of a pattern: WEIGHT flows of it. */
struct net_load {
    uint32_t pattern;
    double weight;
};

/* A link that patterns share, or several with the same loads. */
struct net_row {
    uint32_t first, count; /* of loads */
    double gbps;
    bool edge; /* an adapter's */
};

struct net_shares {
    const struct net_row *rows;
    const struct net_load *loads;
    uint32_t row_count, pattern_count;
};

/* A collective that is under way. */
struct net_user {
    uint32_t pattern;
    double most_gbps; /* of one of its flows, where nobody else is */
    double gbps;      /* what it gets */
};

/* Memory for net_share: two of each for each row, and for each pattern. */
struct net_scratch {
    double *left, *sum; /* by row */
    double *active;     /* by pattern */
};

/* Sets the rates of COUNT USERS. EDGES_ALONE: only adapters are limits. */
void net_share(const struct net_shares *s, bool edges_alone,
               struct net_user *users, uint32_t count,
               const struct net_scratch *scratch);

#endif
