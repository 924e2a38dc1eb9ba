/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/time/flow_route.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/hash.h"
#include "common/base/map.h"
#include "common/base/xmalloc.h"

/* Weights are kept to so much: sums in another order are equal then. */
#define WEIGHT_UNIT 0x1p-20

/* The ways to a switch. */
struct ways {
    uint16_t *far; /* NULL: not known yet */
    uint32_t *queue;
    struct net_ways net;
};

/* WEIGHT flows of a pattern on a resource. */
struct entry {
    uint32_t resource, pattern;
    double weight;
};

struct flow_router {
    const struct net_graph *graph;
    uint32_t adapters; /* of a node */
    struct ways *ways; /* by switch */
    double *amount;    /* by switch */
    double *loads;     /* by resource */
    struct entry *entries;
    size_t entry_count, entry_capacity;
};

struct flow_router *flow_router_create(const struct net_graph *graph,
                                       uint32_t adapters)
{
    struct flow_router *r = xcalloc(1, sizeof *r);

    r->graph = graph;
    r->adapters = adapters;
    r->ways = xcalloc((size_t)graph->switches + 1, sizeof *r->ways);
    r->amount = xcalloc((size_t)graph->switches + 1, sizeof *r->amount);
    r->loads = xcalloc((size_t)net_resources(graph) + 1, sizeof *r->loads);
    return r;
}

static const struct ways *ways_to(struct flow_router *r, uint32_t to)
{
    struct ways *w = &r->ways[to];
    size_t room = r->graph->switches;

    if (w->far)
        return w;
    w->far = xcalloc(room, sizeof *w->far);
    w->queue = xcalloc(room, sizeof *w->queue);
    w->net = (struct net_ways){
        .to = to,
        .reached = net_distances(r->graph, to, w->far, w->queue),
        .far = w->far,
        .queue = w->queue,
    };
    return w;
}

/* --- routes --------------------------------------------------------------- */

static int flow_compare(const void *a, const void *b)
{
    const struct net_flow *x = a, *y = b;

    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    return x->from < y->from ? -1 : x->from > y->from;
}

/* Rails may be apart: then a flow leaves on the rail that it arrives on, to
 * which the sender's GPU has NVLink (NCCL's PXN). */
static void flow_join(struct flow_router *r, struct net_flow *f)
{
    const struct net_graph *g = r->graph;
    const struct ways *w = ways_to(r, g->adapter_at[f->to]);

    if (w->far[g->adapter_at[f->from]] == NET_FAR)
        f->from = f->from / r->adapters * r->adapters + f->to % r->adapters;
}

/* Routes FLOWS, sorted; returns the most links between switches. */
static uint32_t route_flows(struct flow_router *r, struct net_flow *flows,
                            size_t count)
{
    const struct net_graph *g = r->graph;
    uint32_t most = 0;

    for (size_t i = 0; i < count; i++)
        flow_join(r, &flows[i]);
    qsort(flows, count, sizeof *flows, flow_compare);
    for (size_t i = 0, end; i < count; i = end) {
        uint32_t to = g->adapter_at[flows[i].to];
        const struct ways *w = ways_to(r, to);
        for (end = i; end < count && g->adapter_at[flows[end].to] == to; end++)
            if (w->far[g->adapter_at[flows[end].from]] > most)
                most = w->far[g->adapter_at[flows[end].from]];
        net_route(g, &w->net, flows + i, (uint32_t)(end - i), r->amount,
                  r->loads);
    }
    return most;
}

/* What a flow gets of the loads so far. */
static double alone_gbps(const struct flow_router *r)
{
    double least = INFINITY;

    for (uint32_t i = 0; i < net_resources(r->graph); i++)
        if (r->loads[i] > 0)
            least = fmin(least, net_gbps(r->graph, i) / r->loads[i]);
    return least;
}

/* Moves the loads to the entries. */
static void entries_add(struct flow_router *r, uint32_t pattern)
{
    for (uint32_t i = 0; i < net_resources(r->graph); i++) {
        double weight = round(r->loads[i] / WEIGHT_UNIT) * WEIGHT_UNIT;
        r->loads[i] = 0;
        if (!(weight > 0))
            continue;
        xgrow(&r->entries, r->entry_count, &r->entry_capacity,
              sizeof *r->entries);
        r->entries[r->entry_count++] = (struct entry){i, pattern, weight};
    }
}

uint32_t flow_router_add(struct flow_router *r, uint32_t number,
                         const struct flow_set *set, double *alone)
{
    uint32_t hops = route_flows(r, set->all, set->own);

    *alone = alone_gbps(r);
    route_flows(r, set->all + set->own, set->count - set->own);
    entries_add(r, number);
    return hops;
}

/* --- rows ----------------------------------------------------------------- */

static int entry_compare(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    if (x->resource != y->resource)
        return x->resource < y->resource ? -1 : 1;
    return x->pattern < y->pattern ? -1 : x->pattern > y->pattern;
}

struct rows {
    struct net_row *all;
    struct net_load *loads;
    size_t count, capacity, load_count, load_capacity;
    struct map known; /* rows by what they are */
};

/* COUNT ENTRIES are those of one resource. */
static void row_add(struct rows *rows, const struct net_graph *g,
                    const struct entry *entries, size_t count)
{
    uint32_t resource = entries[0].resource;
    struct net_row row = {.first = (uint32_t)rows->load_count,
                          .count = (uint32_t)count,
                          .gbps = net_gbps(g, resource),
                          .edge = resource >= g->links};
    uint64_t key = hash_bytes(HASH_START + row.edge, &row.gbps,
                              sizeof row.gbps);

    for (size_t i = 0; i < count; i++) {
        key = hash_bytes(key, &entries[i].pattern, sizeof entries[i].pattern);
        key = hash_bytes(key, &entries[i].weight, sizeof entries[i].weight);
    }
    if (map_get(&rows->known, key))
        return;
    map_put(&rows->known, key, rows);
    for (size_t i = 0; i < count; i++) {
        xgrow(&rows->loads, rows->load_count, &rows->load_capacity,
              sizeof *rows->loads);
        rows->loads[rows->load_count++] =
            (struct net_load){entries[i].pattern, entries[i].weight};
    }
    xgrow(&rows->all, rows->count, &rows->capacity, sizeof *rows->all);
    rows->all[rows->count++] = row;
}

static void network_set(struct simulation_network *network,
                        const struct rows *rows, uint32_t patterns)
{
    *network = (struct simulation_network){
        .shares = {.rows = rows->all,
                   .loads = rows->loads,
                   .row_count = (uint32_t)rows->count,
                   .pattern_count = patterns},
        .scratch = {.left = xcalloc(rows->count + 1, sizeof(double)),
                    .sum = xcalloc(rows->count + 1, sizeof(double)),
                    .active = xcalloc((size_t)patterns + 1, sizeof(double))},
    };
}

void flow_router_end(struct flow_router *r, uint32_t patterns,
                     struct simulation_network *network)
{
    struct rows rows = {NULL};

    if (r->entry_count)
        qsort(r->entries, r->entry_count, sizeof *r->entries, entry_compare);
    for (size_t i = 0, end; i < r->entry_count; i = end) {
        for (end = i; end < r->entry_count &&
                      r->entries[end].resource == r->entries[i].resource;)
            end++;
        row_add(&rows, r->graph, r->entries + i, end - i);
    }
    map_fini(&rows.known);
    network_set(network, &rows, patterns);
    for (uint32_t i = 0; i < r->graph->switches; i++) {
        free(r->ways[i].far);
        free(r->ways[i].queue);
    }
    free(r->ways);
    free(r->amount);
    free(r->loads);
    free(r->entries);
    free(r);
}

void flow_network_fini(struct simulation_network *network)
{
    free((void *)(uintptr_t)network->shares.rows);
    free((void *)(uintptr_t)network->shares.loads);
    free(network->scratch.left);
    free(network->scratch.sum);
    free(network->scratch.active);
}
