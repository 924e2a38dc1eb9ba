/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/net/net_build.h"

#include <stdio.h>
#include <string.h>

/* Links are counted first (link NULL), then written. */
struct builder {
    struct net_link *link;
    uint32_t links;
};

static void nodes_join(struct builder *b, uint32_t one, uint32_t other,
                       double gbps)
{
    if (b->link) {
        b->link[b->links] = (struct net_link){one, other, gbps};
        b->link[b->links + 1] = (struct net_link){other, one, gbps};
    }
    b->links += 2;
}

/* --- fat trees: edges, then aggregation, then cores ----------------------- */

static uint64_t fat_nodes(const struct net_plan *p)
{
    return (uint64_t)p->k * p->k * p->k / 4 / p->adapters;
}

static uint64_t fat_links(const struct net_plan *p)
{
    return (uint64_t)p->k * p->k * p->k;
}

static uint32_t fat_switches(const struct net_plan *p)
{
    return p->k * p->k + p->k * p->k / 4;
}

static void fat_join(const struct net_plan *p, struct builder *b)
{
    uint32_t half = p->k / 2, edges = p->k * half;
    double gbps = p->link_gbps / p->oversubscription;

    for (uint32_t pod = 0; pod < p->k; pod++)
        for (uint32_t a = 0; a < half; a++) {
            uint32_t up = edges + pod * half + a;
            for (uint32_t e = 0; e < half; e++)
                nodes_join(b, pod * half + e, up, gbps);
            for (uint32_t c = 0; c < half; c++)
                nodes_join(b, up, 2 * edges + a * half + c, gbps);
        }
}

static uint32_t fat_at(const struct net_plan *p, uint32_t node, uint32_t rail)
{
    return (node * p->adapters + rail) / (p->k / 2);
}

static void fat_name(const struct net_plan *p, uint32_t s, char *name,
                     uint32_t size)
{
    uint32_t half = p->k / 2, edges = p->k * half;

    if (s >= 2 * edges)
        snprintf(name, size, "core%u", s - 2 * edges);
    else
        snprintf(name, size, "%s%u.%u", s < edges ? "edge" : "agg",
                 s % edges / half, s % half);
}

/* --- leaves and spines ---------------------------------------------------- */

static uint32_t count_rails(const struct net_plan *p)
{
    return p->pattern == NET_RAIL ? p->adapters : 1;
}

static uint32_t count_leaves(const struct net_plan *p)
{
    return (p->nodes + p->nodes_per_leaf - 1) / p->nodes_per_leaf *
           count_rails(p);
}

static uint64_t leaf_nodes(const struct net_plan *p)
{
    return p->nodes;
}

static uint64_t leaf_links(const struct net_plan *p)
{
    return 2 * (uint64_t)count_leaves(p) * p->spines;
}

static uint32_t leaf_switches(const struct net_plan *p)
{
    return count_leaves(p) + p->spines;
}

/* A leaf's up links carry what its adapters do, or less. */
static void leaf_join(const struct net_plan *p, struct builder *b)
{
    double down =
        p->adapter_gbps * p->nodes_per_leaf * p->adapters / count_rails(p);

    for (uint32_t leaf = 0; leaf < count_leaves(p); leaf++)
        for (uint32_t spine = 0; spine < p->spines; spine++)
            nodes_join(b, leaf, count_leaves(p) + spine,
                       down / p->oversubscription / p->spines);
}

static uint32_t leaf_at(const struct net_plan *p, uint32_t node, uint32_t rail)
{
    return node / p->nodes_per_leaf * count_rails(p) + rail % count_rails(p);
}

static void leaf_name(const struct net_plan *p, uint32_t s, char *name,
                      uint32_t size)
{
    if (s >= count_leaves(p))
        snprintf(name, size, "spine%u", s - count_leaves(p));
    else if (p->pattern == NET_RAIL)
        snprintf(name, size, "leaf%u.%u", s / count_rails(p),
                 s % count_rails(p));
    else
        snprintf(name, size, "leaf%u", s);
}

/* --- dragonflies ---------------------------------------------------------- */

static uint64_t dragonfly_nodes(const struct net_plan *p)
{
    return (uint64_t)p->groups * p->routers * p->per_router / p->adapters;
}

static uint64_t dragonfly_links(const struct net_plan *p)
{
    return (uint64_t)p->groups * p->routers * p->routers +
           (uint64_t)p->groups * p->groups;
}

static uint32_t dragonfly_switches(const struct net_plan *p)
{
    return p->groups * p->routers;
}

/* The bundles of a group are on its routers in turn. */
static void dragonfly_join(const struct net_plan *p, struct builder *b)
{
    for (uint32_t g = 0; g < p->groups; g++) {
        for (uint32_t i = 0; i < p->routers; i++)
            for (uint32_t k = i + 1; k < p->routers; k++)
                nodes_join(b, g * p->routers + i, g * p->routers + k,
                           p->link_gbps);
        for (uint32_t h = g + 1; h < p->groups; h++)
            nodes_join(b, g * p->routers + (h - 1) % p->routers,
                       h * p->routers + g % p->routers, p->global_gbps);
    }
}

static uint32_t dragonfly_at(const struct net_plan *p, uint32_t node,
                             uint32_t rail)
{
    return (node * p->adapters + rail) / p->per_router;
}

static void dragonfly_name(const struct net_plan *p, uint32_t s, char *name,
                           uint32_t size)
{
    snprintf(name, size, "router%u.%u", s / p->routers, s % p->routers);
}

/* --- tori ----------------------------------------------------------------- */

static uint64_t torus_nodes(const struct net_plan *p)
{
    uint64_t count = 1;

    for (uint32_t i = 0; i < p->dimensions; i++)
        count *= p->size[i];
    return count;
}

static uint64_t torus_links(const struct net_plan *p)
{
    return 2 * torus_nodes(p) * p->dimensions;
}

static uint32_t torus_switches(const struct net_plan *p)
{
    return (uint32_t)torus_nodes(p);
}

/* Each with the next one in each dimension; of two there is one link. */
static void torus_join(const struct net_plan *p, struct builder *b)
{
    uint32_t count = torus_switches(p), apart = 1;

    for (uint32_t d = 0; d < p->dimensions; apart *= p->size[d++])
        for (uint32_t i = 0; i < count; i++) {
            uint32_t at = i / apart % p->size[d];
            uint32_t next = at + 1 < p->size[d] ? at + 1 : 0;
            if (next != at && (next || p->size[d] > 2))
                nodes_join(b, i, i - at * apart + next * apart, p->link_gbps);
        }
}

static uint32_t torus_at(const struct net_plan *p, uint32_t node, uint32_t rail)
{
    (void)p;
    (void)rail;
    return node;
}

static void torus_name(const struct net_plan *p, uint32_t s, char *name,
                       uint32_t size)
{
    (void)p;
    snprintf(name, size, "router%u", s);
}

/* --- all of them ---------------------------------------------------------- */

static const struct net_pattern_ops {
    const char *name;
    uint64_t (*nodes)(const struct net_plan *p);
    uint64_t (*links)(const struct net_plan *p); /* at least as many */
    uint32_t (*switches)(const struct net_plan *p);
    void (*join)(const struct net_plan *p, struct builder *b);
    uint32_t (*at)(const struct net_plan *p, uint32_t node, uint32_t rail);
    void (*tell)(const struct net_plan *p, uint32_t number, char *name,
                 uint32_t size);
} patterns[NET_PATTERNS] = {
    [NET_FAT_TREE] = {"fat-tree", fat_nodes, fat_links, fat_switches, fat_join,
                      fat_at, fat_name},
    [NET_RAIL] = {"rail-optimized", leaf_nodes, leaf_links, leaf_switches,
                  leaf_join, leaf_at, leaf_name},
    [NET_LEAF] = {"leaf-spine", leaf_nodes, leaf_links, leaf_switches,
                  leaf_join, leaf_at, leaf_name},
    [NET_DRAGONFLY] = {"dragonfly", dragonfly_nodes, dragonfly_links,
                       dragonfly_switches, dragonfly_join, dragonfly_at,
                       dragonfly_name},
    [NET_TORUS] = {"torus", torus_nodes, torus_links, torus_switches,
                   torus_join, torus_at, torus_name},
};

uint64_t net_plan_nodes(const struct net_plan *p)
{
    return patterns[p->pattern].nodes(p);
}

uint64_t net_plan_links(const struct net_plan *p)
{
    return patterns[p->pattern].links(p);
}

void net_plan_size(const struct net_plan *p, struct net_graph *g)
{
    struct builder b = {NULL, 0};

    patterns[p->pattern].join(p, &b);
    g->links = b.links;
    g->switches = patterns[p->pattern].switches(p);
    g->adapters = p->nodes * p->adapters;
}

void net_plan_fill(const struct net_plan *p, struct net_graph *g)
{
    struct builder b = {g->link, 0};

    patterns[p->pattern].join(p, &b);
    for (uint32_t i = 0; i < g->adapters; i++) {
        g->adapter_gbps[i] = p->adapter_gbps;
        g->adapter_at[i] =
            patterns[p->pattern].at(p, i / p->adapters, i % p->adapters);
    }
}

void net_plan_name(const struct net_plan *p, uint32_t number, char *name,
                   uint32_t size)
{
    patterns[p->pattern].tell(p, number, name, size);
}

enum net_pattern net_pattern_find(const char *name)
{
    int i = 0;

    while (i < NET_PATTERNS && strcmp(patterns[i].name, name))
        i++;
    return (enum net_pattern)i;
}

const char *net_pattern_name(enum net_pattern pattern)
{
    return patterns[pattern].name;
}
