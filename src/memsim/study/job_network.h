/* SPDX-License-Identifier: Apache-2.0
 * The network that a job's collectives share, where the cluster's file has
 * one. */
#ifndef MEMSIM_MEMSIM_STUDY_JOB_NETWORK_H
#define MEMSIM_MEMSIM_STUDY_JOB_NETWORK_H

#include "memsim/result/result.h"
#include "memsim/time/flow_plan.h"

struct job_network {
    struct flow_job flows;  /* as recorded */
    const char *placement;  /* --placement; NULL: in blocks */
    const char *average;    /* the group that averages gradients, or NULL */
    uint32_t data_parallel; /* its ranks then; 0: as recorded */
};

/* Sets *PLAN (NULL: the calls have their prices alone), and notes in RESULT.
 * Returns 0, or -1 where the network or the placement is too small. */
int job_network_plan(const struct job_network *n, struct result *result,
                     struct flow_plan **plan, struct err *err);

#endif
