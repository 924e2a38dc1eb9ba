/* SPDX-License-Identifier: Apache-2.0
 * What a run's processes did beside using memory: those that failed, files that
 * were written, values that were read and that memsim does not compute. */
#ifndef MEMSIM_MEMSIM_RESULT_RESULT_PROCESS_H
#define MEMSIM_MEMSIM_RESULT_RESULT_PROCESS_H

#include "memsim/result/result.h"

/* Adds notes on all of it to R, whose verdict is reached, and R->files. */
void result_process_notes(struct result *r, const struct session *s);

#endif
