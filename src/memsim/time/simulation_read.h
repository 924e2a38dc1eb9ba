/* SPDX-License-Identifier: Apache-2.0
 * A trace's file on the simulator. */
#ifndef MEMSIM_MEMSIM_TIME_SIMULATION_READ_H
#define MEMSIM_MEMSIM_TIME_SIMULATION_READ_H

#include "memsim/time/simulation_plan.h"
#include "playback/simulation.h"

/* Simulates the trace PATH, which is read only where OPTIONS have no plan
 * with the records. Returns 0 with *T to be given to simulation_fini, or
 * -1 with ERR set and nothing to free. NAMES, where it is not NULL, is given
 * the trace's names, to be given to trace_names_fini. */
int simulation_run(struct simulation *t, const char *path,
                 const struct simulation_options *options,
                 const struct simulation_sink *sink, struct trace_names *names,
                 struct err *err);
void simulation_fini(struct simulation *t);
/* A copy, to be given to simulation_fini. */
struct simulation simulation_copy(const struct simulation *t);

#endif
