/* SPDX-License-Identifier: Apache-2.0
 * Networks by pattern. */
#ifndef MEMSIM_RUNTIME_NET_NET_BUILD_H
#define MEMSIM_RUNTIME_NET_NET_BUILD_H

#include "runtime/net/net.h"

enum net_pattern {
    NET_FAT_TREE,  /* k pods of k/2 edge and k/2 aggregation switches, and
                      k*k/4 cores */
    NET_RAIL,      /* adapter J of a node is on leaf J of its group of nodes */
    NET_LEAF,      /* all adapters of a node are on one leaf */
    NET_DRAGONFLY, /* groups of routers, each joined with each; one bundle
                      between any two groups */
    NET_TORUS,     /* a router for each node, joined with its neighbours */
    NET_PATTERNS,
};

#define NET_DIMENSIONS 5

struct net_plan {
    enum net_pattern pattern;
    uint32_t nodes, adapters;    /* adapters: of a node */
    double adapter_gbps, link_gbps;
    double oversubscription;     /* up links carry so much less; at least 1 */
    uint32_t k;                  /* NET_FAT_TREE: even */
    uint32_t nodes_per_leaf, spines; /* NET_RAIL, NET_LEAF */
    uint32_t groups, routers;    /* NET_DRAGONFLY: of a group */
    uint32_t per_router;         /* adapters */
    double global_gbps;          /* between two groups */
    uint32_t size[NET_DIMENSIONS], dimensions; /* NET_TORUS */
};

/* How many nodes there is room for. */
uint64_t net_plan_nodes(const struct net_plan *p);

/* At least as many as there are links; to be asked before net_plan_size, which
 * counts them one by one. */
uint64_t net_plan_links(const struct net_plan *p);

/* Sets the numbers of GRAPH: of switches and links (those that fail included),
 * of adapters. */
void net_plan_size(const struct net_plan *p, struct net_graph *graph);

/* Fills GRAPH, whose arrays have room for these numbers; its links are to be
 * sorted then. */
void net_plan_fill(const struct net_plan *p, struct net_graph *graph);

/* The name of SWITCH, as files give it: "leaf3.0", "spine1". */
void net_plan_name(const struct net_plan *p, uint32_t number, char *name,
                   uint32_t size);

/* The pattern called NAME; NET_PATTERNS: none is. */
enum net_pattern net_pattern_find(const char *name);
const char *net_pattern_name(enum net_pattern pattern);

#endif
