/* SPDX-License-Identifier: Apache-2.0
 * What simulators share whose processes are the ranks of one job: the devices'
 * clock, and the collectives at which they meet. A process alone has a world
 * of its own. */
#ifndef MEMSIM_PLAYBACK_WORLD_H
#define MEMSIM_PLAYBACK_WORLD_H

#include "common/base/map.h"
#include "runtime/net/net.h"
#include "runtime/sim/sim.h"

struct simulator;

#define SIMULATION_ALONE UINT32_MAX /* no meet */

/* What a group of sends and receives has to do with another one. */
struct simulation_pair {
    uint32_t meet;             /* the other's */
    uint32_t part, other_part; /* of SIM_WHOLE, of the work of each */
};

/* Collectives of several processes that are carried out together: when the last
 * has come. Or a group of sends and receives: one operation, with pairs. */
struct simulation_meet {
    uint32_t expected;                   /* operations */
    bool neighbour;                      /* a wait is a pipeline's bubble */
    const struct simulation_pair *pairs; /* borrowed */
    uint32_t pair_count;
    /* the world's */
    uint32_t number;
    bool made, paired;
};

/* The network between nodes, and what patterns of flows it is shared by. */
struct simulation_network {
    struct net_shares shares;
    struct net_scratch scratch;
    const double *alone_gbps; /* by pattern: of one of its flows, where one
                                 group alone uses the network; NULL: prices are
                                 those of adapters alone */
};

/* A collective's flows. */
struct simulation_flow {
    uint32_t pattern; /* NET_NONE: all is inside nodes */
    uint32_t added_ns; /* the latency of its links between switches */
    double bytes; /* of one flow */
};

struct simulation_world {
    struct sim *sim;
    struct simulation_network *network; /* borrowed; NULL: it is not known */
    struct net_user *flows; /* by number: the most that they get alone */
    size_t flow_count, flow_capacity;
    struct net_user *users; /* room for those under way */
    double *edge_gbps;
    size_t user_capacity, edge_capacity;
    struct map flow_numbers; /* + 1, by pattern and most_gbps */
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
 * zeros in the world's part), where TOGETHER; else for one alone. */
struct simulation_world *world_create(struct simulation_meet *meets,
                                      bool together);
void world_destroy(struct simulation_world *w);

/* Collectives between nodes share NETWORK (borrowed) from now on. */
void world_share(struct simulation_world *w,
                 struct simulation_network *network);

/* What sim_work is to have of FLOW, which takes DURATION_NS alone; 0: it shares
 * nothing. */
uint32_t world_flow(struct simulation_world *w,
                    const struct simulation_flow *flow, uint64_t duration_ns);

/* BYTES of WHOLE, of an exchange that has COUNT such parts: of SIM_WHOLE. */
uint32_t world_part(uint64_t bytes, uint64_t whole, uint32_t count);

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
