/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/net/net_pattern.h"

/* Where the ranks of the node begin that comes after those at I. */
static uint32_t node_end(const struct net_group *g, uint32_t i)
{
    uint32_t node = g->ranks[i].node;

    while (i < g->count && g->ranks[i].node == node)
        i++;
    return i;
}

static uint32_t node_count(const struct net_group *g)
{
    uint32_t nodes = 0;

    for (uint32_t i = 0; i < g->count; i = node_end(g, i))
        nodes++;
    return nodes;
}

/* The fewest ranks of a node: so many rings or trees go through all nodes. */
static uint32_t lanes_of(const struct net_group *g)
{
    uint32_t least = g->count;

    for (uint32_t i = 0, end; i < g->count; i = end) {
        end = node_end(g, i);
        if (end - i < least)
            least = end - i;
    }
    return least;
}

uint64_t net_flows_most(const struct net_group *g)
{
    uint64_t count = g->count;

    return g->algo == NET_ALL ? count * count : 4 * count;
}

uint32_t net_steps(const struct net_group *g, uint32_t passes)
{
    uint32_t nodes = node_count(g), steps = 0;

    if (g->algo == NET_ALL)
        return 1;
    if (g->algo == NET_RING)
        return passes * (nodes - 1);
    for (uint32_t reach = 1; reach < nodes; reach *= 2)
        steps++;
    return 2 * steps;
}

struct nodes {
    const struct net_group *group;
    uint32_t count;
    uint32_t each; /* ranks of each node; 0: they differ */
};

static struct nodes nodes_of(const struct net_group *g)
{
    struct nodes n = {g, node_count(g), lanes_of(g)};

    if (n.each * n.count != g->count)
        n.each = 0;
    return n;
}

/* The first rank of node NUMBER of the group. */
static uint32_t node_first(const struct nodes *n, uint32_t number)
{
    uint32_t i = 0;

    if (n->each)
        return number * n->each;
    while (number--)
        i = node_end(n->group, i);
    return i;
}

static uint32_t flow_add(struct net_flow *flows, uint32_t count, uint32_t from,
                         uint32_t to, double weight)
{
    flows[count] = (struct net_flow){from, to, weight};
    return count + 1;
}

static uint32_t ring_flows(const struct net_group *g, struct net_flow *flows)
{
    uint32_t lanes = lanes_of(g), count = 0;

    for (uint32_t i = 0; i < g->count; i = node_end(g, i)) {
        uint32_t next = node_end(g, i);
        for (uint32_t lane = 0; lane < lanes; lane++)
            count = flow_add(
                flows, count, g->ranks[i + lane].adapter,
                g->ranks[(next < g->count ? next : 0) + lane].adapter, 1);
    }
    return count;
}

/* The parent of node NUMBER of COUNT in NCCL's binary tree: of odd numbers the
 * neighbour whose lowest bit is the next higher one; node 0 is the root. */
static uint32_t tree_parent(uint32_t number, uint32_t count)
{
    uint32_t bit = number & (~number + 1);
    uint32_t parent = (number ^ bit) | (bit << 1);

    return parent < count ? parent : number ^ bit;
}

/* Up and down one tree, whose node I is the group's (I + SHIFT) % nodes. */
static uint32_t tree_flows(const struct nodes *n, uint32_t shift,
                           struct net_flow *flows, uint32_t count)
{
    uint32_t lanes = lanes_of(n->group);

    for (uint32_t i = 1; i < n->count; i++) {
        uint32_t own = node_first(n, (i + shift) % n->count);
        uint32_t parent =
            node_first(n, (tree_parent(i, n->count) + shift) % n->count);
        for (uint32_t lane = 0; lane < lanes; lane++) {
            uint32_t a = n->group->ranks[own + lane].adapter;
            uint32_t b = n->group->ranks[parent + lane].adapter;
            count = flow_add(flows, count, a, b, 1);
            count = flow_add(flows, count, b, a, 1);
        }
    }
    return count;
}

static uint32_t all_flows(const struct net_group *g, struct net_flow *flows)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < g->count; i++)
        for (uint32_t k = 0; k < g->count; k++)
            if (g->ranks[i].node != g->ranks[k].node)
                count = flow_add(flows, count, g->ranks[i].adapter,
                                 g->ranks[k].adapter, 1);
    return count;
}

uint32_t net_flows(const struct net_group *g, struct net_flow *flows,
                   double *part)
{
    const struct nodes n = nodes_of(g);
    uint32_t lanes = lanes_of(g);

    switch (g->algo) {
    case NET_RING:
        *part = 1.0 / lanes;
        return ring_flows(g, flows);
    case NET_TREE: /* the bytes on the bus are twice those of the collective */
        *part = 0.25 / lanes;
        return tree_flows(&n, 1, flows, tree_flows(&n, 0, flows, 0));
    default:
        *part = 1.0 / g->count;
        return all_flows(g, flows);
    }
}
