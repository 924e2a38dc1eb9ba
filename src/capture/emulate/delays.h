/* SPDX-License-Identifier: Apache-2.0
 * What --delay does to an emulated job. This rank stands for all that do not
 * exist: a collective waits for each of them. Its own host sleeps; theirs come
 * later to the next collective. Not for several threads at once. */
#ifndef MEMSIM_CAPTURE_EMULATE_DELAYS_H
#define MEMSIM_CAPTURE_EMULATE_DELAYS_H

#include <stdint.h>

#include "playback/delay.h"
#include "playback/simulation.h"

/* Returns NULL, or what is wrong. */
const char *emulated_delays_open(const struct simulation_options *options);

/* What happens as a step begins. */
struct emulated_step {
    uint64_t sleep_ns; /* of this rank's host */
    uint32_t dead; /* a rank with which this process dies; DELAY_ANY: none */
};
void emulated_delays_step(uint32_t step, struct emulated_step *s);

/* By how much later than this rank the last one comes to CALL, a collective;
 * the step of CALL is set. */
uint64_t emulated_delays_late(struct delay_call *call);

/* What the next work of this rank's GPU under NAME, a kernel or a library's
 * call, gets. Of ranks that do not exist the same is late for the next
 * collective. */
struct delay_effect emulated_delays_work(const char *name);

/* By how much longer than this rank the slowest GPU of the others computes
 * until the next collective; 0.5: 50%. */
double emulated_delays_lag(void);

#endif
