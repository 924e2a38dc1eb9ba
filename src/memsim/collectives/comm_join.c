/* SPDX-License-Identifier: Apache-2.0 */

#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"
#include "memsim/collectives/comm_join_internal.h"

/* --- communicators -------------------------------------------------------- */

static uint64_t id_hash(const struct comm *c)
{
    uint64_t h = c->ranks;

    for (size_t i = 0; i < sizeof c->id; i++)
        h = (h ^ (uint8_t)c->id[i]) * UINT64_C(0x100000001b3);
    return h ? h : 1;
}

static bool id_is_told(const struct comm *c)
{
    static const char none[COMM_ID_BYTES];

    return memcmp(c->id, none, sizeof none) != 0;
}

bool joined_has_rank(const struct joining *j, const struct joined *d,
                     uint32_t rank)
{
    for (uint32_t i = 0; i < d->members; i++) {
        const struct member *m = &d->member[i];
        if (j->logs[m->log]->comms[m->comm].rank == rank)
            return true;
    }
    return false;
}

/* The communicator that C is; KNOWN has the indexes + 1 by hash. */
static uint32_t joined_find(struct joining *j, struct map *known,
                            const struct comm *c)
{
    uint64_t hash = id_hash(c);

    while (id_is_told(c)) {
        uintptr_t at = (uintptr_t)map_get(known, hash);
        if (!at)
            break;
        const struct joined *d = &j->joined[at - 1];
        if (d->comm->ranks == c->ranks &&
            !memcmp(d->comm->id, c->id, sizeof c->id) &&
            !joined_has_rank(j, d, c->rank))
            return (uint32_t)at - 1;
        hash += 2;
    }
    xgrow(&j->joined, j->joined_count, &j->joined_capacity, sizeof *j->joined);
    j->joined[j->joined_count++] = (struct joined){.comm = c};
    if (id_is_told(c))
        map_put(known, hash, (void *)(uintptr_t)j->joined_count);
    return (uint32_t)j->joined_count - 1;
}

static void communicators_join(struct joining *j)
{
    struct map known = {0};

    for (uint32_t i = 0; i < j->job->log_count; i++) {
        const struct comm_log *log = j->logs[i];
        j->joined_of[i] = xcalloc(log->comm_count + 1, sizeof(uint32_t));
        for (uint32_t c = 0; c < log->comm_count; c++) {
            uint32_t at = joined_find(j, &known, &log->comms[c]);
            struct joined *d = &j->joined[at];
            xgrow(&d->member, d->members, &d->member_capacity,
                  sizeof *d->member);
            d->member[d->members++] = (struct member){i, c};
            j->joined_of[i][c] = at;
        }
    }
    map_fini(&known);
}

/* --- mismatches ----------------------------------------------------------- */

void mismatch_add(struct joining *j, struct comm_mismatch m)
{
    if (j->job->mismatch_count < COMM_MISMATCHES)
        j->job->mismatches[j->job->mismatch_count] = m;
    j->job->mismatch_count++;
}

/* What differs in B, the worst first; COMM_MISSING: nothing. */
static enum comm_fault calls_differ(const struct comm_call *a,
                                    const struct comm_call *b)
{
    bool reduces = a->kind == COMM_ALL_REDUCE || a->kind == COMM_REDUCE ||
                   a->kind == COMM_REDUCE_SCATTER;
    bool rooted = a->kind == COMM_BROADCAST || a->kind == COMM_REDUCE ||
                  a->kind == COMM_GATHER || a->kind == COMM_SCATTER;

    if (a->kind != b->kind)
        return COMM_ORDER;
    if (a->bytes != b->bytes)
        return COMM_SIZE;
    if (a->type != b->type)
        return COMM_TYPE;
    if (reduces && a->operation != b->operation)
        return COMM_OPERATION;
    return rooted && a->root != b->root ? COMM_ROOT : COMM_MISSING;
}

static uint32_t rank_in(const struct joining *j, uint32_t log, uint32_t call)
{
    return j->logs[log]->comms[j->logs[log]->calls[call].comm].rank;
}

static void calls_compare(struct joining *j, uint32_t first,
                          uint32_t first_call,
                          uint32_t log, uint32_t call, uint64_t sequence)
{
    enum comm_fault fault = calls_differ(&j->logs[first]->calls[first_call],
                                         &j->logs[log]->calls[call]);

    if (fault == COMM_MISSING || j->logs[log]->imported)
        return;
    mismatch_add(j, (struct comm_mismatch){
                        .fault = fault,
                        .log = first,
                        .call = first_call,
                        .rank = rank_in(j, first, first_call),
                        .other = log,
                        .other_call = call,
                        .other_rank = rank_in(j, log, call),
                        .sequence = sequence,
                    });
}

/* --- collectives ---------------------------------------------------------- */

uint32_t meet_add(struct comm_job *job, enum comm_kind kind, uint32_t expected)
{
    xgrow(&job->meets, job->meet_count, &job->meet_capacity,
          sizeof *job->meets);
    job->meets[job->meet_count] =
        (struct comm_meet){.kind = kind, .expected = expected};
    return (uint32_t)job->meet_count++;
}

/* Makes room for N more, which nobody has called yet. */
static void joined_grow(struct joined *d, size_t n)
{
    size_t capacity = 2 * (d->meet_count + n) + 64;

    if (d->meet_count + n <= d->meet_capacity)
        return;
    d->meets = xreallocarray(d->meets, capacity, sizeof *d->meets);
    d->first = xreallocarray(d->first, capacity, sizeof *d->first);
    d->call = xreallocarray(d->call, capacity, sizeof *d->call);
    d->came = xreallocarray(d->came, capacity, sizeof *d->came);
    d->meet_capacity = capacity;
}

/* CALL of LOG is the N-th collective of its communicator. */
static uint32_t collective_join(struct joining *j, uint32_t log, uint32_t call,
                                uint64_t n)
{
    const struct comm_call *c = &j->logs[log]->calls[call];
    struct joined *d = &j->joined[j->joined_of[log][c->comm]];

    if (d->members < 2)
        return COMM_NONE;
    while (n >= d->meet_count) {
        joined_grow(d, 1);
        d->meets[d->meet_count] = COMM_NONE;
        d->came[d->meet_count++] = 0;
    }
    if (d->meets[n] == COMM_NONE) {
        d->meets[n] = meet_add(j->job, c->kind, 0);
        d->first[n] = log;
        d->call[n] = call;
    } else {
        calls_compare(j, d->first[n], d->call[n], log, call, n);
    }
    d->came[n]++;
    j->job->meets[d->meets[n]].expected++;
    return d->meets[n];
}

static bool is_collective(const struct comm_call *c)
{
    return c->kind != COMM_PAIR && c->kind != COMM_ONE_SIDED;
}

static void collectives_join(struct joining *j, uint32_t log)
{
    const struct comm_log *l = j->logs[log];
    uint64_t *next = xcalloc(l->comm_count + 1, sizeof *next);

    for (uint32_t i = 0; i < l->comm_count; i++)
        next[i] = j->shifts[log][i];
    for (uint32_t i = 0; i < l->call_count; i++)
        if (is_collective(&l->calls[i]))
            j->job->meets_of[log][i] =
                collective_join(j, log, i, next[l->calls[i].comm]++);
    free(next);
}

/* Has LOG's rank of D called less than SEQUENCE + 1 collectives? */
static void missing_find(struct joining *j, const struct joined *d,
                         uint64_t sequence)
{
    for (uint32_t i = 0; i < d->members; i++) {
        const struct member *m = &d->member[i];
        const struct comm_log *l = j->logs[m->log];
        uint64_t called = 0;
        for (size_t k = 0; k < l->call_count; k++)
            called += l->calls[k].comm == m->comm &&
                      is_collective(&l->calls[k]);
        if (called > sequence)
            continue;
        mismatch_add(j, (struct comm_mismatch){
                            .fault = COMM_MISSING,
                            .log = d->first[sequence],
                            .call = d->call[sequence],
                            .rank = rank_in(j, d->first[sequence],
                                            d->call[sequence]),
                            .other = m->log,
                            .other_call = COMM_NONE,
                            .other_rank = l->comms[m->comm].rank,
                            .sequence = sequence,
                        });
        return;
    }
}

/* Of each communicator the first collective that a rank does not call. */
static void collectives_count(struct joining *j)
{
    for (size_t i = 0; i < j->joined_count; i++) {
        const struct joined *d = &j->joined[i];
        for (uint64_t n = 0; n < d->meet_count; n++)
            if (d->came[n] < d->members && !j->logs[d->first[n]]->imported) {
                missing_find(j, d, n);
                break;
            }
    }
}

/* --- all ------------------------------------------------------------------ */

/* What only one has called is carried out alone. */
static void meets_conclude(struct comm_job *job,
                           const struct comm_log *const *logs)
{
    for (size_t i = 0; i < job->log_count; i++)
        for (size_t k = 0; k < logs[i]->call_count; k++) {
            uint32_t meet = job->meets_of[i][k];
            if (meet != COMM_NONE && job->meets[meet].kind != COMM_PAIR &&
                job->meets[meet].expected < 2)
                job->meets_of[i][k] = COMM_NONE;
        }
}

static void joining_fini(struct joining *j)
{
    for (size_t i = 0; i < j->joined_count; i++) {
        free(j->joined[i].member);
        free(j->joined[i].meets);
        free(j->joined[i].first);
        free(j->joined[i].call);
        free(j->joined[i].came);
    }
    for (size_t i = 0; i < j->job->log_count; i++) {
        free(j->joined_of[i]);
        free(j->shifts[i]);
    }
    free(j->joined_of);
    free(j->shifts);
    free(j->clocks);
    free(j->clock_known);
    free(j->joined);
    free(j->halves);
}

struct comm_job *comm_job_create(const struct comm_log *const *logs,
                                 size_t count,
                                 const struct comm_classes *classes)
{
    struct comm_job *job = xcalloc(1, sizeof *job);
    struct joining j = {
        .logs = logs,
        .classes = classes,
        .job = job,
        .joined_of = xcalloc(count + 1, sizeof(uint32_t *)),
        .shifts = xcalloc(count + 1, sizeof(uint64_t *)),
        .clocks = xcalloc(count + 1, sizeof(int64_t)),
        .clock_known = xcalloc(count + 1, sizeof(bool)),
    };

    job->log_count = count;
    job->meets_of = xcalloc(count + 1, sizeof(uint32_t *));
    job->lasts_of = xcalloc(count + 1, sizeof(uint64_t *));
    job->start_ns = xcalloc(count + 1, sizeof(uint64_t));
    for (size_t i = 0; i < count; i++) {
        job->meets_of[i] =
            xcalloc(logs[i]->call_count + 1, sizeof(uint32_t));
        job->lasts_of[i] =
            xcalloc(logs[i]->call_count + 1, sizeof(uint64_t));
        memset(job->meets_of[i], 0xff,
               logs[i]->call_count * sizeof(uint32_t));
    }
    communicators_join(&j);
    if (classes)
        classes_merge(&j);
    profiles_align(&j);
    for (uint32_t i = 0; i < count; i++)
        collectives_join(&j, i);
    collectives_count(&j);
    pairs_join(&j);
    absent_join(&j);
    meets_conclude(job, logs);
    starts_find(&j);
    lasts_find(&j);
    joining_fini(&j);
    return job;
}

void comm_job_destroy(struct comm_job *job)
{
    if (!job)
        return;
    for (size_t i = 0; i < job->log_count; i++)
        free(job->meets_of[i]);
    for (size_t i = 0; i < job->log_count; i++)
        free(job->lasts_of[i]);
    free(job->meets_of);
    free(job->lasts_of);
    free(job->start_ns);
    free(job->meets);
    free(job->pairs);
    free(job);
}
