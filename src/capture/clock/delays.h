/* SPDX-License-Identifier: Apache-2.0
 * What makes this rank slower than others: the delays of the run's table
 * (playback/delay.h), and its GPU's own speed (playback/stragglers.h). */
#ifndef MEMSIM_CAPTURE_CLOCK_DELAYS_H
#define MEMSIM_CAPTURE_CLOCK_DELAYS_H

#include "common/trace/trace_read.h"
#include "playback/simulation.h"

/* Gives OPTIONS the delays of its image, with the functions of --delay-lib.
 * Returns NULL, or what is wrong. */
const char *delays_open(struct simulation_options *options);

/* Whether they depend on steps. */
bool delays_count_steps(void);

/* Before SIMULATOR gets ITEM, which may say what rank this is. */
void delays_record(const struct trace_item *item, struct simulator *simulator);

#endif
