/* SPDX-License-Identifier: Apache-2.0
 * What simulators share whose processes are the ranks of one job: the devices'
 * clock, and the collectives at which they meet. A process alone has a world
 * of its own. */
#ifndef MEMSIM_TIMELINE_WORLD_H
#define MEMSIM_TIMELINE_WORLD_H

#include "runtime/sim/sim.h"

struct simulator;

#define SIMULATION_ALONE UINT32_MAX /* no meet */

/* Collectives, or sends and receives, of several processes that are carried
 * out together: when the last has come. */
struct simulation_meet {
    uint32_t expected;    /* operations */
    bool neighbour;       /* a wait is a pipeline's bubble */
    /* the world's */
    uint32_t came, number;
};

struct simulation_world {
    struct sim *sim;
    struct simulation_meet *meets;
    void **blocks; /* the simulator's memory */
    size_t block_count, block_capacity;
    struct world_device {
        struct simulator *owner;
        uint32_t index; /* among those of its owner */
    } *devices;
    size_t device_count, device_capacity;
    bool together;
};

/* Returns a world for several processes, whose meets are MEETS (borrowed, with
 * came and number 0), where TOGETHER; else for one alone. */
struct simulation_world *world_create(struct simulation_meet *meets,
                                      bool together);
void world_destroy(struct simulation_world *w);

/* The number of a new device, OWNER's INDEX-th. */
uint32_t world_device(struct simulation_world *w, const struct sim_gpu *gpu,
                      struct simulator *owner, uint32_t index);

/* One more operation comes to MEET: what sim_work is to have. */
uint32_t world_meet(struct simulation_world *w, uint32_t meet);

/* Every process waits: runs the devices until one waits no more. Returns false
 * where that will never be. */
bool world_run(struct simulation_world *w);

/* What the simulator tells of OWNER's operations: simulation.c. */
void simulator_done(struct simulator *owner, const struct sim_done *done);
void simulator_marked(struct simulator *owner, uint32_t index,
                      const struct sim_marked *marked);

#endif
