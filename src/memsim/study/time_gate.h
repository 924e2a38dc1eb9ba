/* SPDX-License-Identifier: Apache-2.0
 * --fail-slower: a limit for the step's time, relative to an earlier run's. */
#ifndef MEMSIM_MEMSIM_STUDY_TIME_GATE_H
#define MEMSIM_MEMSIM_STUDY_TIME_GATE_H

#include "memsim/result/result.h"
#include "memsim/study/options.h"

/* Do OPTIONS say a limit, and an earlier run with a step time? Returns 0, also
 * where no limit is asked for, or -1. */
int study_gate_check(const struct study_options *options, struct err *err);

/* Gives *RESULT, where it fits, the verdict of a limit that was passed where
 * its step takes too long. Returns 0, or -1 where that cannot be said. */
int study_gate(const struct study_options *options, struct result *result,
               struct err *err);

#endif
