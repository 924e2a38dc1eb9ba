/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/cluster/comm_place.h"

#include <stdlib.h>

#include "common/base/xmalloc.h"

static int rank_compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

/* GPUs of a node that the job uses. */
static uint32_t node_ranks(const struct comm_log *log, uint32_t width)
{
    return log->world && log->world < width ? log->world : width;
}

static struct comm_place place_of(const struct comm_log *log,
                                  const struct comm *c,
                                  const struct placement *at)
{
    struct comm_place place = {.nodes = 0, .users = 1};
    uint32_t here = 0;

    if (!c->members)
        return place;
    uint32_t *nodes = xcalloc(c->ranks, sizeof *nodes);
    for (uint32_t i = 0; i < c->ranks; i++)
        nodes[i] = placement_node(at, c->members[i]);
    qsort(nodes, c->ranks, sizeof *nodes, rank_compare);
    for (uint32_t i = 0; i < c->ranks; i++) {
        bool other = !i || nodes[i] != nodes[i - 1];
        place.nodes += other;
        here = other ? 1 : here + 1;
        if (here > place.gpus_per_node)
            place.gpus_per_node = here;
    }
    free(nodes);
    if (place.nodes > 1)
        place.users =
            (double)node_ranks(log, at->width) / (double)place.gpus_per_node;
    return place;
}

/* Sends go to one node or two, with the nodes' other GPUs sending too. */
static struct comm_place pair_place(const struct comm_log *log,
                                    const struct comm_call *call,
                                    const struct placement *at)
{
    const struct comm *c = &log->comms[call->comm];
    struct comm_place place = {.nodes = 1,
                               .gpus_per_node = node_ranks(log, at->width),
                               .users = 1};

    for (uint32_t i = 0; i < call->part_count; i++) {
        uint32_t peer = log->parts[call->part_first + i].peer;
        if (peer < c->ranks &&
            placement_node(at, c->members[peer]) !=
                placement_node(at, c->members[c->rank]))
            place.nodes = 2;
    }
    return place;
}

void comm_places_find(const struct comm_log *log, const struct placement *at,
                      struct comm_place *places)
{
    struct comm_place *of = xcalloc(log->comm_count + 1, sizeof *of);

    for (size_t i = 0; i < log->comm_count; i++)
        of[i] = place_of(log, &log->comms[i], at);
    for (size_t i = 0; i < log->call_count; i++) {
        const struct comm_call *call = &log->calls[i];
        places[i] = of[call->comm];
        if (call->kind == COMM_PAIR && log->comms[call->comm].members)
            places[i] = pair_place(log, call, at);
    }
    free(of);
}
