/* SPDX-License-Identifier: Apache-2.0
 * --delay and --delay-lib: the options, the ranks that they are about, and what
 * a report says of them. */
#ifndef MEMSIM_MEMSIM_STUDY_DELAY_OPTIONS_H
#define MEMSIM_MEMSIM_STUDY_DELAY_OPTIONS_H

#include "memsim/result/result.h"
#include "memsim/study/options.h"
#include "memsim/time/timing.h"
#include "playback/delay.h"

/* Those of OPTIONS. Returns 0, or -1 with ERR set. */
int study_delay_read(const struct study_options *options, struct delays *delays,
                     struct err *err);

/* What is simulated with: TABLE (borrowed), with --delay-lib loaded. Returns 0,
 * or -1 with ERR set. */
int study_delay_open(const struct delays *table,
                     struct simulation_delays *delays, struct err *err);

/* Notes in RESULT what TABLE did to its COUNT ranks, whose TIMED they are. A
 * rank that it let die is a failure of the job. Returns 0, or -1 with ERR set:
 * --delay-lib crashed. */
int study_delay_conclude(const struct delays *table,
                         const struct timing_rank *timed, size_t count,
                         struct result *result, struct err *err);

#endif
