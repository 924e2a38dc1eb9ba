/* SPDX-License-Identifier: Apache-2.0
 * Calls of one communicator by one algorithm have one pattern: so many flows on
 * each link, of all the groups that the communicator stands for. Links with the
 * same loads of all patterns are one row: of a network of a hundred thousand
 * links some tens remain. */
#include "memsim/time/flow_plan.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/hash.h"
#include "common/base/map.h"
#include "common/base/xmalloc.h"
#include "memsim/collectives/comm_siblings.h"
#include "memsim/time/flow_route.h"
#include "runtime/nccl/cost_nccl.h"
#include "runtime/net/net_pattern.h"

/* More flows than these of one call, with those of its siblings, are not looked
 * at: an all-to-all of 4,096 ranks. */
#define FLOWS_MAX (UINT64_C(1) << 24)

struct flow_plan {
    struct simulation_network network;
    struct simulation_flow **flows; /* by log and call */
    size_t log_count;
    uint32_t jobs;
    double *alone_gbps;
    uint64_t unknown;
};

/* A pattern while the plan is made. */
struct pattern {
    double part;   /* of the bytes on the bus, or of a rank, that a flow has */
    uint32_t hops; /* links between switches on the longest way */
    uint32_t steps;
};

struct planning {
    const struct flow_job *job;
    struct flow_plan *plan;
    struct flow_router *router;
    struct map keys; /* number of a pattern + 1 */
    struct pattern *patterns;
    size_t pattern_count, pattern_capacity;
    size_t alone_capacity;
    struct flow_set flows; /* of one pattern */
    uint32_t world, jobs;  /* ranks of a job; jobs like this one, in step */
};

/* --- flows ---------------------------------------------------------------- */

static struct net_place place_of(const struct planning *p, uint32_t rank)
{
    const struct placement *at = p->job->placement;
    uint32_t adapters = p->job->cluster->network->adapters;
    uint32_t node = placement_node(at, rank);
    uint32_t adapter = placement_gpu(at, rank) * adapters / at->width;

    return (struct net_place){node, node * adapters + adapter};
}

static int place_compare(const void *a, const void *b)
{
    const struct net_place *x = a, *y = b;

    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return x->adapter < y->adapter ? -1 : x->adapter > y->adapter;
}

static void flows_room(struct planning *p, uint64_t more)
{
    struct flow_set *f = &p->flows;

    while (f->capacity < f->count + more)
        xgrow(&f->all, f->capacity, &f->capacity, sizeof *f->all);
}

/* Adds the flows of the group that is SHIFT ranks further than C. */
static void group_add(struct planning *p, const struct comm *c, int64_t shift,
                      enum net_algo algo, struct pattern *pattern)
{
    struct net_place *ranks = xcalloc(c->ranks, sizeof *ranks);
    const struct net_group group = {ranks, c->ranks, algo};

    for (uint32_t i = 0; i < c->ranks; i++)
        ranks[i] = place_of(p, (uint32_t)(c->members[i] + shift));
    qsort(ranks, c->ranks, sizeof *ranks, place_compare);
    if (ranks[0].node != ranks[c->ranks - 1].node) {
        flows_room(p, net_flows_most(&group));
        p->flows.count += net_flows(&group, p->flows.all + p->flows.count,
                                    &pattern->part);
        pattern->steps = net_steps(&group, 1);
    }
    free(ranks);
}

/* By how many places the ranks of job NUMBER lie behind those of the first. */
static int64_t job_shift(const struct planning *p, uint64_t number)
{
    return (int64_t)(number * p->world);
}

/* --- patterns ------------------------------------------------------------- */

/* The flows of P become a pattern, whose number is returned; NET_NONE: there
 * are none. */
static uint32_t pattern_add(struct planning *p, struct pattern pattern)
{
    struct flow_plan *plan = p->plan;
    uint32_t number = (uint32_t)p->pattern_count;
    double alone;

    if (!p->flows.count)
        return NET_NONE;
    pattern.hops = flow_router_add(p->router, number, &p->flows, &alone);
    xgrow(&plan->alone_gbps, number, &p->alone_capacity,
          sizeof *plan->alone_gbps);
    plan->alone_gbps[number] = alone;
    xgrow(&p->patterns, number, &p->pattern_capacity, sizeof *p->patterns);
    p->patterns[p->pattern_count++] = pattern;
    return number;
}

/* Of all groups that C stands for, of each job. */
static uint32_t group_pattern(struct planning *p, const struct comm *c,
                              enum net_algo algo)
{
    const struct net_group group = {NULL, c->ranks, algo};
    struct pattern pattern = {0};
    int64_t *shifts;
    size_t count = comm_siblings(c, p->job->classes, &shifts);
    uint64_t groups = (uint64_t)count * p->jobs;
    bool is_small = net_flows_most(&group) * groups <= FLOWS_MAX;

    p->flows.count = 0;
    for (uint64_t i = 0; i < groups && is_small; i++) {
        group_add(p, c, shifts[i % count] + job_shift(p, i / count), algo,
                  &pattern);
        if (!i)
            p->flows.own = p->flows.count;
    }
    free(shifts);
    return pattern_add(p, pattern);
}

static uint32_t known_pattern(const struct planning *p, uint64_t key)
{
    uintptr_t number = (uintptr_t)map_get(&p->keys, key);

    return number ? (uint32_t)(number - 1) : NET_NONE;
}

/* What MAP has where a pattern has no flows. */
#define EMPTY ((uintptr_t)UINT32_MAX)

static uint32_t pattern_keep(struct planning *p, uint64_t key, uint32_t number)
{
    map_put(&p->keys, key,
            (void *)(number == NET_NONE ? EMPTY : (uintptr_t)number + 1));
    return number;
}

static bool is_known(const struct planning *p, uint64_t key, uint32_t *number)
{
    uintptr_t found = (uintptr_t)map_get(&p->keys, key);

    *number = found == EMPTY ? NET_NONE : known_pattern(p, key);
    return found != 0;
}

static uint32_t group_find(struct planning *p, const struct comm *c,
                           enum net_algo algo)
{
    uint64_t key = hash_bytes(HASH_START + (uint64_t)algo, c->members,
                              c->ranks * sizeof *c->members);
    uint32_t number;

    if (is_known(p, key, &number))
        return number;
    return pattern_keep(p, key, group_pattern(p, c, algo));
}

/* --- sends ---------------------------------------------------------------- */

/* A group of sends of RANK: each weighs as much of the largest one's bytes. */
struct sends {
    const struct comm_log *log;
    const struct comm_call *call;
    const struct comm *comm;
    uint32_t rank;
    uint64_t most; /* bytes of the largest one */
};

static const struct op_part *send_at(const struct sends *s, uint32_t i)
{
    const struct op_part *part = &s->log->parts[s->call->part_first + i];

    return part->receive || part->peer >= s->comm->ranks || !part->bytes
               ? NULL
               : part;
}

static struct sends sends_of(const struct comm_log *log,
                             const struct comm_call *call)
{
    const struct comm *c = &log->comms[call->comm];
    struct sends s = {log, call, c, c->members[c->rank], 0};

    for (uint32_t i = 0; i < call->part_count; i++) {
        const struct op_part *part = send_at(&s, i);
        if (part && part->bytes > s.most)
            s.most = part->bytes;
    }
    return s;
}

static uint64_t sends_key(const struct sends *s)
{
    uint64_t key = hash_bytes(~HASH_START, &s->rank, sizeof s->rank);

    for (uint32_t i = 0; i < s->call->part_count; i++) {
        const struct op_part *part = send_at(s, i);
        double weight = part ? (double)part->bytes / (double)s->most : 0;
        if (!part)
            continue;
        key = hash_bytes(key, &s->comm->members[part->peer], sizeof(uint32_t));
        key = hash_bytes(key, &weight, sizeof weight);
    }
    return key;
}

/* Adds the sends of the rank SHIFT further in job JOB, as far as there are such
 * ranks in a WORLD. */
static void sends_add(struct planning *p, const struct sends *s, int64_t shift,
                      uint32_t world, uint32_t job)
{
    int64_t first = job_shift(p, job);
    struct net_place from = place_of(p, (uint32_t)(s->rank + shift + first));

    flows_room(p, s->call->part_count);
    for (uint32_t i = 0; i < s->call->part_count; i++) {
        const struct op_part *part = send_at(s, i);
        int64_t peer = part ? s->comm->members[part->peer] + shift : -1;
        if (peer < 0 || peer >= world)
            continue;
        struct net_place to = place_of(p, (uint32_t)(peer + first));
        if (to.node != from.node)
            p->flows.all[p->flows.count++] = (struct net_flow){
                from.adapter, to.adapter,
                (double)part->bytes / (double)s->most};
    }
}

static uint32_t sends_find(struct planning *p, const struct sends *s)
{
    const struct comm_classes *classes = p->job->classes;
    uint64_t key = sends_key(s);
    uint32_t number, world = classes ? classes->world : s->log->world;
    int64_t *shifts;

    if (is_known(p, key, &number))
        return number;
    if (!classes && s->rank >= world)
        world = UINT32_MAX;
    size_t count = comm_rank_siblings(s->rank, classes, &shifts);
    p->flows.count = 0;
    for (size_t i = 0; i < count * p->jobs; i++) {
        sends_add(p, s, shifts[i % count], world, (uint32_t)(i / count));
        if (!i)
            p->flows.own = p->flows.count;
    }
    free(shifts);
    number = pattern_add(p, (struct pattern){.part = 1, .steps = 1});
    return pattern_keep(p, key, number);
}

/* --- calls ---------------------------------------------------------------- */

/* What is asked of NCCL's model for a kind of call. */
static const struct {
    bool known;
    enum fit_coll coll;
    enum net_algo algo; /* where NCCL has no tree */
    uint32_t passes;
} kinds[COMM_KINDS] = {
    [COMM_ALL_REDUCE] = {true, FIT_ALL_REDUCE, NET_RING, 2},
    [COMM_ALL_GATHER] = {true, FIT_ALL_GATHER, NET_RING, 1},
    [COMM_REDUCE_SCATTER] = {true, FIT_REDUCE_SCATTER, NET_RING, 1},
    [COMM_BROADCAST] = {true, FIT_BROADCAST, NET_RING, 1},
    [COMM_REDUCE] = {true, FIT_REDUCE, NET_RING, 1},
    [COMM_ALL_TO_ALL] = {true, FIT_ALLTOALL, NET_ALL, 1},
};

static enum net_algo algo_of(const struct planning *p, const struct comm *c,
                             const struct comm_call *call)
{
    const struct placement *at = p->job->placement;
    uint32_t width = c->ranks < at->width ? c->ranks : at->width;
    const struct cost_nccl_query query = {
        .coll = kinds[call->kind].coll,
        .nodes = (c->ranks + width - 1) / width,
        .gpus_per_node = width,
        .bytes = (double)call->bytes,
    };

    if (call->kind != COMM_ALL_REDUCE || query.nodes < 2)
        return kinds[call->kind].algo;
    enum cost_algo algo = cost_nccl_algo(&p->job->cluster->fit, &query);
    return algo == COST_ALGO_TREE || algo == COST_ALGO_NVLS_TREE ? NET_TREE
                                                                 : NET_RING;
}

static uint32_t latency_ns(const struct planning *p, const struct pattern *of,
                           uint32_t passes)
{
    double ns = (double)p->job->cluster->network->graph.hop_ns * of->hops *
                of->steps * passes;

    return ns < 1e9 ? (uint32_t)ns : 1000000000;
}

static struct simulation_flow flow_none(void)
{
    return (struct simulation_flow){.pattern = NET_NONE};
}

static struct simulation_flow group_flow(struct planning *p,
                                         const struct comm *c,
                                         const struct comm_call *call)
{
    enum net_algo algo = algo_of(p, c, call);
    uint32_t number = group_find(p, c, algo);
    double factor = algo == NET_ALL
                        ? 1
                        : fit_coll_factor(kinds[call->kind].coll, c->ranks);

    if (number == NET_NONE)
        return flow_none();
    const struct pattern *of = &p->patterns[number];
    return (struct simulation_flow){
        .pattern = number,
        .bytes = factor * of->part * (double)call->bytes,
        .added_ns = latency_ns(p, of,
                               algo == NET_RING ? kinds[call->kind].passes : 1),
    };
}

static struct simulation_flow call_flow(struct planning *p,
                                        const struct comm_log *log,
                                        const struct comm_call *call)
{
    const struct comm *c = &log->comms[call->comm];

    if (c->members && call->kind == COMM_PAIR) {
        const struct sends s = sends_of(log, call);
        uint32_t number = s.most ? sends_find(p, &s) : NET_NONE;
        if (number == NET_NONE)
            return flow_none();
        return (struct simulation_flow){
            .pattern = number,
            .bytes = (double)s.most,
            .added_ns = latency_ns(p, &p->patterns[number], 1)};
    }
    if (c->members && c->ranks > 1 && kinds[call->kind].known)
        return group_flow(p, c, call);
    p->plan->unknown += c->ranks > 1;
    return flow_none();
}

static void log_plan(struct planning *p, size_t log)
{
    const struct comm_log *l = p->job->logs[log];
    struct simulation_flow *flows = xcalloc(l->call_count + 1, sizeof *flows);

    for (size_t i = 0; i < l->call_count; i++)
        flows[i] = call_flow(p, l, &l->calls[i]);
    p->plan->flows[log] = flows;
}

/* --- the plan ------------------------------------------------------------- */

static uint32_t world_of(const struct flow_job *job)
{
    uint32_t world = job->classes ? job->classes->world : 0;

    for (size_t i = 0; i < job->count; i++)
        if (job->logs[i]->world > world)
            world = job->logs[i]->world;
    return world;
}

static int check_nodes(const struct flow_job *job, struct err *err)
{
    uint32_t world = world_of(job);
    uint32_t nodes = placement_nodes(job->placement, world);

    if (nodes <= job->cluster->network->nodes)
        return 0;
    return err_set(err,
                   "--cluster %s: its network has %" PRIu32
                   " nodes, and %" PRIu32 " ranks, %" PRIu32
                   " on each, take %" PRIu32,
                   job->cluster->name, job->cluster->network->nodes, world,
                   job->placement->width, nodes);
}

/* Ranks beyond the world are on no node. */
static bool is_inside(const struct flow_job *job)
{
    uint32_t world = world_of(job);

    for (size_t i = 0; i < job->count; i++)
        for (size_t k = 0; k < job->logs[i]->comm_count; k++) {
            const struct comm *c = &job->logs[i]->comms[k];
            for (uint32_t m = 0; c->members && m < c->ranks; m++)
                if (c->members[m] >= world)
                    return false;
        }
    return true;
}

struct flow_plan *flow_plan_create(const struct flow_job *job, struct err *err)
{
    struct planning p = {.job = job, .world = world_of(job)};

    p.jobs = placement_jobs(job->placement, p.world);
    if (check_nodes(job, err))
        return NULL;
    p.plan = xcalloc(1, sizeof *p.plan);
    p.plan->jobs = p.jobs;
    p.plan->flows =
        xcalloc(job->count + 1, sizeof(struct simulation_flow *));
    p.router = flow_router_create(&job->cluster->network->graph,
                                  job->cluster->network->adapters);
    bool inside = is_inside(job);
    for (size_t i = 0; i < job->count; i++, p.plan->log_count++)
        if (inside)
            log_plan(&p, i);
    flow_router_end(p.router, (uint32_t)p.pattern_count, &p.plan->network);
    if (job->cluster->measured)
        p.plan->network.alone_gbps = p.plan->alone_gbps;
    map_fini(&p.keys);
    free(p.patterns);
    free(p.flows.all);
    return p.plan;
}

void flow_plan_destroy(struct flow_plan *plan)
{
    if (!plan)
        return;
    for (size_t i = 0; i < plan->log_count; i++)
        free(plan->flows[i]);
    free(plan->flows);
    free(plan->alone_gbps);
    flow_network_fini(&plan->network);
    free(plan);
}

const struct simulation_flow *flow_plan_of(const struct flow_plan *plan,
                                           size_t log)
{
    return log < plan->log_count ? plan->flows[log] : NULL;
}

struct simulation_network *flow_plan_network(const struct flow_plan *plan)
{
    return (struct simulation_network *)(uintptr_t)&plan->network;
}

struct flow_plan_size flow_plan_size(const struct flow_plan *plan)
{
    return (struct flow_plan_size){plan->network.shares.pattern_count,
                                   plan->network.shares.row_count, plan->jobs,
                                   plan->unknown};
}
