/* SPDX-License-Identifier: Apache-2.0 */
#include "fitting/fit_jobs.h"

#include <math.h>
#include <stdlib.h>

#include "check.h"

#define JOBS 6

/* COUNT launches of each of JOBS jobs, of which job J is off by VALUES[J]. */
static double factor_of(const double values[JOBS], uint32_t jobs)
{
    struct job_ratio all[JOBS * 5];
    size_t count = 0;

    for (uint32_t job = 0; job < jobs; job++)
        for (unsigned i = 0; i < 5; i++)
            all[count++] = (struct job_ratio){
                job, 1000 * (i + 1), values[job] * (1 + 0.01 * i)};
    return fit_jobs_factor(all, count, jobs);
}

TEST(a_factor_holds_for_six_jobs_that_agree)
{
    const double slow[JOBS] = {1.5, 1.4, 1.5, 1.6, 1.5, 1.4};
    double factor = factor_of(slow, JOBS);

    /* drawn to 1: 6 of 7 parts of the median's logarithm */
    CHECK(factor > pow(1.4, 6 / 7.0) && factor < pow(1.6, 6 / 7.0));
    CHECK(!(factor_of(slow, 5) > 0));
    CHECK(!(factor_of(slow, 1) > 0));
    CHECK(!(factor_of(slow, 0) > 0));
}

TEST(no_factor_where_a_job_is_off_to_the_other_side)
{
    const double mixed[JOBS] = {1.5, 1.4, 0.9, 1.6, 1.5, 1.4};
    /* the same side, but the others' factor would make the last job worse */
    const double far[JOBS] = {3, 3, 3, 3, 3, 1.02};

    CHECK(!(factor_of(mixed, JOBS) > 0));
    CHECK(!(factor_of(far, JOBS) > 0));
}

/* Traces 0 and 1 have two of three launches in common, trace 2 none. */
TEST(traces_that_share_launches_are_of_one_job)
{
    struct trace_kernel kernels[] = {
        {.trace = 0}, {.trace = 0}, {.trace = 0}, {.trace = 1}, {.trace = 1},
        {.trace = 1}, {.trace = 1}, {.trace = 2}, {.trace = 2}};
    const uint64_t keys[] = {7, 8, 9, 8, 7, 7, 11, 12, 13};
    const struct trace_ops ops = {.kernels = kernels, .count = 9, .traces = 3};
    uint32_t jobs, *job = fit_jobs_make(&ops, keys, &jobs);

    CHECK_UINT(jobs, 2);
    CHECK_UINT(job[0], 0);
    CHECK_UINT(job[1], 0);
    CHECK_UINT(job[2], 1);
    free(job);
}
