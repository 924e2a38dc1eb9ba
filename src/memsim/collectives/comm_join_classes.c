/* SPDX-License-Identifier: Apache-2.0
 * Ranks that stand for others. With pipeline stages of 8 ranks each and two
 * ranks that run, 0 and 15, the communicator of ranks 0 and 8 and that of ranks
 * 7 and 15 are each known to one of them. Both have a rank of the first stage's
 * class and one of the second's: they are one, as if 0 and 15 were in it. */
#include <stdlib.h>

#include "common/base/xmalloc.h"
#include "memsim/collectives/comm_join_internal.h"

/* Of the classes of C's ranks, in their order; 0: they are not known. */
static uint64_t classes_hash(const struct joining *j, const struct comm *c)
{
    uint64_t h = c->ranks + UINT64_C(0xcbf29ce484222325);

    if (!c->members)
        return 0;
    for (uint32_t i = 0; i < c->ranks; i++) {
        uint32_t rank = c->members[i];
        if (rank >= j->classes->world || j->classes->stands[rank] == COMM_NONE)
            return 0;
        h = (h ^ (j->classes->stands[rank] + 1)) * UINT64_C(0x100000001b3);
    }
    return h ? h : 1;
}

static bool is_disjoint(const struct joining *j, const struct joined *a,
                        const struct joined *b)
{
    for (uint32_t i = 0; i < a->members; i++)
        for (uint32_t k = 0; k < b->members; k++) {
            const struct member *x = &a->member[i], *y = &b->member[k];
            if (x->log == y->log || j->logs[x->log]->comms[x->comm].rank ==
                                        j->logs[y->log]->comms[y->comm].rank)
                return false;
        }
    return true;
}

/* FROM's members become TO's. */
static void joined_merge(struct joining *j, uint32_t to, uint32_t from)
{
    struct joined *d = &j->joined[to], *e = &j->joined[from];

    for (uint32_t i = 0; i < e->members; i++) {
        xgrow(&d->member, d->members, &d->member_capacity, sizeof *d->member);
        d->member[d->members++] = e->member[i];
        j->joined_of[e->member[i].log][e->member[i].comm] = to;
    }
    e->members = 0;
}

/* One more with this HASH in LOG: the key of its place among them. */
static uint64_t place_key(struct map *counts, uint64_t hash)
{
    uintptr_t n = (uintptr_t)map_get(counts, hash);

    map_put(counts, hash, (void *)(n + 1));
    return hash + n * UINT64_C(0x9e3779b97f4a7c15);
}

void classes_merge(struct joining *j)
{
    struct map known = {0}; /* index + 1 of a joined, by key */

    for (uint32_t log = 0; log < j->job->log_count; log++) {
        struct map counts = {0};
        for (uint32_t c = 0; c < j->logs[log]->comm_count; c++) {
            const struct comm *comm = &j->logs[log]->comms[c];
            uint32_t own = j->joined_of[log][c];
            uint64_t hash = classes_hash(j, comm);
            if (!hash)
                continue;
            uint64_t key = place_key(&counts, hash);
            uintptr_t at = (uintptr_t)map_get(&known, key);
            if (!at)
                map_put(&known, key, (void *)((uintptr_t)own + 1));
            else if (at - 1 != own && j->joined[own].members < comm->ranks &&
                     is_disjoint(j, &j->joined[at - 1], &j->joined[own]))
                joined_merge(j, (uint32_t)at - 1, own);
        }
        map_fini(&counts);
    }
    map_fini(&known);
}
