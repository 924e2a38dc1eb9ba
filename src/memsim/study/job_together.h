/* SPDX-License-Identifier: Apache-2.0
 * A job and the one that --beside names, in one simulation. */
#ifndef MEMSIM_MEMSIM_STUDY_JOB_TOGETHER_H
#define MEMSIM_MEMSIM_STUDY_JOB_TOGETHER_H

#include "memsim/study/job_timelines.h"

/* How many ranks J has, without those of a job beside it. */
uint32_t job_own_world(const struct study_job *j);

/* All that is simulated. */
struct simulation_peers job_peers(const struct study_job *j);

/* Adds the ranks of the run that --beside names to J, whose own ones are known,
 * and sets its j->all. Returns 0, or -1: there is no such run, or J's links are
 * not known. */
int job_together_add(struct study_job *j, struct err *err);

/* Lets the steps of both begin together, and says so. */
void job_together_align(const struct study_job *j);

#endif
