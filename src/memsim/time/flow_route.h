/* SPDX-License-Identifier: Apache-2.0
 * Routes the flows of patterns through a network, and makes the rows of what
 * they share. */
#ifndef MEMSIM_MEMSIM_TIME_FLOW_ROUTE_H
#define MEMSIM_MEMSIM_TIME_FLOW_ROUTE_H

#include "playback/world.h"

struct flow_router;

/* GRAPH, whose nodes have so many ADAPTERS each, is borrowed. */
struct flow_router *flow_router_create(const struct net_graph *graph,
                                       uint32_t adapters);

/* The flows of a pattern: the first OWN of them are of one group. */
struct flow_set {
    struct net_flow *all;
    size_t count, capacity, own;
};

/* SET, which is sorted anew, is pattern NUMBER. Returns the most links between
 * switches that a flow of its group takes, and sets *ALONE_GBPS to what such a
 * flow gets where no other group is. */
uint32_t flow_router_add(struct flow_router *r, uint32_t number,
                         const struct flow_set *set, double *alone_gbps);

/* Sets NETWORK's rows, of PATTERNS patterns, and ends R. */
void flow_router_end(struct flow_router *r, uint32_t patterns,
                     struct simulation_network *network);
void flow_network_fini(struct simulation_network *network);

#endif
