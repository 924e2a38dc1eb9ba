/* SPDX-License-Identifier: Apache-2.0
 * What a question about a recording is asked with. Texts are as users write
 * them; study_options_check() says whether they can be read. */
#ifndef MEMSIM_MEMSIM_STUDY_OPTIONS_H
#define MEMSIM_MEMSIM_STUDY_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

struct result_seeds;

/* Zeroed: the defaults. The texts are borrowed. */
struct study_options {
    const char *cluster;         /* NULL: nothing to price collectives on */
    const char *placement;       /* of the ranks on it; NULL: they fill nodes */
    const char *beside;          /* another run, on the same network; NULL */
    const char *link, *quantile; /* of collectives' times */
    const char *stragglers;      /* how the GPUs' speeds differ */
    const char *delay, *delay_lib; /* what comes later; see playback/delay.h */
    const char *fit, *scale, *host_speed; /* of times; NULL: the defaults */
    const char *change;  /* of a replay: see job_changes_parse */
    const char *depends; /* an operation whose dependencies are listed */
    const char *fail_slower, *base;   /* of the step; NULL: not asked for */
    const char *input_max;            /* "[DIM=]N"; NULL: not given */
    const struct result_seeds *seeds; /* NULL: no --seeds */
    const char *step_mark;  /* the run's --step-mark; NULL: not given */
    uint32_t steps;         /* of the job that will be run; 0: not given */
    int host_times;         /* index in "typical|recorded" */
    bool whole_job;         /* the job is what was run */
    bool worst_batch;       /* of the data set, which was read */
    bool check_collectives; /* is a mismatch an error? */
    bool advice;

    /* What is made of timelines while they are simulated. */
    const char *kineto, *chakra; /* a file, a directory; NULL: none */
    bool whole_log;              /* each rank's is kept in the result */
    bool step_log;               /* a typical step's is */
    /* Told of each file that is written; NULL: nobody. */
    void (*written)(uint32_t rank, const char *path);
};

/* Can all of OPTIONS be read, and are they right together? Returns 0 or -1. */
int study_options_check(const struct study_options *options, struct err *err);

/* The quantile that OPTIONS ask for; 0: the mean. Returns 0 or -1. */
int study_quantile(const struct study_options *options, double *quantile,
                   struct err *err);

/* The factor of the host's times; 0: it takes none. Returns 0 or -1. */
int study_host_factor(const struct study_options *options, double *factor,
                      struct err *err);

#endif
