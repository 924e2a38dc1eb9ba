/* SPDX-License-Identifier: Apache-2.0 */
#include "playback/world.h"

#include <string.h>

#include "common/base/hash.h"
#include "common/base/xmalloc.h"

static void *block_grow(void *context, void *old, size_t old_bytes,
                        size_t bytes)
{
    struct simulation_world *w = context;
    size_t at = 0;

    while (at < w->block_count && w->blocks[at] != old)
        at++;
    if (!old || at == w->block_count) {
        at = w->block_count;
        xgrow(&w->blocks, w->block_count, &w->block_capacity, sizeof(void *));
        w->block_count++;
        old = NULL;
    }
    char *grown = xreallocarray(old, bytes ? bytes : 1, 1);
    if (bytes > old_bytes)
        memset(grown + old_bytes, 0, bytes - old_bytes);
    w->blocks[at] = grown;
    return grown;
}

static void on_done(void *context, const struct sim_done *done)
{
    const struct simulation_world *w = context;

    simulator_done(w->devices[done->device].owner, done);
}

static void on_marked(void *context, const struct sim_marked *marked)
{
    const struct simulation_world *w = context;
    const struct world_device *d = &w->devices[marked->device];

    simulator_marked(d->owner, d->index, marked);
}

struct simulation_world *world_create(struct simulation_meet *meets,
                                      bool together)
{
    struct simulation_world *w = xcalloc(1, sizeof *w);
    const struct sim_memory memory = {.grow = block_grow, .context = w};
    const struct sim_sink sink = {
        .done = on_done, .marked = on_marked, .context = w};

    w->sim = sim_create(&memory, &sink);
    w->meets = meets;
    w->together = together;
    if (together)
        sim_together(w->sim);
    return w;
}

void world_destroy(struct simulation_world *w)
{
    for (size_t i = 0; i < w->block_count; i++)
        xfree(w->blocks[i]);
    xfree(w->blocks);
    xfree(w->flows);
    xfree(w->users);
    xfree(w->edge_gbps);
    map_fini(&w->flow_numbers);
    xfree(w->devices);
    xfree(w);
}

/* All parts together are SIM_WHOLE at most. */
uint32_t world_part(uint64_t bytes, uint64_t whole, uint32_t count)
{
    double share = whole ? (double)bytes / (double)whole : 0;

    if (count >= SIM_WHOLE)
        return 0;
    return 1 + (uint32_t)(share * (double)(SIM_WHOLE - count));
}

uint32_t world_device(struct simulation_world *w, const struct sim_gpu *gpu,
                      struct simulator *owner, uint32_t index)
{
    xgrow(&w->devices, w->device_count, &w->device_capacity,
          sizeof *w->devices);
    w->devices[w->device_count++] = (struct world_device){owner, index};
    return sim_device(w->sim, gpu);
}

static uint32_t meet_number(struct simulation_world *w, uint32_t meet)
{
    struct simulation_meet *m = &w->meets[meet];

    if (!m->made)
        m->number = sim_meet(w->sim, m->expected);
    m->made = true;
    return m->number;
}

uint32_t world_meet(struct simulation_world *w, uint32_t meet)
{
    struct simulation_meet *m = &w->meets[meet];
    uint32_t number = meet_number(w, meet);

    for (uint32_t i = 0; i < m->pair_count && !m->paired; i++) {
        const struct simulation_pair *p = &m->pairs[i];
        uint32_t other = meet_number(w, p->meet);
        if (!w->meets[p->meet].paired)
            sim_pair(w->sim, number, p->part, other, p->other_part);
    }
    m->paired = true;
    return number;
}

/* --- the network ---------------------------------------------------------- */

/* What USER's collective keeps of the speed that its price stands for, of
 * SIM_WHOLE. EDGE_GBPS: what it would get if adapters were the only limits. */
static uint32_t speed_of(const struct simulation_network *n,
                         const struct net_user *user, double edge_gbps)
{
    double alone = n->alone_gbps ? n->alone_gbps[user->pattern] : edge_gbps;
    double whole = alone < edge_gbps ? alone : edge_gbps;
    double part = SIM_WHOLE * user->gbps / whole;

    if (!(part < SIM_WHOLE))
        return SIM_WHOLE;
    return part > 1 ? (uint32_t)(part + 0.5) : 1;
}

static void share_links(void *context, const uint32_t *flows, uint32_t count,
                        uint32_t *speeds)
{
    struct simulation_world *w = context;
    struct simulation_network *n = w->network;

    while (w->user_capacity < count)
        xgrow(&w->users, w->user_capacity, &w->user_capacity, sizeof *w->users);
    while (w->edge_capacity < count)
        xgrow(&w->edge_gbps, w->edge_capacity, &w->edge_capacity,
              sizeof *w->edge_gbps);
    for (uint32_t i = 0; i < count; i++)
        w->users[i] = w->flows[flows[i]];
    net_share(&n->shares, true, w->users, count, &n->scratch);
    for (uint32_t i = 0; i < count; i++)
        w->edge_gbps[i] = w->users[i].gbps;
    net_share(&n->shares, false, w->users, count, &n->scratch);
    for (uint32_t i = 0; i < count; i++)
        speeds[i] = speed_of(n, &w->users[i], w->edge_gbps[i]);
}

void world_share(struct simulation_world *w, struct simulation_network *network)
{
    w->network = network;
    sim_share(w->sim,
              &(struct sim_network){.share = share_links, .context = w});
}

uint32_t world_flow(struct simulation_world *w,
                    const struct simulation_flow *flow, uint64_t duration_ns)
{
    struct net_user user = {.pattern = flow->pattern};

    if (!w->network || flow->pattern == NET_NONE || !duration_ns)
        return 0;
    user.most_gbps = flow->bytes / (double)duration_ns;
    if (!(user.most_gbps > 0))
        return 0;
    uint64_t key = hash_bytes(HASH_START, &user.pattern, sizeof user.pattern);
    key = hash_bytes(key, &user.most_gbps, sizeof user.most_gbps);
    uintptr_t number = (uintptr_t)map_get(&w->flow_numbers, key);
    if (!number) {
        xgrow(&w->flows, w->flow_count, &w->flow_capacity, sizeof *w->flows);
        w->flows[w->flow_count] = user;
        number = ++w->flow_count;
        map_put(&w->flow_numbers, key, (void *)number);
    }
    return (uint32_t)number;
}

bool world_run(struct simulation_world *w)
{
    uint64_t wakes = sim_wakes(w->sim);

    while (sim_wakes(w->sim) == wakes)
        if (!sim_step(w->sim, UINT64_MAX))
            return false;
    return true;
}
