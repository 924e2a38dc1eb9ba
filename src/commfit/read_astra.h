/* SPDX-License-Identifier: Apache-2.0
 * What ASTRA-sim prints of collectives, one a run, behind a line that says
 * which:
 *     # astra-sim: all_reduce nodes=2 gpus_per_node=4 size_bytes=1048576
 *     [...] sys[0] finished, 123456 cycles, exposed communication ... */
#ifndef MEMSIM_COMMFIT_READ_ASTRA_H
#define MEMSIM_COMMFIT_READ_ASTRA_H

#include "commfit/read.h"

/* Whether a file that begins with HEAD has such lines. */
bool astra_is_text(const char *head);

/* Takes a run's slowest rank; a cycle is a nanosecond. A run in which not every
 * rank finished is dropped. Returns 0, or -1 where it cannot be read. */
int read_astra(struct bench *b, struct lines *lines, struct err *err);

#endif
