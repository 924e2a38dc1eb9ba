/* SPDX-License-Identifier: Apache-2.0
 * Where the ranks of a collective are on the cluster, for its price: the same
 * as a report finds (memsim/collectives/comm_place.h). */
#ifndef MEMSIM_CAPTURE_CLOCK_PLACES_H
#define MEMSIM_CAPTURE_CLOCK_PLACES_H

#include "common/trace/trace_read.h"
#include "playback/simulation.h"

/* Gives OPTIONS, which have a cluster or none, what finds the places. */
void places_open(struct simulation_options *options);

/* Before the simulation gets ITEM, which may be of the process. */
void places_record(const struct trace_item *item);

#endif
