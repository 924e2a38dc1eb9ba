/* SPDX-License-Identifier: Apache-2.0
 * The flows of a job's collectives through the network of its cluster: what
 * each call sends over which links, and which links several share. */
#ifndef MEMSIM_MEMSIM_TIME_FLOW_PLAN_H
#define MEMSIM_MEMSIM_TIME_FLOW_PLAN_H

#include "fits/cluster.h"
#include "memsim/collectives/comm_join.h"
#include "fits/placement.h"
#include "playback/world.h"

struct flow_plan;

struct flow_job {
    const struct comm_log *const *logs;
    size_t count;
    const struct comm_classes *classes; /* NULL: every rank ran */
    const struct cluster *cluster;      /* with a network */
    const struct placement *placement;
};

/* Makes the plan of JOB, and of the jobs like it that its placement has, whose
 * calls come at the same times. What it points to is not needed afterwards.
 * Returns NULL where the network has too few nodes; end it with
 * flow_plan_destroy. */
struct flow_plan *flow_plan_create(const struct flow_job *job, struct err *err);
void flow_plan_destroy(struct flow_plan *plan); /* NULL is fine */

/* The flows of log LOG's calls, in their order. */
const struct simulation_flow *flow_plan_of(const struct flow_plan *plan,
                                           size_t log);

/* The network that they share, for one world at a time. */
struct simulation_network *flow_plan_network(const struct flow_plan *plan);

/* How many patterns of flows there are, how many links (or sets of links that
 * are alike) they share, of how many jobs that run at the same time, and of how
 * many calls the flows are not known. */
struct flow_plan_size {
    uint32_t patterns, rows, jobs;
    uint64_t unknown;
};
struct flow_plan_size flow_plan_size(const struct flow_plan *plan);

#endif
