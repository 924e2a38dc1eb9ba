/* SPDX-License-Identifier: Apache-2.0
 * What the simulator must know of a trace before it plays it: the steps, what
 * the host needs in them, and what the process does with others. */
#ifndef MEMSIM_MEMSIM_SIMULATION_PLAN_H
#define MEMSIM_MEMSIM_SIMULATION_PLAN_H

#include "common/trace/play.h"
#include "memsim/cluster/comm_log.h"
#include "timeline/host_times.h"

struct simulation_plan {
    struct step_list steps;
    struct host_times times;
    struct comm_log comms;
    struct simulation_pass *pass; /* until it has ended */
};

/* A listener for a pass over the trace; *PLAN must not move until that has
 * ended, and is to be given to simulation_plan_fini. */
struct trace_listener simulation_plan_init(struct simulation_plan *plan);
void simulation_plan_fini(struct simulation_plan *plan);

/* The same with a pass of its own over the trace PATH. Returns 0, or -1 with
 * nothing to free. */
int simulation_plan_read(struct simulation_plan *plan, const char *path,
                         struct err *err);

#endif
