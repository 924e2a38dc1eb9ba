/* SPDX-License-Identifier: Apache-2.0
 * Advice on a run, from its traces. */
#ifndef MEMSIM_MEMSIM_ADVICE_ADVICE_RUN_H
#define MEMSIM_MEMSIM_ADVICE_ADVICE_RUN_H

#include "memsim/advice/advice.h"
#include "memsim/advice/recorded.h"
#include "memsim/run/run.h"
#include "memsim/run/rundir.h"

/* Of the directory's name, beside a run that did not fit. */
#define ADVICE_UNLIMITED_END ".unlimited"

/* Gives RESULT's devices what can be advised on the run in DIR, and, where that
 * ran out of memory, on the run of the same command in UNLIMITED (may be NULL),
 * which did not. What cannot be told becomes a note. RECORDED (may be NULL) has
 * traces of DIR that were read already. */
void advice_run(struct result *result, const struct rundir *dir,
                const struct recorded_list *recorded,
                const struct rundir *unlimited);

/* The same of a run that ran out of memory, unasked: nothing that takes long.
 */
void advice_run_briefly(struct result *result, const struct rundir *dir,
                        const struct recorded_list *recorded);

/* Of a trace: more is not replayed where nobody asked for it. */
#define ADVICE_RANGE_BYTES (UINT64_C(16) << 20)

/* Gives RESULT's devices the bounds of their reserved memory, where RECORDED
 * (may be NULL) has their traces of the run in DIR. */
void advice_ranges(struct result *result, const struct rundir *dir,
                   const struct recorded_list *recorded);

/* Gives RANK's devices what can be advised on REC, which commands call NAME. */
void advice_recording(struct result *result, struct result_rank *rank,
                      struct recording *rec, const char *name);

/* Adds that LARGEST is the largest batch that fits, as COMMAND found out; it is
 * the value of the command's OPTION. */
void advice_batch(struct result *result, uint64_t largest, const char *command,
                  const char *option);

#endif
