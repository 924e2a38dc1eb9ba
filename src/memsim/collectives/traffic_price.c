/* SPDX-License-Identifier: Apache-2.0
 * What a fitted cluster would take for the collectives of a run. */
#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"
#include "fits/placement.h"
#include "memsim/collectives/traffic.h"

struct pricing {
    const struct traffic_log *logs;
    size_t count;
    const struct fit *fit;
    uint32_t gpus; /* a node */
    uint32_t world;
    double quantile;
    struct placement at;
};

/* Where a communicator's ranks are in the world. */
struct members {
    uint32_t *ranks; /* of the world, by the communicator's own */
    bool assumed;
};

static uint32_t least_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Where the ranks of the world that COMM has end. */
static uint32_t comm_end(const struct traffic_comm *comm)
{
    uint32_t end = comm->ranks;

    for (uint32_t i = 0; comm->members && !comm->split && i < comm->ranks; i++)
        if (comm->members[i] >= end)
            end = comm->members[i] + 1;
    return end;
}

/* Without a launcher's environment the largest communicator is the world. */
static void log_place(const struct traffic_log *log, uint32_t *rank,
                      uint32_t *world)
{
    *rank = log->rank;
    *world = log->world;
    for (size_t i = 0; i < log->comm_count; i++) {
        const struct traffic_comm *c = &log->comms[i];

        if (comm_end(c) > *world) {
            *world = comm_end(c);
            *rank = c->members && !c->split ? c->members[c->rank] : c->rank;
        }
    }
}

static bool id_is_told(const struct traffic_comm *c)
{
    static const char none[TRAFFIC_ID_BYTES];

    return memcmp(c->id, none, sizeof none) != 0;
}

/* Finds the members that other processes of the run say they are. */
static uint32_t members_see(const struct pricing *p,
                            const struct traffic_comm *comm, struct members *m)
{
    bool *seen = xcalloc(comm->ranks, sizeof *seen);
    uint32_t count = 0, rank, world;

    for (size_t i = 0; i < p->count && id_is_told(comm); i++) {
        log_place(&p->logs[i], &rank, &world);
        for (size_t j = 0; j < p->logs[i].comm_count; j++) {
            const struct traffic_comm *c = &p->logs[i].comms[j];

            if (memcmp(c->id, comm->id, sizeof c->id) ||
                c->rank >= comm->ranks || seen[c->rank])
                continue;
            seen[c->rank] = true;
            m->ranks[c->rank] = rank;
            count++;
        }
    }
    free(seen);
    return count;
}

/* Where the others did not run here: neighbours, unless only ranks that lie
 * equally far apart agree with this rank's place in both. */
static void members_assume(const struct traffic_comm *comm, uint32_t rank,
                           uint32_t world, struct members *m)
{
    uint32_t stride = 1, apart = world / comm->ranks;

    if (rank % comm->ranks != comm->rank && apart && rank / apart == comm->rank)
        stride = apart;
    uint32_t first = rank - least_u32(rank, comm->rank * stride);
    for (uint32_t i = 0; i < comm->ranks; i++)
        m->ranks[i] = first + i * stride;
    m->assumed = comm->ranks != world;
}

/* Of one that was not split from another. */
static struct members members_root(const struct pricing *p,
                                   const struct traffic_log *log,
                                   const struct traffic_comm *comm)
{
    struct members m = {xcalloc(comm->ranks, sizeof *m.ranks), false};
    uint32_t rank, world;

    log_place(log, &rank, &world);
    if (comm->members && !comm->split)
        memcpy(m.ranks, comm->members, comm->ranks * sizeof *m.ranks);
    else if (members_see(p, comm, &m) < comm->ranks)
        members_assume(comm, rank, world, &m);
    return m;
}

static struct members members_find(const struct pricing *p,
                                   const struct traffic_log *log,
                                   const struct traffic_comm *comm)
{
    struct members m = members_root(p, log, comm);

    if (!comm->split)
        return m;
    m.assumed = true;
    if (!comm->members)
        return m;
    struct members root = members_root(p, log, &log->comms[comm->root]);
    for (uint32_t i = 0; i < comm->ranks; i++)
        m.ranks[i] = root.ranks[comm->members[i]];
    m.assumed = root.assumed;
    free(root.ranks);
    return m;
}

static uint32_t nodes_of(const struct pricing *p, const struct members *m,
                         uint32_t count)
{
    uint32_t nodes = 0, last = 0;

    for (uint32_t i = 0; i < count; i++)
        if (placement_node(&p->at, m->ranks[i]) > last)
            last = placement_node(&p->at, m->ranks[i]);
    bool *used = xcalloc((size_t)last + 1, sizeof *used);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t node = placement_node(&p->at, m->ranks[i]);
        nodes += !used[node];
        used[node] = true;
    }
    free(used);
    return nodes;
}

/* Whether PEER of COMM is on the node of this rank. */
static bool is_near(const struct pricing *p, const struct traffic_comm *comm,
                    const struct members *m, uint32_t peer)
{
    uint32_t other = peer < comm->ranks ? peer : comm->rank;

    return placement_node(&p->at, m->ranks[comm->rank]) ==
           placement_node(&p->at, m->ranks[other]);
}

/* A communicator's ranks on so many nodes; a send on one or two of them, with
 * the nodes' other GPUs sending too. */
static void place_call(const struct pricing *p, const struct traffic_call *call,
                       const struct traffic_comm *comm, const struct members *m,
                       struct traffic_row *row)
{
    row->ranks = comm->ranks;
    row->assumed = m->assumed;
    if (call->coll == FIT_SENDRECV) {
        /* Both ways go at once: the slower link sets the pace. */
        bool near = is_near(p, comm, m, call->peer) &&
                    is_near(p, comm, m, call->from);
        row->nodes = near ? 1 : 2;
        row->gpus_per_node = least_u32(p->gpus, p->world);
        return;
    }
    row->nodes = nodes_of(p, m, comm->ranks);
    row->gpus_per_node = (comm->ranks + row->nodes - 1) / row->nodes;
}

static struct traffic_row *row_get(struct traffic_rank *r,
                                   const struct traffic_row *wanted)
{
    for (size_t i = 0; i < r->row_count; i++) {
        struct traffic_row *row = &r->rows[i];

        if (row->coll == wanted->coll && row->ranks == wanted->ranks &&
            row->nodes == wanted->nodes &&
            row->gpus_per_node == wanted->gpus_per_node &&
            row->assumed == wanted->assumed)
            return row;
    }
    r->rows = xreallocarray(r->rows, r->row_count + 1, sizeof *r->rows);
    r->rows[r->row_count] = *wanted;
    r->rows[r->row_count].error = -1;
    return &r->rows[r->row_count++];
}

static uint32_t calls_in(const struct traffic_call *call, uint32_t step)
{
    return step < call->count_count ? call->counts[step] : 0;
}

static void sum_add(struct traffic_sum *sum, uint64_t calls, uint64_t bytes,
                    double us)
{
    sum->calls += calls;
    sum->bytes += calls * bytes;
    sum->us += (double)calls * us;
}

static void sum_join(struct traffic_sum *sum, const struct traffic_sum *part)
{
    sum->calls += part->calls;
    sum->bytes += part->bytes;
    sum->us += part->us;
}

/* Asks for one call's time; what the answer lacks is the row's. */
static double call_us(const struct pricing *p, const struct traffic_call *call,
                      struct traffic_row *row, uint64_t calls)
{
    const struct cost_nccl_query query = {
        .coll = call->coll,
        .nodes = row->nodes,
        .gpus_per_node = row->gpus_per_node,
        .bytes = (double)call->bytes,
        .in_place = call->in_place,
        .quantile = p->quantile,
    };
    struct cost_nccl_answer answer;

    if (cost_nccl(p->fit, &query, &answer)) {
        row->unpriced += calls;
        return 0;
    }
    for (int i = 0; i < COST_NCCL_FLAGS; i++)
        if (answer.flags & 1u << i)
            row->flagged[i] += calls;
    if (answer.error > row->error) /* each is known; the largest counts */
        row->error = answer.error;
    return answer.us;
}

/* The calls of LOG once more, with the price of each. */
struct prices {
    double *us;
    size_t *rows;
};

static void price_calls(const struct pricing *p, const struct traffic_log *log,
                        struct traffic_rank *r, struct prices *prices)
{
    struct members *members = xcalloc(log->comm_count + 1, sizeof *members);

    for (size_t i = 0; i < log->call_count; i++) {
        const struct traffic_call *call = log->calls[i];
        const struct traffic_comm *comm = &log->comms[call->comm];
        struct members *m = &members[call->comm];
        struct traffic_row place = {.coll = call->coll};
        uint64_t calls = 0;

        for (size_t j = 0; j < call->count_count; j++)
            calls += call->counts[j];
        if (!calls) /* captured, and never launched */
            continue;
        if (!m->ranks)
            *m = members_find(p, log, comm);
        place_call(p, call, comm, m, &place);
        struct traffic_row *row = row_get(r, &place);
        prices->rows[i] = (size_t)(row - r->rows);
        prices->us[i] = call_us(p, call, row, calls);
        sum_add(&row->all, calls, call->bytes, prices->us[i]);
        xgrow(&row->sizes, row->size_count, &row->size_capacity,
              sizeof *row->sizes);
        row->sizes[row->size_count++] =
            (struct traffic_size){call->bytes, calls, prices->us[i]};
    }
    for (size_t i = 0; i < log->comm_count; i++)
        free(members[i].ranks);
    free(members);
}

static void price_steps(const struct traffic_log *log, struct traffic_rank *r,
                        const struct prices *prices)
{
    r->steps = log->steps;
    r->step_us = xcalloc((size_t)log->steps + 1, sizeof *r->step_us);
    for (size_t i = 0; i < log->call_count; i++) {
        const struct traffic_call *call = log->calls[i];

        sum_add(&r->before, calls_in(call, 0), call->bytes, prices->us[i]);
        for (uint32_t s = 0; s < log->steps; s++)
            r->step_us[s] += calls_in(call, s + 1) * prices->us[i];
    }
}

static int us_compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* The last step of the (lower) median time: the first ones may differ, as
 * DDP's before it has sorted its buckets. */
static uint32_t typical_step(const struct traffic_rank *r)
{
    uint32_t found = 0;

    if (!r->steps)
        return 0;
    double *sorted = xcalloc(r->steps, sizeof *sorted);
    memcpy(sorted, r->step_us, r->steps * sizeof *sorted);
    qsort(sorted, r->steps, sizeof *sorted, us_compare);
    for (uint32_t s = 0; s < r->steps; s++)
        if (r->step_us[s] == sorted[(r->steps - 1) / 2])
            found = s + 1;
    free(sorted);
    return found;
}

static int row_compare(const void *a, const void *b)
{
    const struct traffic_row *x = a, *y = b;

    if (x->coll != y->coll)
        return x->coll < y->coll ? -1 : 1;
    if (x->ranks != y->ranks)
        return x->ranks < y->ranks ? -1 : 1;
    return x->nodes < y->nodes ? -1 : x->nodes > y->nodes;
}

static int size_compare(const void *a, const void *b)
{
    const struct traffic_size *x = a, *y = b;

    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return us_compare(&x->us, &y->us);
}

/* Sorts, and joins what differs only by communicator or peer. */
static void sizes_join(struct traffic_row *row)
{
    size_t count = 0;

    qsort(row->sizes, row->size_count, sizeof *row->sizes, size_compare);
    for (size_t i = 0; i < row->size_count; i++)
        if (count && !size_compare(&row->sizes[count - 1], &row->sizes[i]))
            row->sizes[count - 1].calls += row->sizes[i].calls;
        else
            row->sizes[count++] = row->sizes[i];
    row->size_count = count;
}

static void price_log(const struct pricing *p, const struct traffic_log *log,
                      struct traffic_rank *r)
{
    struct prices prices = {
        xcalloc(log->call_count, sizeof *prices.us),
        xcalloc(log->call_count, sizeof *prices.rows),
    };
    uint32_t world;

    *r = (struct traffic_rank){.process = log->process};
    log_place(log, &r->rank, &world);
    price_calls(p, log, r, &prices);
    price_steps(log, r, &prices);
    r->typical = typical_step(r);
    for (size_t i = 0; i < log->call_count && r->typical; i++) {
        uint32_t calls = calls_in(log->calls[i], r->typical);

        if (calls)
            sum_add(&r->rows[prices.rows[i]].step, calls, log->calls[i]->bytes,
                    prices.us[i]);
    }
    for (size_t i = 0; i < r->row_count; i++) {
        sizes_join(&r->rows[i]);
        sum_join(&r->all, &r->rows[i].all);
        sum_join(&r->step, &r->rows[i].step);
    }
    if (r->row_count)
        qsort(r->rows, r->row_count, sizeof *r->rows, row_compare);
    free(prices.us);
    free(prices.rows);
}

static int rank_compare(const void *a, const void *b)
{
    const struct traffic_rank *x = a, *y = b;

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->process < y->process ? -1 : x->process > y->process;
}

struct traffic *traffic_price(const struct traffic_log *logs, size_t count,
                              const struct cluster *cluster,
                              const struct traffic_pricing *how)
{
    struct traffic *t = xcalloc(1, sizeof *t);
    uint32_t width = cluster_width(cluster, count ? logs[0].local : 0);
    struct pricing p = {logs, count, &cluster->fit, width, 1,
                        how->quantile, {.width = width}};
    uint32_t rank, world;
    struct err ignored = {""};

    memcpy(t->cluster, cluster->name, sizeof t->cluster);
    memcpy(t->about, cluster->about, sizeof t->about);
    t->measured = cluster->measured;
    t->by_gpu = cluster->by_gpu;
    t->gpus_per_node = p.gpus;
    t->quantile = how->quantile;
    t->ranks = xcalloc(count + 1, sizeof *t->ranks);
    for (size_t i = 0; i < count; i++) {
        log_place(&logs[i], &rank, &world);
        if (world > p.world)
            p.world = world;
    }
    t->world = p.world;
    if (placement_make(&p.at, how->placement, p.world, width, &ignored))
        p.at = (struct placement){.width = width};
    for (size_t i = 0; i < count; i++)
        if (logs[i].call_count)
            price_log(&p, &logs[i], &t->ranks[t->rank_count++]);
    placement_fini(&p.at);
    qsort(t->ranks, t->rank_count, sizeof *t->ranks, rank_compare);
    return t;
}

void traffic_destroy(struct traffic *traffic)
{
    if (!traffic)
        return;
    for (size_t i = 0; i < traffic->rank_count; i++) {
        for (size_t j = 0; j < traffic->ranks[i].row_count; j++)
            free(traffic->ranks[i].rows[j].sizes);
        free(traffic->ranks[i].rows);
        free(traffic->ranks[i].step_us);
    }
    free(traffic->ranks);
    free(traffic);
}
