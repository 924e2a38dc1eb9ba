/* SPDX-License-Identifier: Apache-2.0 */
#include "fitting/fit_jobs.h"

#include <math.h>
#include <stdlib.h>

#include "common/base/xmalloc.h"

#define CHANCE 0.05 /* of a correction that is none */

/* --- jobs ----------------------------------------------------------------- */

struct launch {
    uint32_t trace;
    uint64_t key;
};

static int compare_launches(const void *a, const void *b)
{
    const struct launch *x = a, *y = b;

    if (x->trace != y->trace)
        return x->trace < y->trace ? -1 : 1;
    return (x->key > y->key) - (x->key < y->key);
}

/* Every launch of each trace once, in order; *FIRST are where traces begin. */
static struct launch *launches_make(const struct trace_ops *ops,
                                    const uint64_t *keys, size_t *first)
{
    struct launch *all = xcalloc(ops->count + 1, sizeof *all);
    size_t count = 0;

    for (size_t i = 0; i < ops->count; i++)
        all[i] = (struct launch){ops->kernels[i].trace, keys[i]};
    qsort(all, ops->count, sizeof *all, compare_launches);
    for (size_t i = 0; i < ops->count; i++)
        if (!count || compare_launches(&all[i], &all[count - 1]))
            all[count++] = all[i];
    for (size_t trace = 0, i = 0; trace <= ops->traces; trace++) {
        while (i < count && all[i].trace < trace)
            i++;
        first[trace] = i;
    }
    return all;
}

/* Do the launches [A, A_END) and [B, B_END) have half of the fewer in common?
 */
static bool are_alike(const struct launch *all, size_t a, size_t a_end,
                      size_t b, size_t b_end)
{
    size_t least = a_end - a < b_end - b ? a_end - a : b_end - b, common = 0;

    while (a < a_end && b < b_end) {
        if (all[a].key == all[b].key)
            common++;
        if (all[a].key <= all[b].key)
            a++;
        else
            b++;
    }
    return least && 2 * common >= least;
}

uint32_t *fit_jobs_make(const struct trace_ops *ops, const uint64_t *keys,
                        uint32_t *jobs)
{
    uint32_t *job = xcalloc(ops->traces + 1, sizeof *job);
    size_t *first = xcalloc(ops->traces + 2, sizeof *first);
    struct launch *all = launches_make(ops, keys, first);

    *jobs = 0;
    for (size_t i = 0; i < ops->traces; i++) {
        size_t j = 0;
        while (j < i && !are_alike(all, first[i], first[i + 1], first[j],
                                   first[j + 1]))
            j++;
        job[i] = j < i ? job[j] : (*jobs)++;
    }
    free(first);
    free(all);
    return job;
}

/* --- what holds for other jobs -------------------------------------------- */

static int compare_values(const void *a, const void *b)
{
    const struct job_ratio *x = a, *y = b;

    return (x->value > y->value) - (x->value < y->value);
}

/* The chance that of COUNT fair coins at least MOST fall alike. */
static double chance_alike(size_t count, size_t most)
{
    double log_one = -(double)count * log(2), sum = 0;

    for (size_t k = most; k <= count; k++)
        sum += exp(log_one + lgamma((double)count + 1) - lgamma((double)k + 1) -
                   lgamma((double)(count - k) + 1));
    return fmin(1, 2 * sum);
}

/* The median of the ratios of JOB, or of all others, among ALL, which ascend.
 * 0: there are none. */
static double median_of(const struct job_ratio *all, size_t count, uint32_t job,
                        bool others)
{
    size_t some = 0, at = 0;

    for (size_t i = 0; i < count; i++)
        some += (all[i].job != job) == others;
    for (size_t i = 0; i < count; i++)
        if ((all[i].job != job) == others && at++ == some / 2)
            return all[i].value;
    return 0;
}

/* The sum of |predicted - measured| of JOB, with FACTOR on the predictions. */
static double error_of(const struct job_ratio *all, size_t count, uint32_t job,
                       double factor)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        if (all[i].job == job)
            sum += fabs(factor * all[i].ns / all[i].value - all[i].ns);
    return sum;
}

double fit_jobs_factor(struct job_ratio *all, size_t count, uint32_t jobs)
{
    uint32_t seen = 0, below = 0;

    qsort(all, count, sizeof *all, compare_values);
    for (uint32_t job = 0; job < jobs; job++) {
        double own = median_of(all, count, job, false);
        double others = median_of(all, count, job, true);
        if (!(own > 0))
            continue; /* it has no such launch */
        seen++;
        below += own < 1;
        if (!(others > 0) || error_of(all, count, job, others) >=
                                 error_of(all, count, job, 1))
            return 0;
    }
    if (!seen || chance_alike(seen, below > seen - below ? below
                                                         : seen - below) >
                     CHANCE)
        return 0;
    return pow(all[count / 2].value, (double)seen / (seen + 1));
}
