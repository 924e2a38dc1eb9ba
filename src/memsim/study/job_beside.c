/* SPDX-License-Identifier: Apache-2.0
 * The other job's logs get the ranks and communicators of a part of one larger
 * job: all that joins collectives, places them and shares links goes by these
 * numbers, and needs to know no more of it. */
#include "memsim/study/job_beside.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/clamp.h"
#include "common/base/xmalloc.h"
#include "memsim/run/ranks.h"

/* --- its ranks ------------------------------------------------------------ */

/* LOG's ranks begin at FIRST, and its communicators are none of the job's,
 * which may be the same recording. */
static void log_shift(struct comm_log *log, uint32_t first)
{
    static const char none[COMM_ID_BYTES];

    log->rank += first;
    for (size_t i = 0; i < log->comm_count; i++) {
        struct comm *c = &log->comms[i];
        for (uint32_t m = 0; c->members && m < c->ranks; m++)
            c->members[m] += first;
        if (memcmp(c->id, none, sizeof none) != 0)
            for (size_t k = 0; k < sizeof c->id; k++)
                c->id[k] = (char)~c->id[k];
    }
}

static void stands_set(struct job_beside *b, const struct run_rank *rank)
{
    for (uint32_t r = 0; rank_set_next(&rank->members, r, &r) && r < b->world;
         r++)
        b->stands[r] = b->first + rank->rank;
    if (rank->rank < b->world)
        b->stands[rank->rank] = b->first + rank->rank;
}

static int trace_add(struct job_beside *b, const struct run_rank *rank,
                     const char *path, struct err *err)
{
    struct simulation_plan *plan = &b->plans[b->count];

    if (simulation_plan_read(plan, path, SIMULATION_KEEP_WORK, err))
        return -1;
    if (!plan->comms.call_count) {
        simulation_plan_fini(plan);
        return 0;
    }
    log_shift(&plan->comms, b->first);
    b->paths[b->count] = xstrdup(path);
    b->ranks[b->count] = (struct simulation_rank){
        .path = b->paths[b->count],
        .plan = plan,
        .who = {.rank = b->first + rank->rank, .local = plan->comms.local}};
    b->count++;
    return 0;
}

static int ranks_add(struct job_beside *b, const struct run_ranks *ranks,
                     struct err *err)
{
    const struct run_rank *rank = NULL;

    while ((rank = run_next_rank(ranks, rank))) {
        stands_set(b, rank);
        for (size_t i = 0; i < rank->trace_count; i++)
            if (trace_add(b, rank, rank->traces[i]->path, err))
                return -1;
    }
    return 0;
}

static int run_take(struct job_beside *b, const struct run *run,
                    struct err *err)
{
    struct run_ranks ranks;
    int rc = run_ranks_read(&ranks, run, err);

    if (!rc) {
        b->world = ranks.world;
        b->stands = xcalloc((size_t)b->world + 1, sizeof *b->stands);
        memset(b->stands, 0xff, b->world * sizeof *b->stands);
        b->ranks = xcalloc(run->count + 1, sizeof *b->ranks);
        b->plans = xcalloc(run->count + 1, sizeof *b->plans);
        b->paths = xcalloc(run->count + 1, sizeof(char *));
        rc = ranks_add(b, &ranks, err);
    }
    run_ranks_fini(&ranks);
    return rc;
}

int job_beside_read(struct job_beside *b, const char *directory, uint32_t first,
                    struct err *err)
{
    struct run run;
    int rc = run_open(&run, directory, err);

    *b = (struct job_beside){.first = first};
    if (!rc && !run.directory)
        rc = err_set(err,
                     "--beside %s: it takes a directory of `memsim run -o'",
                     directory);
    if (!rc)
        rc = run_take(b, &run, err);
    if (!rc && !b->count)
        rc = err_set(err, "--beside %s: no rank of it has collectives",
                     directory);
    run_close(&run);
    if (rc)
        job_beside_fini(b);
    return rc ? -1 : 0;
}

void job_beside_fini(struct job_beside *b)
{
    for (size_t i = 0; i < b->count; i++) {
        simulation_plan_fini(&b->plans[i]);
        free(b->paths[i]);
    }
    free(b->ranks);
    free(b->plans);
    free(b->paths);
    free(b->stands);
    *b = (struct job_beside){.count = 0};
}

/* --- both together -------------------------------------------------------- */

void job_beside_classes(const struct job_beside *b,
                        const struct comm_classes *own,
                        struct comm_classes *all)
{
    *all = (struct comm_classes){.world = b->first + b->world};
    all->stands = xcalloc((size_t)all->world + 1, sizeof *all->stands);
    for (uint32_t r = 0; r < b->first; r++)
        all->stands[r] = r < own->world ? own->stands[r] : r;
    memcpy(all->stands + b->first, b->stands, b->world * sizeof *b->stands);
}

/* Keeps those mismatches of JOB whose logs are below COUNT. */
static void mismatches_keep(struct comm_job *job, size_t count)
{
    size_t had = least_u64(job->mismatch_count, COMM_MISMATCHES), kept = 0;

    for (size_t i = 0; i < had; i++)
        if (job->mismatches[i].log < count)
            job->mismatches[kept++] = job->mismatches[i];
    job->mismatch_count -= had - kept;
}

struct comm_job *job_beside_join(const struct simulation_peers *peers,
                                 const struct comm_classes *all)
{
    struct comm_job *job =
        simulation_join(peers->ranks, peers->count + peers->beside, all);

    mismatches_keep(job, peers->count);
    return job;
}

/* --- their steps ---------------------------------------------------------- */

/* The step that both begin together: with several, the first one of them is
 * warm-up. */
static size_t first_step(const struct simulation *t)
{
    return t->steps.count > 1;
}

static uint64_t begin_ns(const struct simulation *t)
{
    return t->begins[first_step(t)].ns;
}

static uint64_t end_ns(const struct simulation *t)
{
    return t->ends[t->steps.count - 1].ns;
}

/* The first MOMENT of those of COUNT RANKS that have steps; UINT64_MAX: none
 * has. */
static uint64_t earliest_ns(const struct simulation_rank *ranks, size_t count,
                            uint64_t (*moment)(const struct simulation *t))
{
    uint64_t least = UINT64_MAX;

    for (size_t i = 0; i < count; i++)
        if (!ranks[i].failed && ranks[i].result.steps.count)
            least = least_u64(least, moment(&ranks[i].result));
    return least;
}

/* The steps of RANK, and which of them end up to UNTIL_NS; a hundredth of a
 * step later is the same time. */
static struct job_beside_steps steps_count(const struct simulation_rank *rank,
                                           uint64_t until_ns)
{
    const struct simulation *t = &rank->result;
    struct job_beside_steps steps = {0, 0};

    for (size_t i = rank->failed ? t->steps.count : first_step(t);
         i < t->steps.count; i++) {
        steps.own++;
        steps.covered +=
            t->ends[i].ns - (t->ends[i].ns - t->begins[i].ns) / 100 <=
            until_ns;
    }
    return steps;
}

/* COUNT logs of JOB, from FIRST on, start NS later. */
static void starts_add(struct comm_job *job, size_t first, size_t count,
                       uint64_t ns)
{
    for (size_t i = 0; i < count; i++)
        job->start_ns[first + i] += ns;
}

struct job_beside_steps
job_beside_align(const struct simulation_peers *peers, struct comm_job *job,
                 const struct simulation_options *options)
{
    size_t own = peers->count, other = peers->beside;
    struct simulation_rank *ranks = xcalloc(own + other + 1, sizeof *ranks);
    struct simulation_options alone = *options;
    struct job_beside_steps steps = {0, 0};

    alone.flow_plan = NULL;
    memcpy(ranks, peers->ranks, (own + other) * sizeof *ranks);
    simulation_job(ranks, own + other, job, &alone);
    uint64_t own_ns = earliest_ns(ranks, own, begin_ns);
    uint64_t other_ns = earliest_ns(ranks + own, other, begin_ns);
    if (own_ns < UINT64_MAX && other_ns < UINT64_MAX) {
        starts_add(job, 0, own, minus_or_zero(other_ns, own_ns));
        starts_add(job, own, other, minus_or_zero(own_ns, other_ns));
        steps = steps_count(&ranks[0], earliest_ns(ranks + own, other, end_ns) -
                                           other_ns + own_ns);
    }
    simulation_ranks_fini(ranks, own + other);
    free(ranks);
    return steps;
}
