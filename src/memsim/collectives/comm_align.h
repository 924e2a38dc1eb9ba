/* SPDX-License-Identifier: Apache-2.0
 * Which collective of one rank's profile is which of another's, and by how much
 * their clocks differ. Pure. */
#ifndef MEMSIM_MEMSIM_COLLECTIVES_COMM_ALIGN_H
#define MEMSIM_MEMSIM_COLLECTIVES_COMM_ALIGN_H

#include "memsim/collectives/comm_log.h"

/* Finds the shift S, so that call I of B is call I + S of A, and what is to be
 * added to B's times for A's clock: of all shifts under which the calls are of
 * the same kinds that with the most constant difference between the ends of
 * calls, which a collective's ranks reach at about the same time. Returns S. */
int64_t comm_align(const struct comm_call *a, size_t a_count,
                   const struct comm_call *b, size_t b_count,
                   int64_t *clock_ns);

#endif
