/* SPDX-License-Identifier: Apache-2.0
 * What a job whose memory grows comes to after the recorded steps: how many
 * steps it lasts. Its last steps are replayed until memory runs out, if they
 * are alike; else the growth is extrapolated. */
#ifndef MEMSIM_MEMSIM_ADVICE_OUTLOOK_H
#define MEMSIM_MEMSIM_ADVICE_OUTLOOK_H

#include "memsim/advice/recorded.h"
#include "memsim/result/result.h"
#include "memsim/run/rundir.h"

/* Fills the growth of all GPUs of RESULT, whose traces are in DIR, and in
 * RECORDED where they are there (NULL: nowhere). The verdict "fits" becomes
 * "grows" if memory runs out before the job of RESULT->job_steps ends, or,
 * where that is not given, in any job of OUTLOOK_STEPS. */
void outlook_run(struct result *result, const struct rundir *dir,
                 const struct recorded_list *recorded);

/* The same of RANK, whose recording REC is replayed on a GPU; outlook_judge()
 * when that was done for all ranks. */
void outlook_replay(struct result *result, struct result_rank *rank,
                    const struct recording *rec);
void outlook_judge(struct result *result);

#define OUTLOOK_STEPS 1000000

#endif
