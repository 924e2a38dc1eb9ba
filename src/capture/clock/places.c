/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/clock/places.h"

#include "capture/clock/channel.h"
#include "fits/spread.h"

static const struct cluster *cluster; /* NULL: there is none */
static struct placement at;
static uint32_t world;

static struct price_place whole_place(const struct channel *c)
{
    struct spread s;

    spread_find(&s, c->world, c->ranks, &at, world);
    return (struct price_place){.nodes = s.nodes,
                                .gpus_per_node = s.gpus_per_node,
                                .users = s.users};
}

/* Messages go to one node or two, whose other GPUs send too. */
static struct price_place message_place(const struct channel *c,
                                        const struct op *op)
{
    struct price_place place = {
        .nodes = 1,
        .gpus_per_node = world && world < at.width ? world : at.width,
        .users = 1};
    struct op_part own;
    uint32_t count;
    const struct op_part *parts = channel_parts(op, &own, &count);

    for (uint32_t i = 0; i < count; i++)
        if (parts[i].peer < c->ranks &&
            placement_node(&at, c->world[parts[i].peer]) !=
                placement_node(&at, c->world[c->rank]))
            place.nodes = 2;
    return place;
}

static bool on_find(void *context, const struct op *op, const char *name,
                    struct price_place *place)
{
    struct channel *c = channel_known(op_as_collective(op)->communicator);

    (void)context;
    if (!c || !c->world)
        return false;
    if (channel_is_message(name)) {
        *place = message_place(c, op);
        return true;
    }
    if (!c->place.nodes)
        c->place = whole_place(c);
    *place = c->place;
    return true;
}

void places_open(struct simulation_options *options)
{
    static const struct simulation_places places = {.find = on_find};

    cluster = options->price.cluster;
    at = options->placement ? *options->placement
                            : (struct placement){.width = 1};
    world = 0;
    options->placement = NULL;
    if (cluster)
        options->finder = &places;
}

void places_record(const struct trace_item *item)
{
    if (!cluster || item->head.kind != TRACE_PROCESS)
        return;
    const struct trace_process *p = trace_as_process(item);
    world = (uint32_t)p->world_size;
    at.width = cluster_width(cluster, (uint32_t)p->local_world_size);
}
