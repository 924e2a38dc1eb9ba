/* SPDX-License-Identifier: Apache-2.0
 * Another job that runs beside one: a kept run whose ranks are on the same
 * cluster, behind those of the job, and share its network. */
#ifndef MEMSIM_MEMSIM_STUDY_JOB_BESIDE_H
#define MEMSIM_MEMSIM_STUDY_JOB_BESIDE_H

#include "memsim/collectives/comm_join.h"
#include "memsim/time/simulation_job.h"

/* Zeroed, there is none. */
struct job_beside {
    struct simulation_rank *ranks; /* that ran; numbers go on from the job's */
    struct simulation_plan *plans;
    char **paths;
    size_t count;
    uint32_t first, world; /* its ranks in the common numbers */
    uint32_t *stands;      /* by its rank: the one that ran for it, from FIRST;
                              COMM_NONE: none */
};

/* Reads the run in DIRECTORY, whose ranks follow FIRST ranks of the job.
 * Returns 0 with *B to be given to job_beside_fini, or -1 with ERR set and
 * nothing to free: it is no kept run, or has no rank with collectives. */
int job_beside_read(struct job_beside *b, const char *directory, uint32_t first,
                    struct err *err);
void job_beside_fini(struct job_beside *b);

/* Sets *ALL, whose stands are to be freed, to the ranks of OWN (of which each
 * stands for itself where it has none), and then B's. */
void job_beside_classes(const struct job_beside *b,
                        const struct comm_classes *own,
                        struct comm_classes *all);

/* Joins the collectives of PEERS, their own ranks and then B's. To be given to
 * comm_job_destroy. What does not match in B is not looked at. */
struct comm_job *job_beside_join(const struct simulation_peers *peers,
                                 const struct comm_classes *all);

/* Steps of the job, of several without the first one, and those of them in
 * which the other one has not ended, when each runs alone. */
struct job_beside_steps {
    size_t own, covered;
};

/* Lets the second steps of both begin together (the first ones, of a job with
 * one alone): sets JOB's start_ns. OPTIONS are those of the simulation, whose
 * network is not used. */
struct job_beside_steps
job_beside_align(const struct simulation_peers *peers, struct comm_job *job,
                 const struct simulation_options *options);

#endif
