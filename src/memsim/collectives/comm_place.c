/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/collectives/comm_place.h"

#include <stdlib.h>

#include "common/base/xmalloc.h"
#include "fits/spread.h"

/* GPUs of a node that the job uses. */
static uint32_t node_ranks(const struct comm_log *log, uint32_t width)
{
    return !log->imported && log->world && log->world < width ? log->world
                                                              : width;
}

static struct comm_place place_of(const struct comm_log *log,
                                  const struct comm *c,
                                  const struct placement *at)
{
    struct spread spread = {.nodes = 0, .users = 1};

    if (c->members)
        spread_find(&spread, c->members, c->ranks, at,
                    log->imported ? 0 : log->world);
    return (struct comm_place){.nodes = spread.nodes,
                               .gpus_per_node = spread.gpus_per_node,
                               .users = spread.users};
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
