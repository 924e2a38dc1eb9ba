/* SPDX-License-Identifier: Apache-2.0 */
#include "fits/spread.h"

#include <stdlib.h>

#include "common/base/xmalloc.h"
#include "fits/cluster.h"

uint32_t cluster_width(const struct cluster *c, uint32_t local)
{
    uint32_t width = c->gpus_per_node, host = c->gpus_per_host;

    for (uint32_t i = 0; !c->gpus_per_node && i < c->fit.family_count; i++)
        if (c->fit.families[i].gpus_per_node > width)
            width = c->fit.families[i].gpus_per_node;
    width = width ? width : 1;
    host = host ? host : width;
    return local && local < host ? width / host * local : width;
}

static int rank_compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

void spread_find(struct spread *s, const uint32_t *members, uint32_t count,
                 const struct placement *at, uint32_t world)
{
    uint32_t used = world && world < at->width ? world : at->width, here = 0;
    uint32_t *nodes = xcalloc(count, sizeof *nodes);

    *s = (struct spread){.nodes = 0, .users = 1};
    for (uint32_t i = 0; i < count; i++)
        nodes[i] = placement_node(at, members[i]);
    qsort(nodes, count, sizeof *nodes, rank_compare);
    for (uint32_t i = 0; i < count; i++) {
        bool other = !i || nodes[i] != nodes[i - 1];
        s->nodes += other;
        here = other ? 1 : here + 1;
        if (here > s->gpus_per_node)
            s->gpus_per_node = here;
    }
    xfree(nodes);
    if (s->nodes > 1)
        s->users = (double)used / (double)s->gpus_per_node;
}
