/* SPDX-License-Identifier: Apache-2.0
 * What is made of a job's timelines: files, and logs that its result keeps. */
#ifndef MEMSIM_MEMSIM_STUDY_JOB_TIMELINES_H
#define MEMSIM_MEMSIM_STUDY_JOB_TIMELINES_H

#include "memsim/collectives/comm_join.h"
#include "memsim/result/result.h"
#include "memsim/study/job_beside.h"
#include "memsim/study/study_time.h"
#include "memsim/time/flow_plan.h"

/* Members whose traces can be read, with plans. */
struct study_job {
    const struct study_time *t;
    struct result *result;
    struct simulation_rank *ranks;
    struct result_rank **of; /* the result's ranks */
    uint32_t *processes;
    struct simulation_plan *own;
    size_t count, own_count;
    struct job_beside beside; /* its ranks follow in ranks */
    struct comm_job *joined;
    struct comm_classes classes, all; /* all: with the job beside it */
    struct simulation_options timeline; /* with what is of this job alone */
    struct placement placement;
    struct flow_plan *flows;
};

/* Simulates J again for all that is wanted of its timelines. OWNS says for each
 * member whether its timing is its rank's. Returns 0 or -1. */
int study_timelines_write(const struct study_job *j, const bool *owns,
                          struct err *err);

#endif
