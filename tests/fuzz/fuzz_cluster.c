/* SPDX-License-Identifier: Apache-2.0
 * libFuzzer on the readers of clusters, fits of collectives and fits of
 * operators: what is taken must answer any question with a finite time, what is
 * refused must say why. */
#include <math.h>
#include <stdlib.h>

#include "common/base/err.h"
#include "fits/cluster.h"
#include "runtime/nccl/cost_nccl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(int condition)
{
    if (!condition)
        abort();
}

static void ask(const struct fit *fit)
{
    static const uint32_t nodes[] = {1, 2, 3, 64, 100000};
    struct cost_nccl_answer answer;

    for (unsigned i = 0; i < 5 * 4 * 3; i++) {
        const struct cost_nccl_query query = {
            .coll = i % 3 ? FIT_ALL_REDUCE : FIT_ALL_GATHER,
            .nodes = nodes[i % 5],
            .gpus_per_node = 1u << (i % 4),
            .bytes = ldexp(1, (int)(i * 7 % 40)),
            .quantile = i % 2 ? 0.9 : 0};
        if (!cost_nccl(fit, &query, &answer))
            demand(isfinite(answer.us) && answer.us >= 0);
    }
}

/* A flow between the first adapter and the same of the last node goes somewhere,
 * and no link has more than it. */
static void send(const struct network *n)
{
    const struct net_graph *g = &n->graph;
    size_t switches = g->switches, resources = net_resources(g);
    uint16_t *far = calloc(switches + 1, sizeof *far);
    uint32_t *queue = calloc(switches + 1, sizeof *queue);
    double *amount = calloc(switches + 1, sizeof *amount);
    double *loads = calloc(resources + 1, sizeof *loads);
    const struct net_flow flow = {0, (n->nodes - 1) * n->adapters, 1};
    uint32_t to = g->adapter_at[flow.to];

    const struct net_ways ways = {to, net_distances(g, to, far, queue), far,
                                  queue};
    demand(far[g->adapter_at[0]] != NET_FAR);
    net_route(g, &ways, &flow, 1, amount, loads);
    for (uint32_t i = 0; i < resources; i++)
        demand(loads[i] >= 0 && loads[i] < 1.000001);
    demand(loads[g->links] == 1);
    free(far);
    free(queue);
    free(amount);
    free(loads);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cluster cluster;
    struct err err = {""};

    if (cluster_load_text((const char *)data, size, "fuzz", &cluster, &err)) {
        demand(err.text[0] != '\0');
        return 0;
    }
    ask(&cluster.fit);
    if (cluster.network)
        send(cluster.network);
    cluster_fini(&cluster);
    return 0;
}
