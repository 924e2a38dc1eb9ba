/* SPDX-License-Identifier: Apache-2.0
 * The other ranks of the job, for the simulation of this one: which of its
 * collectives, sends and receives wait for which of theirs, and when these come
 * (core/run/meeting.h). Collectives belong together as in reports
 * (memsim/collectives/comm_join.h): by their place on a communicator, messages
 * by their place among those of two ranks; ranks that are no processes come
 * when those do that run for them. */
#ifndef MEMSIM_CAPTURE_CLOCK_OTHERS_H
#define MEMSIM_CAPTURE_CLOCK_OTHERS_H

#include "playback/simulation.h"

/* What the simulation is to be made with; NULL: this process is on its own. */
const struct simulation_others *others_open(void);

/* Before SIMULATOR gets a record of the process or of a communicator. */
void others_record(const struct trace_item *item);

/* Others wait for this process: does what ends until LIMIT_NS, and is known. */
void others_offer(struct simulator *simulator, uint64_t limit_ns);

#endif
