/* SPDX-License-Identifier: Apache-2.0
 * What a run's processes did beside using memory: ranks that died, files that
 * were written, values that were read and that memsim does not compute. */
#ifndef MEMSIM_MEMSIM_RESULT_PROCESS_H
#define MEMSIM_MEMSIM_RESULT_PROCESS_H

#include "memsim/report/result.h"

/* The rank of a distributed job that ended first with another status than 0,
 * or, where none did, that was killed; NULL: none. */
const struct session_process *result_dead_rank(const struct session *s);

/* Adds notes on all of it to R, whose verdict is reached, and R->files. */
void result_process_notes(struct result *r, const struct session *s);

#endif
