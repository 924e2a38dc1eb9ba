/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/cluster/comm_join.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"
#include "memsim/cluster/comm_align.h"

/* A communicator with those that know it. */
struct joined {
    const struct comm *comm; /* the first one's */
    uint32_t members;        /* that have a trace */
    struct member {
        uint32_t log, comm;
    } *member;
    size_t member_capacity;
    uint32_t *meets; /* by sequence: of collectives */
    uint32_t *first; /* by sequence: the log that called first, ... */
    uint32_t *call;  /* ... and its call */
    uint32_t *came;  /* how many called */
    size_t meet_count, meet_capacity;
};

/* A send or a receive. */
struct half {
    uint32_t joined, source, target, log, call, rank;
    bool receive;
    uint64_t n, bytes; /* n: its place among those of the pair */
};

struct joining {
    const struct comm_log *const *logs;
    struct comm_job *job;
    struct joined *joined;
    size_t joined_count, joined_capacity;
    uint32_t **joined_of; /* by log and communicator */
    struct half *halves;
    size_t half_count, half_capacity;
    uint64_t **shifts;  /* by log and communicator: the place of the first
                           collective among those of all members */
    int64_t *clocks;    /* of a log: to be added, for the clock of the first */
    bool *clock_known;
    size_t *offsets;    /* of a log's calls among all */
    uint32_t *together; /* a call of the same group; itself: the first */
};

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

static bool has_rank(const struct joining *j, const struct joined *d,
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
        const struct joined *d = &j->joined[at - 1];
        if (!at)
            break;
        if (d->comm->ranks == c->ranks &&
            !memcmp(d->comm->id, c->id, sizeof c->id) &&
            !has_rank(j, d, c->rank))
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

/* --- profiles ------------------------------------------------------------- */

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

static void profiles_align(struct joining *j)
{
    for (uint32_t i = 0; i < j->job->log_count; i++)
        j->shifts[i] =
            xcalloc(j->logs[i]->comm_count + 1, sizeof *j->shifts[i]);
    if (j->job->log_count)
        j->clock_known[0] = true;
    for (size_t i = 0; i < j->joined_count; i++)
        if (j->joined[i].members > 1 &&
            j->logs[j->joined[i].member[0].log]->imported)
            profile_align(j, &j->joined[i]);
}

/* When the logs begin, on one clock; of what was recorded by memsim nothing is
 * known, and all begin at once. */
static void starts_find(struct joining *j)
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

/* How long each member of a meet lasts after the last one has come. */
static void lasts_find(struct joining *j)
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
            job->lasts_of[i][k] = ns > 0 ? (uint64_t)ns : 1;
        }
}

/* --- mismatches ----------------------------------------------------------- */

static void mismatch_add(struct joining *j, struct comm_mismatch m)
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

static uint32_t meet_add(struct comm_job *job, enum comm_kind kind,
                         uint32_t expected)
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

static void collectives_join(struct joining *j, uint32_t log)
{
    const struct comm_log *l = j->logs[log];
    uint64_t *next = xcalloc(l->comm_count + 1, sizeof *next);

    for (uint32_t i = 0; i < l->comm_count; i++)
        next[i] = j->shifts[log][i];
    for (uint32_t i = 0; i < l->call_count; i++)
        if (l->calls[i].kind != COMM_PAIR)
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
                      l->calls[k].kind != COMM_PAIR;
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

/* --- sends and receives --------------------------------------------------- */

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

static void pairs_join(struct joining *j)
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

/* --- all ------------------------------------------------------------------ */

/* What only one has called is carried out alone. */
static void meets_conclude(struct comm_job *job,
                           const struct comm_log *const *logs)
{
    for (size_t i = 0; i < job->log_count; i++)
        for (size_t k = 0; k < logs[i]->call_count; k++) {
            uint32_t meet = job->meets_of[i][k];
            if (meet != COMM_NONE && job->meets[meet].expected < 2)
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
    free(j->offsets);
    free(j->together);
}

struct comm_job *comm_job_create(const struct comm_log *const *logs,
                                 size_t count)
{
    struct comm_job *job = xcalloc(1, sizeof *job);
    struct joining j = {
        .logs = logs,
        .job = job,
        .joined_of = xcalloc(count + 1, sizeof(uint32_t *)),
        .offsets = xcalloc(count + 1, sizeof(size_t)),
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
    profiles_align(&j);
    for (uint32_t i = 0; i < count; i++)
        collectives_join(&j, i);
    collectives_count(&j);
    pairs_join(&j);
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
    free(job);
}
