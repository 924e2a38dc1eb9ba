/* SPDX-License-Identifier: Apache-2.0
 * The traces of a job's ranks on one simulator: a collective starts when its
 * last rank has come. One trace alone gives what simulation_run gives, to the
 * nanosecond. */
#ifndef MEMSIM_MEMSIM_TIME_SIMULATION_JOB_H
#define MEMSIM_MEMSIM_TIME_SIMULATION_JOB_H

#include "memsim/collectives/comm_join.h"
#include "memsim/time/simulation_plan.h"
#include "playback/simulation.h"

struct simulation_rank {
    const char *path;                   /* borrowed */
    const struct simulation_plan *plan; /* borrowed */
    double slow; /* price_options.slow of its GPU; 0: none */
    struct delay_ranks who; /* that the options' delays are about; its set is
                               borrowed */
    struct simulation_sink sink;
    struct trace_names *names; /* NULL, or set to the trace's names, to be given
                                  to trace_names_fini */
    /* what comes of it */
    bool failed;              /* the trace cannot be read: see err */
    struct err err;           /* why */
    struct simulation result; /* to be given to simulation_fini */
};

/* Simulates COUNT RANKS, whose collectives JOB has joined in the same order. A
 * rank whose trace cannot be read is left out, and those that wait for it stay
 * stuck. OPTIONS are those of all; their plan is not used. */
void simulation_job(struct simulation_rank *ranks, size_t count,
                    const struct comm_job *job,
                    const struct simulation_options *options);

/* All ranks of a job: what is set in RANKS are paths and plans. The ranks of a
 * job beside it may follow; there are no results of these. */
struct simulation_peers {
    const struct simulation_rank *ranks;
    size_t count;
    const struct comm_job *job;
    size_t beside; /* ranks of the other one */
};

/* Ends the results of COUNT RANKS. */
void simulation_ranks_fini(struct simulation_rank *ranks, size_t count);

/* Joins the collectives of RANKS, which stand for CLASSES (NULL: for themselves
 * alone); to be given to comm_job_destroy. */
struct comm_job *simulation_join(const struct simulation_rank *ranks,
                                 size_t count,
                                 const struct comm_classes *classes);

#endif
