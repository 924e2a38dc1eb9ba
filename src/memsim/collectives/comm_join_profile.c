/* SPDX-License-Identifier: Apache-2.0
 * Profiles of several ranks. */
#include <stdlib.h>

#include "common/base/xmalloc.h"
#include "memsim/collectives/comm_align.h"
#include "memsim/collectives/comm_join_internal.h"

/* The calls of member M of a communicator; to be freed. */
static struct comm_call *calls_of(const struct joining *j,
                                  const struct member *m, size_t *count)
{
    const struct comm_log *l = j->logs[m->log];
    struct comm_call *calls = xcalloc(l->call_count + 1, sizeof *calls);

    *count = 0;
    for (size_t i = 0; i < l->call_count; i++)
        if (l->calls[i].comm == m->comm)
            calls[(*count)++] = l->calls[i];
    return calls;
}

/* Finds the clocks of D's members by that of one that is known. */
static void clocks_join(struct joining *j, const struct joined *d,
                        const int64_t *clock)
{
    uint32_t known = 0;

    while (known < d->members && !j->clock_known[d->member[known].log])
        known++;
    if (known == d->members)
        return;
    int64_t base = j->clocks[d->member[known].log] - clock[known];
    for (uint32_t i = 0; i < d->members; i++) {
        uint32_t log = d->member[i].log;
        if (!j->clock_known[log])
            j->clocks[log] = base + clock[i];
        j->clock_known[log] = true;
    }
}

static void profile_align(struct joining *j, const struct joined *d)
{
    int64_t *shift = xcalloc(d->members, sizeof *shift), least = 0;
    int64_t *clock = xcalloc(d->members, sizeof *clock);
    size_t first_count, count;
    struct comm_call *first = calls_of(j, &d->member[0], &first_count);

    for (uint32_t i = 1; i < d->members; i++) {
        struct comm_call *calls = calls_of(j, &d->member[i], &count);
        shift[i] = comm_align(first, first_count, calls, count, &clock[i]);
        least = shift[i] < least ? shift[i] : least;
        free(calls);
    }
    for (uint32_t i = 0; i < d->members; i++)
        j->shifts[d->member[i].log][d->member[i].comm] =
            (uint64_t)(shift[i] - least);
    clocks_join(j, d, clock);
    free(first);
    free(shift);
    free(clock);
}

/* Has a profile times of M's calls? What memsim puts into one begins where all
 * ranks do. */
static bool is_measured(const struct joining *j, const struct member *m)
{
    size_t count;
    struct comm_call *calls = calls_of(j, m, &count);
    bool measured = count && calls[0].duration_ns;

    free(calls);
    return measured;
}

void profiles_align(struct joining *j)
{
    for (uint32_t i = 0; i < j->job->log_count; i++)
        j->shifts[i] =
            xcalloc(j->logs[i]->comm_count + 1, sizeof *j->shifts[i]);
    if (j->job->log_count)
        j->clock_known[0] = true;
    for (size_t i = 0; i < j->joined_count; i++)
        if (j->joined[i].members > 1 &&
            j->logs[j->joined[i].member[0].log]->imported &&
            is_measured(j, &j->joined[i].member[0]))
            profile_align(j, &j->joined[i]);
}

/* When the logs begin, on one clock; of what was recorded by memsim nothing is
 * known, and all begin at once. */
void starts_find(struct joining *j)
{
    struct comm_job *job = j->job;
    int64_t least = INT64_MAX;

    for (size_t i = 0; i < job->log_count; i++) {
        int64_t ns = (int64_t)j->logs[i]->first_ns + j->clocks[i];
        least = j->clock_known[i] && ns < least ? ns : least;
    }
    for (size_t i = 0; i < job->log_count; i++)
        if (j->logs[i]->imported && j->clock_known[i])
            job->start_ns[i] = (uint64_t)((int64_t)j->logs[i]->first_ns +
                                          j->clocks[i] - least);
}

static int64_t call_start(const struct joining *j, uint32_t log,
                          const struct comm_call *c)
{
    return (int64_t)c->start_ns + j->clocks[log];
}

/* What C, of the log L, takes if it ended NS after the last rank had come.
 * Ranks of a real run may have run one after another (memsim emulate): none
 * waited. */
static uint64_t last_of(const struct comm_log *l, const struct comm_call *c,
                        int64_t ns)
{
    if (ns > 0)
        return (uint64_t)ns;
    return l->imported || !c->duration_ns ? 1 : c->duration_ns;
}

/* How long each member of a meet lasts after the last one has come. */
void lasts_find(struct joining *j)
{
    struct comm_job *job = j->job;

    for (uint32_t i = 0; i < job->log_count; i++)
        for (size_t k = 0; k < j->logs[i]->call_count; k++) {
            uint32_t meet = job->meets_of[i][k];
            int64_t ns = call_start(j, i, &j->logs[i]->calls[k]);
            if (meet != COMM_NONE && ns > job->meets[meet].last_ns)
                job->meets[meet].last_ns = ns;
        }
    for (uint32_t i = 0; i < job->log_count; i++)
        for (size_t k = 0; k < j->logs[i]->call_count; k++) {
            const struct comm_call *c = &j->logs[i]->calls[k];
            uint32_t meet = job->meets_of[i][k];
            if (meet == COMM_NONE)
                continue;
            int64_t ns = call_start(j, i, c) + (int64_t)c->duration_ns -
                         job->meets[meet].last_ns;
            job->lasts_of[i][k] = last_of(j->logs[i], c, ns);
        }
}
