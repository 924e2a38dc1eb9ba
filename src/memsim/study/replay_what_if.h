/* SPDX-License-Identifier: Apache-2.0
 * The step's time of a job that --what-if changes. */
#ifndef MEMSIM_MEMSIM_STUDY_REPLAY_WHAT_IF_H
#define MEMSIM_MEMSIM_STUDY_REPLAY_WHAT_IF_H

#include "memsim/advice/change.h"
#include "memsim/result/result.h"

/* Says with a note what a step of RESULT, which was timed as recorded, takes
 * with CHANGED: with activation checkpointing the forward of its modules comes
 * once more. The recorded times are taken out of RESULT: they are not those of
 * the changed job. */
void replay_what_if_time(struct result *result, const struct changed *changed);

#endif
