/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/collectives/batch_groups.h"

#include <stdlib.h>

#include "common/base/xmalloc.h"
#include "memsim/collectives/comm_siblings.h"

/* Less is no activation, but a loss or a count that is averaged. */
#define ACTIVATION_BYTES 4096

struct grouping {
    const struct comm_log *const *logs;
    size_t count;
    const struct comm_classes *classes;
    uint32_t world;
    uint32_t *parent; /* by rank of the world: a forest */
};

static uint32_t root_of(const struct grouping *g, uint32_t rank)
{
    while (g->parent[rank] != rank)
        rank = g->parent[rank] = g->parent[g->parent[rank]];
    return rank;
}

static void ranks_join(const struct grouping *g, int64_t one, int64_t other)
{
    if (one < 0 || other < 0 || one >= g->world || other >= g->world)
        return;
    uint32_t a = root_of(g, (uint32_t)one), b = root_of(g, (uint32_t)other);
    g->parent[a > b ? a : b] = a > b ? b : a;
}

static bool is_forward(const struct comm_call *call)
{
    return call->phase == TRACE_PHASE_FORWARD && call->bytes > ACTIVATION_BYTES;
}

/* Does CALL reduce activations over its communicator? FSDP gathers in forward,
 * and reduces in backward. */
static bool call_reduces(const struct comm_call *call)
{
    return is_forward(call) && (call->kind == COMM_ALL_REDUCE ||
                                call->kind == COMM_REDUCE_SCATTER);
}

/* All groups that C, of a log, stands for. */
static void comm_join_all(const struct grouping *g, const struct comm *c)
{
    int64_t *shifts;
    size_t count = comm_siblings(c, g->classes, &shifts);

    for (size_t i = 0; i < count; i++)
        for (uint32_t k = 1; k < c->ranks; k++)
            ranks_join(g, c->members[0] + shifts[i], c->members[k] + shifts[i]);
    free(shifts);
}

/* The one rank of C that CALL sends to, or gets from; COMM_NONE: several, or it
 * does both, as a ring of context parallelism does. */
static uint32_t next_stage(const struct comm_log *log,
                           const struct comm_call *call)
{
    const struct op_part *first = &log->parts[call->part_first];

    for (uint32_t i = 1; i < call->part_count; i++)
        if (first[i].peer != first->peer || first[i].receive != first->receive)
            return COMM_NONE;
    return call->part_count ? first->peer : COMM_NONE;
}

static void stages_join(const struct grouping *g, const struct comm *c,
                        uint32_t peer)
{
    uint32_t rank = c->members[c->rank];
    int64_t *shifts;
    size_t count = comm_rank_siblings(rank, g->classes, &shifts);

    for (size_t i = 0; i < count; i++)
        ranks_join(g, rank + shifts[i], c->members[peer] + shifts[i]);
    free(shifts);
}

static void log_join(const struct grouping *g, const struct comm_log *log)
{
    bool *done = xcalloc(log->comm_count + 1, sizeof *done);
    uint32_t last_comm = COMM_NONE, last_peer = COMM_NONE;

    for (size_t i = 0; i < log->call_count; i++) {
        const struct comm_call *call = &log->calls[i];
        const struct comm *c = &log->comms[call->comm];
        if (!c->members || c->ranks < 2)
            continue;
        if (call_reduces(call) && !done[call->comm]) {
            comm_join_all(g, c);
            done[call->comm] = true;
        }
        if (call->kind != COMM_PAIR || !is_forward(call))
            continue;
        uint32_t peer = next_stage(log, call);
        if (peer >= c->ranks || (peer == last_peer && call->comm == last_comm))
            continue;
        stages_join(g, c, peer);
        last_peer = peer;
        last_comm = call->comm;
    }
    free(done);
}

/* The log of the rank that stands for RANK; COUNT: none. */
static size_t log_of(const struct grouping *g, const size_t *log_at,
                     uint32_t rank)
{
    uint32_t stands = g->classes ? g->classes->stands[rank] : rank;

    return stands < g->world ? log_at[stands] : g->count;
}

/* Each group is counted where its batch is known best. */
static uint64_t groups_count(const struct grouping *g, const size_t *log_at,
                             const unsigned *knows, uint64_t *groups)
{
    size_t *best = xcalloc((size_t)g->world + 1, sizeof *best);
    uint64_t found = 0;
    bool whole = true;

    for (uint32_t r = 0; r < g->world; r++)
        best[r] = g->count;
    for (uint32_t r = 0; r < g->world; r++) {
        size_t log = log_of(g, log_at, r), *at = &best[root_of(g, r)];
        if (log < g->count && knows[log] &&
            (*at == g->count || knows[log] > knows[*at]))
            *at = log;
    }
    for (uint32_t r = 0; r < g->world; r++) {
        if (root_of(g, r) != r)
            continue;
        if (best[r] < g->count)
            groups[best[r]]++;
        whole &= best[r] < g->count;
        found++;
    }
    free(best);
    return whole ? found : 0;
}

uint64_t batch_groups(const struct comm_log *const *logs, size_t count,
                      const struct comm_classes *classes,
                      const unsigned *knows, uint64_t *groups)
{
    struct grouping g = {logs, count, classes, classes ? classes->world : 0,
                         NULL};

    for (size_t i = 0; i < count; i++) {
        groups[i] = 0;
        if (!classes && logs[i]->world > g.world)
            g.world = logs[i]->world;
    }
    g.parent = xcalloc((size_t)g.world + 1, sizeof *g.parent);
    size_t *log_at = xcalloc((size_t)g.world + 1, sizeof *log_at);
    for (uint32_t r = 0; r < g.world; r++) {
        g.parent[r] = r;
        log_at[r] = count;
    }
    for (size_t i = count; i-- > 0;)
        if (logs[i]->rank < g.world)
            log_at[logs[i]->rank] = i;
    for (size_t i = 0; i < count; i++)
        log_join(&g, logs[i]);
    uint64_t found = groups_count(&g, log_at, knows, groups);
    free(log_at);
    free(g.parent);
    return found;
}
