/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/net/net.h"

#include <stdlib.h>

double net_gbps(const struct net_graph *g, uint32_t r)
{
    return r < g->links ? g->link[r].gbps
                        : g->adapter_gbps[(r - g->links) / 2];
}

static int link_compare(const void *a, const void *b)
{
    const struct net_link *x = a, *y = b;

    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return x->to < y->to ? -1 : x->to > y->to;
}

void net_sort(struct net_graph *g)
{
    uint32_t at = 0;

    if (g->links)
        qsort(g->link, g->links, sizeof *g->link, link_compare);
    for (uint32_t s = 0; s <= g->switches; s++) {
        while (at < g->links && g->link[at].from < s)
            at++;
        g->first[s] = at;
    }
}

uint32_t net_distances(const struct net_graph *g, uint32_t to, uint16_t *far,
                       uint32_t *queue)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < g->switches; i++)
        far[i] = NET_FAR;
    far[to] = 0;
    queue[count++] = to;
    for (uint32_t at = 0; at < count; at++) {
        uint32_t s = queue[at];
        for (uint32_t i = g->first[s]; i < g->first[s + 1]; i++) {
            const struct net_link *l = &g->link[i];
            if (!(l->gbps > 0) || far[l->to] != NET_FAR)
                continue;
            far[l->to] = (uint16_t)(far[s] + 1);
            queue[count++] = l->to;
        }
    }
    return count;
}

/* The switch that is given for what is at AT and goes to TO. */
static uint32_t given_via(const struct net_graph *g, uint32_t at, uint32_t to)
{
    for (uint32_t i = 0; i < g->given_count; i++)
        if (g->given[i].at == at && g->given[i].to == to)
            return g->given[i].via;
    return NET_NONE;
}

/* Can what is at S, as far away as FAR says, take LINK? */
static bool is_next(const uint16_t *far, const struct net_link *link,
                    uint32_t via)
{
    if (!(link->gbps > 0))
        return false;
    return via == NET_NONE ? far[link->to] + 1 == far[link->from]
                           : link->to == via;
}

/* The capacity of all links that lead nearer from S. */
static double next_gbps(const struct net_graph *g, const uint16_t *far,
                        uint32_t s, uint32_t via)
{
    double sum = 0;

    for (uint32_t i = g->first[s]; i < g->first[s + 1]; i++)
        if (is_next(far, &g->link[i], via))
            sum += g->link[i].gbps;
    return sum;
}

/* Hands on what is at S to the links that lead nearer, by their capacity. */
static void spread_flow(const struct net_graph *g, const uint16_t *far,
                        uint32_t to, uint32_t s, double *amount, double *loads)
{
    uint32_t via = given_via(g, s, to);
    double sum = next_gbps(g, far, s, via);

    for (uint32_t i = g->first[s]; i < g->first[s + 1]; i++)
        if (is_next(far, &g->link[i], via)) {
            double part = amount[s] * g->link[i].gbps / sum;
            loads[i] += part;
            amount[g->link[i].to] += part;
        }
    amount[s] = 0;
}

static uint32_t mix_hash(uint32_t h)
{
    h = (h ^ (h >> 16)) * UINT32_C(0x7feb352d);
    h = (h ^ (h >> 15)) * UINT32_C(0x846ca68b);
    return h ^ (h >> 16);
}

/* One of the links that lead nearer, by HASH and the capacities. */
static uint32_t choose_edge(const struct net_graph *g, const uint16_t *far,
                            uint32_t to, uint32_t s, uint32_t hash)
{
    uint32_t via = given_via(g, s, to), last = NET_NONE;
    double at = next_gbps(g, far, s, via) * (hash / 4294967296.0);

    for (uint32_t i = g->first[s]; i < g->first[s + 1]; i++) {
        if (!is_next(far, &g->link[i], via))
            continue;
        last = i;
        if (at < g->link[i].gbps)
            break;
        at -= g->link[i].gbps;
    }
    return last;
}

/* The whole of flow F takes one way. */
static void walk_route(const struct net_graph *g, uint32_t to,
                       const uint16_t *far, const struct net_flow *f,
                       double *loads)
{
    uint32_t hash = mix_hash(f->from * UINT32_C(2654435761) + f->to);
    uint32_t steps = 0;

    for (uint32_t s = g->adapter_at[f->from]; s != to && steps < g->switches;
         steps++) {
        uint32_t i = choose_edge(g, far, to, s, mix_hash(hash + s));
        if (i == NET_NONE)
            return;
        loads[i] += f->weight;
        s = g->link[i].to;
    }
}

void net_route(const struct net_graph *g, const struct net_ways *ways,
               const struct net_flow *flows, uint32_t count, double *amount,
               double *loads)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct net_flow *f = &flows[i];
        loads[g->links + 2 * f->from] += f->weight;
        loads[g->links + 2 * f->to + 1] += f->weight;
        if (g->hash)
            walk_route(g, ways->to, ways->far, f, loads);
        else
            amount[g->adapter_at[f->from]] += f->weight;
    }
    for (uint32_t i = ways->reached; !g->hash && i-- > 1;)
        if (amount[ways->queue[i]] > 0)
            spread_flow(g, ways->far, ways->to, ways->queue[i], amount, loads);
    amount[ways->to] = 0;
}
