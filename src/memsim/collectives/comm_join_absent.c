/* SPDX-License-Identifier: Apache-2.0
 * Ranks that ran, and never made a communicator that another rank uses. */
#include <stdlib.h>

#include "common/base/xmalloc.h"
#include "memsim/collectives/comm_join_internal.h"

/* The log of RANK of the world; COMM_NONE: it did not run. */
static uint32_t log_of(const struct joining *j, uint32_t rank)
{
    for (uint32_t i = 0; i < j->job->log_count; i++)
        if (j->logs[i]->world > 1 && j->logs[i]->rank == rank)
            return i;
    return COMM_NONE;
}

/* Whether each rank of the world ran. */
static bool all_ran(const struct joining *j)
{
    uint32_t world = j->job->log_count ? j->logs[0]->world : 0;

    for (uint32_t r = 0; r < world; r++)
        if (log_of(j, r) == COMM_NONE)
            return false;
    return world > 1 && !j->classes;
}

/* Whether the communicator's RANK ran, and D lacks it. *LOG is its log, or
 * COMM_NONE where it is not known which rank of the world it is. */
static bool is_absent(const struct joining *j, const struct joined *d,
                      uint32_t rank, bool all, uint32_t *log)
{
    const struct comm *c = d->comm;

    *log = c->members ? log_of(j, c->members[rank]) : COMM_NONE;
    return !joined_has_rank(j, d, rank) &&
           (c->members ? *log != COMM_NONE : all);
}

static bool call_needs(const struct comm_log *log, const struct comm_call *c,
                       uint32_t rank)
{
    if (c->kind == COMM_ONE_SIDED)
        return false;
    for (uint32_t i = 0; i < c->part_count; i++)
        if (log->parts[c->part_first + i].peer == rank)
            return true;
    return c->kind != COMM_PAIR;
}

/* The first call of D's members that RANK, which OTHER is the log of, would
 * have to make, too. Returns whether there is one. */
static bool absent_find(struct joining *j, const struct joined *d,
                        uint32_t rank, uint32_t other)
{
    for (uint32_t i = 0; i < d->members; i++) {
        const struct member *m = &d->member[i];
        const struct comm_log *l = j->logs[m->log];
        uint64_t sequence = 0;
        for (uint32_t k = 0; k < l->call_count; k++) {
            if (l->calls[k].comm != m->comm)
                continue;
            if (call_needs(l, &l->calls[k], rank)) {
                mismatch_add(j, (struct comm_mismatch){
                                    .fault = COMM_MISSING,
                                    .log = m->log,
                                    .call = k,
                                    .rank = l->comms[m->comm].rank,
                                    .other = other,
                                    .other_call = COMM_NONE,
                                    .other_rank = rank,
                                    .sequence = sequence,
                                });
                return true;
            }
            sequence++;
        }
    }
    return false;
}

void absent_join(struct joining *j)
{
    bool all = all_ran(j);
    uint32_t log;

    for (size_t i = 0; i < j->joined_count; i++) {
        const struct joined *d = &j->joined[i];
        if (!d->members || d->comm->guessed || d->members >= d->comm->ranks ||
            j->logs[d->member[0].log]->imported)
            continue;
        for (uint32_t r = 0; r < d->comm->ranks; r++)
            if (is_absent(j, d, r, all, &log) && absent_find(j, d, r, log))
                break;
    }
}
