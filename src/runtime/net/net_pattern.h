/* SPDX-License-Identifier: Apache-2.0
 * The flows between nodes of one collective, by its algorithm. Its steps are
 * alike (a ring) or follow each other without a break (a tree), so that all its
 * flows last as long as it does: a link carries their sum. */
#ifndef MEMSIM_RUNTIME_NET_NET_PATTERN_H
#define MEMSIM_RUNTIME_NET_NET_PATTERN_H

#include "runtime/net/net.h"

enum net_algo {
    NET_RING, /* each node sends to the next one, through the adapters of all
                 its ranks */
    NET_TREE, /* NCCL's two binary trees, each with half of the bytes, both
                 ways */
    NET_ALL,  /* each rank sends to each rank of other nodes */
};

/* Where a rank is. */
struct net_place {
    uint32_t node, adapter; /* adapter: of the whole network */
};

/* A collective's ranks, sorted by node. */
struct net_group {
    const struct net_place *ranks;
    uint32_t count;
    enum net_algo algo;
};

/* How many flows GROUP has at most, and how many steps between nodes follow
 * each other in an operation of FACTOR passes (of a ring: 2 for all-reduce). */
uint64_t net_flows_most(const struct net_group *group);
uint32_t net_steps(const struct net_group *group, uint32_t passes);

/* Writes GROUP's flows. Returns how many; *PART is the part of the bytes on the
 * bus (of the bytes of a rank, for NET_ALL) that a flow of weight 1 has. */
uint32_t net_flows(const struct net_group *group, struct net_flow *flows,
                   double *part);

#endif
