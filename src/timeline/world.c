/* SPDX-License-Identifier: Apache-2.0 */
#include "timeline/world.h"

#include <string.h>

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
    xfree(w->devices);
    xfree(w);
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

bool world_run(struct simulation_world *w)
{
    uint64_t wakes = sim_wakes(w->sim);

    while (sim_wakes(w->sim) == wakes)
        if (!sim_step(w->sim, UINT64_MAX))
            return false;
    return true;
}
