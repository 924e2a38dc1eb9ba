/* SPDX-License-Identifier: Apache-2.0
 * Sends and receives. */
#include <stdlib.h>

#include "common/base/xmalloc.h"
#include "memsim/collectives/comm_join_internal.h"

static void halves_add(struct joining *j, uint32_t log, uint32_t call,
                       struct map *counts)
{
    const struct comm_call *c = &j->logs[log]->calls[call];
    uint32_t own = j->logs[log]->comms[c->comm].rank;

    for (uint32_t i = 0; i < c->part_count; i++) {
        const struct op_part *part = &j->logs[log]->parts[c->part_first + i];
        uint64_t key = 1 + part->receive + ((uint64_t)part->peer << 1) +
                       ((uint64_t)c->comm << 34);
        uintptr_t n = (uintptr_t)map_get(counts, key);
        map_put(counts, key, (void *)(n + 1));
        xgrow(&j->halves, j->half_count, &j->half_capacity,
              sizeof *j->halves);
        j->halves[j->half_count++] = (struct half){
            .joined = j->joined_of[log][c->comm],
            .source = part->receive ? part->peer : own,
            .target = part->receive ? own : part->peer,
            .receive = part->receive,
            .log = log,
            .call = call,
            .rank = own,
            .n = n,
            .bytes = part->bytes,
        };
    }
}

#define COMPARE(field)                                                         \
    if (x->field != y->field)                                                  \
    return x->field < y->field ? -1 : 1

static int half_compare(const void *a, const void *b)
{
    const struct half *x = a, *y = b;

    COMPARE(joined);
    COMPARE(source);
    COMPARE(target);
    COMPARE(n);
    COMPARE(receive);
    return 0;
}

static bool is_pair(const struct half *a, const struct half *b)
{
    return a->joined == b->joined && a->source == b->source &&
           a->target == b->target && a->n == b->n && !a->receive && b->receive;
}

static uint64_t call_bytes(const struct joining *j, const struct half *h)
{
    const struct comm_call *c = &j->logs[h->log]->calls[h->call];
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < c->part_count; i++)
        bytes += j->logs[h->log]->parts[c->part_first + i].bytes;
    return bytes;
}

/* The meet of H's call, which is made where there is none. */
static uint32_t half_meet(struct joining *j, const struct half *h)
{
    uint32_t *meet = &j->job->meets_of[h->log][h->call];

    if (*meet == COMM_NONE)
        *meet = meet_add(j->job, COMM_PAIR, 1);
    return *meet;
}

static void exchange_add(struct joining *j, const struct half *a,
                         const struct half *b)
{
    struct comm_job *job = j->job;

    xgrow(&job->pairs, job->pair_count, &job->pair_capacity,
          sizeof *job->pairs);
    job->pairs[job->pair_count++] = (struct comm_pair){
        .meet = half_meet(j, a),
        .other = half_meet(j, b),
        .bytes = a->bytes,
        .whole = call_bytes(j, a),
        .other_whole = call_bytes(j, b),
    };
}

static void pair_join(struct joining *j, const struct half *a,
                      const struct half *b)
{
    if (a->log != b->log || a->call != b->call) {
        exchange_add(j, a, b);
        exchange_add(j, b, a);
    }
    if (a->bytes != b->bytes)
        mismatch_add(j, (struct comm_mismatch){
                            .fault = COMM_SIZE,
                            .log = a->log,
                            .call = a->call,
                            .rank = a->rank,
                            .other = b->log,
                            .other_call = b->call,
                            .other_rank = b->rank,
                            .sequence = a->n,
                        });
}

/* The other one has a trace, but makes no such call. */
static void half_alone(struct joining *j, const struct half *h, bool *told)
{
    const struct joined *d = &j->joined[h->joined];
    uint32_t peer = h->receive ? h->source : h->target;

    for (uint32_t i = 0; i < d->members; i++) {
        const struct member *m = &d->member[i];
        if (j->logs[m->log]->comms[m->comm].rank != peer || *told)
            continue;
        *told = true;
        mismatch_add(j, (struct comm_mismatch){
                            .fault = COMM_MISSING,
                            .log = h->log,
                            .call = h->call,
                            .rank = h->rank,
                            .other = m->log,
                            .other_call = COMM_NONE,
                            .other_rank = peer,
                            .sequence = h->n,
                        });
    }
}

static void halves_join(struct joining *j)
{
    bool told = false; /* of a pair, once */

    if (j->half_count)
        qsort(j->halves, j->half_count, sizeof *j->halves, half_compare);
    for (size_t i = 0; i < j->half_count; i++) {
        const struct half *h = &j->halves[i];
        if (!i || h[-1].joined != h->joined || h[-1].source != h->source ||
            h[-1].target != h->target)
            told = false;
        if (i + 1 < j->half_count && is_pair(h, h + 1))
            pair_join(j, h, &j->halves[++i]);
        else
            half_alone(j, h, &told);
    }
}

static uint32_t peers_of(const struct joining *j, uint32_t log, uint32_t call)
{
    const struct comm_call *c = &j->logs[log]->calls[call];
    const struct op_part *parts = &j->logs[log]->parts[c->part_first];
    uint32_t peers = 0;

    for (uint32_t i = 0; i < c->part_count && peers < 3; i++) {
        bool seen = false;
        for (uint32_t k = 0; k < i; k++)
            seen |= parts[k].peer == parts[i].peer;
        peers += !seen;
    }
    return peers;
}

static int pair_compare(const void *a, const void *b)
{
    const struct comm_pair *x = a, *y = b;

    COMPARE(meet);
    COMPARE(other);
    return 0;
}

/* Sorts the exchanges, of two calls one, and tells the meets where theirs are.
 */
static void exchanges_sort(struct comm_job *job)
{
    size_t kept = 0;

    if (job->pair_count)
        qsort(job->pairs, job->pair_count, sizeof *job->pairs, pair_compare);
    for (size_t i = 0; i < job->pair_count; i++) {
        struct comm_pair *p = &job->pairs[i];
        if (kept && !pair_compare(&job->pairs[kept - 1], p)) {
            job->pairs[kept - 1].bytes += p->bytes;
            continue;
        }
        struct comm_meet *m = &job->meets[p->meet];
        if (!m->pair_count++)
            m->pair_first = kept;
        job->pairs[kept++] = *p;
    }
    job->pair_count = kept;
}

static void neighbours_find(struct joining *j)
{
    for (uint32_t i = 0; i < j->job->log_count; i++)
        for (uint32_t k = 0; k < j->logs[i]->call_count; k++)
            if (j->logs[i]->calls[k].kind == COMM_PAIR &&
                j->job->meets_of[i][k] != COMM_NONE)
                j->job->meets[j->job->meets_of[i][k]].neighbour =
                    peers_of(j, i, k) <= 2;
}

void pairs_join(struct joining *j)
{
    for (uint32_t i = 0; i < j->job->log_count; i++) {
        struct map counts = {0};
        for (uint32_t k = 0; k < j->logs[i]->call_count; k++)
            if (j->logs[i]->calls[k].kind == COMM_PAIR)
                halves_add(j, i, k, &counts);
        map_fini(&counts);
    }
    halves_join(j);
    exchanges_sort(j->job);
    neighbours_find(j);
}
