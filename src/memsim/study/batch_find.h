/* SPDX-License-Identifier: Apache-2.0
 * Runs a command with one batch after another, or with several at a time. */
#ifndef MEMSIM_MEMSIM_STUDY_BATCH_FIND_H
#define MEMSIM_MEMSIM_STUDY_BATCH_FIND_H

#include <stdbool.h>
#include <stdint.h>

#include "memsim/report/text/batch_report.h"
#include "memsim/run/job.h"

#define BATCH_FIND_TO 65536 /* the largest batch that is tried */

struct batch_run;

/* Who watches a search. Each may be NULL. */
struct batch_watch {
    void (*runs)(void *context, uint64_t batch); /* 0: no run any more */
    void (*outcome)(void *context, const struct batch_outcome *outcome);
    void (*failed)(void *context, int output); /* a file: what a run printed */
    void *context;
};

struct batch_find {
    struct job job; /* its command is the report's, filled in */
    struct launch_options launch;
    char *programs; /* memsim's own files */
    char *cache;    /* NULL: nothing is kept */
    uint32_t steps; /* of the job, which has to last them; 0: not known */
    uint32_t jobs;  /* at a time; 0 is 1 */
    struct batch_watch watch;
    struct batch_report report; /* with a search that has begun */
    struct batch_run **runs;    /* its own, as all behind it */
    size_t run_count, run_capacity;
};

/* Searches to the end, or to a run that fails for another reason than memory.
 * Returns 0, or memsim's exit status with ERR set. */
int batch_find_run(struct batch_find *f, struct err *err);
void batch_find_fini(struct batch_find *f);

/* The largest batch with which TEMPLATE, a command with {}, fits on JOB's GPUs,
 * as `memsim fit-batch' would find it; its runs are kept for that. 0: none fits
 * or, with ERR set, it is not known. */
uint64_t batch_find_largest(const struct job *job, char *const *template,
                            struct err *err);

#endif
