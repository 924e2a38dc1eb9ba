/* SPDX-License-Identifier: Apache-2.0
 * The timelines of a job's ranks from one simulation of the job, however many
 * are wanted. */
#ifndef MEMSIM_MEMSIM_TIME_TIME_JOB_H
#define MEMSIM_MEMSIM_TIME_TIME_JOB_H

#include "memsim/time/simulation_job.h"
#include "memsim/time/time_log.h"

/* What is wanted of a rank, and what came of it. */
struct time_want {
    bool whole; /* all steps */
    bool one;   /* the step `step` */
    uint32_t step;
    const struct simulation_sink *sink; /* of the caller; NULL: none */
    /* what comes of it: NULL where it was not wanted or is not known; to be
     * given to time_log_destroy */
    struct time_log *whole_log, *one_log;
    struct simulation result; /* zeroed where it failed */
    bool failed;              /* the trace cannot be read: see err */
    struct err err;
};

/* Fills WANTS, one for each of PEERS; nothing is simulated where none of them
 * wants anything. Give WANTS to time_job_fini. */
void time_job_read(struct time_want *wants,
                   const struct simulation_peers *peers,
                   const struct simulation_options *options);
/* Frees what is still in COUNT WANTS. */
void time_job_fini(struct time_want *wants, size_t count);

#endif
