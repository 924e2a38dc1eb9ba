/* SPDX-License-Identifier: Apache-2.0
 * What the profiler took of the host's time. It works at each operator and at
 * each call of CUDA that it records, so that a profiled host is slower:
 *
 *     call ..[op[op]]..[op]..[call]     three operators and a call
 *
 * On 20 jobs with an H200 whose hosts were timed with and without it, an
 * operator cost 1.8 to 9 us, in the median 0.7 of what a launch took in the
 * same profile, which is slow where the machine is; a call little (0.6 us
 * where one of cuDNN's launches a thousand); and the profiler took 46% of the
 * host's time in the median (18 to 57%). An operator counts as a launch, but
 * not more than a share of the time between two calls. That share was chosen
 * on these jobs (bench/profile_jobs). */
#include "memsim/import/profile.h"

#include <stdlib.h>

#include "common/base/xmalloc.h"

#define SHARE_MOST 0.68
#define CALL_PART  10 /* a call costs so much less than an operator */

static int compare_ns(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* The median time of a launch's call; 0: there is none. */
static int64_t launch_ns(const struct profile *p)
{
    int64_t *all = xcalloc(p->calls_count + 1, sizeof *all), median;
    size_t count = 0;

    for (size_t i = 0; i < p->calls_count; i++)
        if (strstr(p->names[p->calls[i].name], "LaunchKernel"))
            all[count++] = p->calls[i].duration_ns;
    qsort(all, count, sizeof *all, compare_ns);
    median = count ? all[count / 2] : 0;
    free(all);
    return median;
}

/* When CALL's thread was free to go on to it. */
static int64_t from_ns(const struct profile *p, const struct profile_call *call)
{
    const struct profile_call *before =
        call->previous == PROFILE_NONE ? NULL : &p->calls[call->previous];
    int64_t from = !before                         ? call->start_ns
                   : before->waits != PROFILE_NONE ? profile_call_end(before)
                                                   : before->start_ns;

    if (call->join != PROFILE_NONE &&
        profile_call_end(&p->calls[call->join]) > from)
        from = profile_call_end(&p->calls[call->join]);
    return from < call->start_ns ? from : call->start_ns;
}

/* The sum on a thread, and its operators since its last call. */
struct thread_cost {
    int64_t profiler_ns;
    uint64_t operators;
};

static void call_cost(struct profile *p, struct profile_call *call,
                      struct thread_cost *thread)
{
    int64_t passed = call->start_ns - from_ns(p, call);
    int64_t most = (int64_t)(SHARE_MOST * (double)passed);
    int64_t cost = p->operator_ns * (int64_t)thread->operators +
                   p->operator_ns / CALL_PART;

    if (call->polled) /* it waited */
        passed = most = 0;
    cost = cost < most ? cost : most;
    p->host_ns += passed;
    p->profiler_ns += cost;
    thread->profiler_ns += cost;
    thread->operators = 0;
    call->profiler_ns = thread->profiler_ns;
}

void profile_link_cost(struct profile *p)
{
    struct thread_cost *threads =
        xcalloc(p->threads_count + 1, sizeof *threads);
    size_t at = 0;

    /* without operators it is no profile of PyTorch's */
    p->operator_ns = p->operators_count ? launch_ns(p) : 0;
    for (size_t i = 0; i < p->calls_count; i++) {
        struct profile_call *call = &p->calls[i];
        for (; at < p->operators_count &&
               p->operators[at].start_ns <= call->start_ns;
             at++)
            threads[p->operators[at].thread].operators++;
        call_cost(p, call, &threads[call->thread]);
    }
    free(threads);
}
