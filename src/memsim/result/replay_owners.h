/* SPDX-License-Identifier: Apache-2.0
 * What was in memory at the peak of a replay. */
#ifndef MEMSIM_MEMSIM_RESULT_REPLAY_OWNERS_H
#define MEMSIM_MEMSIM_RESULT_REPLAY_OWNERS_H

#include "memsim/replay/recording.h"
#include "memsim/result/result.h"

/* Gives RANK's GPUs what the trace of REC says of its peaks, where the replay
 * came to the same: modules, categories, the largest blocks. Returns 0, or -1:
 * the trace cannot be read. */
int replay_owners_take(struct result_rank *rank, const struct recording *rec,
                       struct err *err);

#endif
