/* SPDX-License-Identifier: Apache-2.0
 * What the simulator must know of a trace before it plays it: the steps, what
 * the host needs in them, and what the process does with others. So that the
 * trace is read only once, the pass that finds them keeps the records that the
 * simulator needs. */
#ifndef MEMSIM_MEMSIM_TIME_SIMULATION_PLAN_H
#define MEMSIM_MEMSIM_TIME_SIMULATION_PLAN_H

#include "common/trace/play.h"
#include "common/trace/trace_kept.h"
#include "memsim/collectives/comm_log.h"
#include "playback/host_times.h"

/* Of one trace; where the records take more, they are read again. */
#define SIMULATION_KEPT_BYTES ((size_t)512 << 20)

enum simulation_keep {
    SIMULATION_KEEP_NOTHING, /* the steps and times alone */
    SIMULATION_KEEP_WORK,    /* not the allocator's records */
    SIMULATION_KEEP_ALL,     /* for a sink that gets every record */
};

struct simulation_plan {
    struct step_list steps;
    struct host_times times;
    struct comm_log comms;
    struct trace_kept *kept; /* NULL: the records have to be read again */
    enum simulation_keep keep;
    struct simulation_pass *pass; /* until it has ended */
};

/* A listener for a pass over the trace, which keeps as many records as KEEP
 * says, and at most MOST_BYTES; *PLAN must not move until that has ended, and
 * is to be given to simulation_plan_fini. */
struct trace_listener simulation_plan_init(struct simulation_plan *plan,
                                           enum simulation_keep keep,
                                           size_t most_bytes);
void simulation_plan_fini(struct simulation_plan *plan);

/* Lets go of the records. */
void simulation_plan_forget(struct simulation_plan *plan);

/* The same with a pass of its own over the trace PATH. Returns 0, or -1 with
 * nothing to free. */
int simulation_plan_read(struct simulation_plan *plan, const char *path,
                         enum simulation_keep keep, struct err *err);

#endif
