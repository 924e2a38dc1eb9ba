/* SPDX-License-Identifier: Apache-2.0
 * Sends and receives. */
#include <stdlib.h>

#include "common/base/xmalloc.h"
#include "memsim/cluster/comm_join_internal.h"

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

static uint32_t group_first(const struct joining *j, uint32_t call)
{
    while (j->together[call] != call)
        call = j->together[call] = j->together[j->together[call]];
    return call;
}

static uint32_t call_number(const struct joining *j, const struct half *h)
{
    return (uint32_t)(j->offsets[h->log] + h->call);
}

static void pair_join(struct joining *j, const struct half *a,
                      const struct half *b)
{
    uint32_t x = group_first(j, call_number(j, a));
    uint32_t y = group_first(j, call_number(j, b));

    j->together[x < y ? y : x] = x < y ? x : y;
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

/* A meet for each group of more than one. */
static void pairs_meet(struct joining *j, size_t calls)
{
    uint32_t *size = xcalloc(calls + 1, sizeof *size);
    uint32_t *meet = xcalloc(calls + 1, sizeof *meet);

    for (uint32_t i = 0; i < calls; i++)
        size[group_first(j, i)]++;
    for (uint32_t log = 0; log < j->job->log_count; log++)
        for (uint32_t k = 0; k < j->logs[log]->call_count; k++) {
            uint32_t first = group_first(j, (uint32_t)j->offsets[log] + k);
            const struct comm_call *c = &j->logs[log]->calls[k];
            if (c->kind != COMM_PAIR || size[first] < 2)
                continue;
            if (!meet[first]) {
                meet[first] = meet_add(j->job, COMM_PAIR, size[first]) + 1;
                j->job->meets[meet[first] - 1].neighbour = true;
            }
            struct comm_meet *m = &j->job->meets[meet[first] - 1];
            m->neighbour = m->neighbour && peers_of(j, log, k) <= 2;
            j->job->meets_of[log][k] = meet[first] - 1;
        }
    free(size);
    free(meet);
}

void pairs_join(struct joining *j)
{
    size_t calls = 0;

    for (uint32_t i = 0; i < j->job->log_count; i++) {
        struct map counts = {0};
        j->offsets[i] = calls;
        calls += j->logs[i]->call_count;
        for (uint32_t k = 0; k < j->logs[i]->call_count; k++)
            if (j->logs[i]->calls[k].kind == COMM_PAIR)
                halves_add(j, i, k, &counts);
        map_fini(&counts);
    }
    j->together = xcalloc(calls + 1, sizeof *j->together);
    for (uint32_t i = 0; i < calls; i++)
        j->together[i] = i;
    halves_join(j);
    pairs_meet(j, calls);
}
