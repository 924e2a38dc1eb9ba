/* SPDX-License-Identifier: Apache-2.0
 * What one job says of another: a correction of the models that is found in
 * some jobs' traces is worth something for others only if it made the prices of
 * each of these jobs better that was left out of it. */
#ifndef MEMSIM_FITTING_FIT_JOBS_H
#define MEMSIM_FITTING_FIT_JOBS_H

#include <stdbool.h>

#include "fitting/trace_ops.h"

/* A launch: its measured time, and that over the predicted one. */
struct job_ratio {
    uint32_t job;
    double ns, value;
};

/* The job of each trace of OPS, 0, 1, 2 ...: traces of which the one has at
 * least half of the other's launches are of one job, such as its ranks. KEYS
 * are the launches of OPS's kernels. *JOBS is their number; to be freed. */
uint32_t *fit_jobs_make(const struct trace_ops *ops, const uint64_t *keys,
                        uint32_t *jobs);

/* The factor on predictions for jobs that are not among the JOBS of ALL: their
 * median, drawn to 1 as by one more job of which the models are right. 0: the
 * models are off to different sides in so many jobs that chance explains it (a
 * sign test at 5%, which needs 6 jobs at least: the launches of one job are not
 * independent), or the others' median makes a job's prices no better.
 * Puts ALL in order of their values. */
double fit_jobs_factor(struct job_ratio *all, size_t count, uint32_t jobs);

#endif
