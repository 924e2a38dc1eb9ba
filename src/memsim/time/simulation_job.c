/* SPDX-License-Identifier: Apache-2.0
 * Each rank's host makes its calls until it waits; when all wait, the devices
 * run until one of them waits no more. */
#include "memsim/time/simulation_job.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"
#include "memsim/collectives/comm_place.h"
#include "memsim/collectives/comm_width.h"
#include "memsim/time/flow_plan.h"
#include "memsim/time/simulation_read.h"
#include "memsim/time/simulation_source.h"

/* A rank that is being simulated. */
struct player {
    struct simulation_rank *rank;
    struct simulator *simulator;
    struct simulation_source source;
    struct price_place *places; /* NULL: no cluster is known */
    struct simulation_delays delays;
    bool open, done;
};

/* Gives calls of the data-parallel communicators another number of ranks. */
static void places_widen(const struct comm_log *log,
                         const struct simulation_options *o, uint32_t width,
                         struct price_place *places)
{
    uint32_t ranks = o->data_parallel;
    bool *is_data = xcalloc(log->comm_count + 1, sizeof *is_data);
    struct err ignored = {""};
    struct comm_width own;

    if (!comm_width_find(log, o->average, is_data, &own, &ignored))
        for (size_t i = 0; i < log->call_count; i++) {
            const struct comm *c = &log->comms[log->calls[i].comm];
            if (!is_data[log->calls[i].comm])
                continue;
            struct comm_place at = comm_width_place(log, c, ranks, width);
            places[i] = (struct price_place){
                .nodes = at.nodes,
                .gpus_per_node = at.gpus_per_node,
                .users = at.users,
                .ranks = ranks,
            };
        }
    free(is_data);
}

static struct price_place *places_make(const struct comm_log *log,
                                       const struct simulation_options *o)
{
    const struct cluster *cluster = o->price.cluster;
    const struct placement blocks = {
        .width = cluster ? cluster_width(cluster, log->local) : 1};
    const struct placement *at = o->placement ? o->placement : &blocks;
    struct comm_place *found;
    struct price_place *places;

    if (!cluster && !o->data_parallel)
        return NULL;
    found = xcalloc(log->call_count + 1, sizeof *found);
    places = xcalloc(log->call_count + 1, sizeof *places);
    if (cluster)
        comm_places_find(log, at, found);
    for (size_t i = 0; i < log->call_count; i++)
        places[i] = (struct price_place){.nodes = found[i].nodes,
                                         .gpus_per_node =
                                             found[i].gpus_per_node,
                                         .users = found[i].users};
    free(found);
    if (o->data_parallel)
        places_widen(log, o, at->width, places);
    return places;
}

/* The most collectives that share a node's network, of COUNT priced calls. */
static double users_most(const struct price_place *places, size_t count)
{
    double most = 0;

    for (size_t i = 0; places && i < count; i++)
        if (places[i].nodes > 1 && places[i].users > most)
            most = places[i].users;
    return most;
}

static void player_stop(struct player *p)
{
    if (p->open)
        simulation_source_close(&p->source);
    p->open = false;
}

static void player_start(struct player *p,
                         const struct simulation_options *options)
{
    struct simulation_rank *rank = p->rank;
    struct simulation *t = &rank->result;

    t->steps = step_list_copy(&rank->plan->steps);
    t->begins = xcalloc(t->steps.count + 1, sizeof *t->begins);
    t->ends = xcalloc(t->steps.count + 1, sizeof *t->ends);
    p->simulator = simulator_create(
        t, options, options->host_as_recorded ? NULL : &rank->plan->times,
        &rank->sink);
    if (simulation_source_open(&p->source, rank->path, rank->plan,
                               &rank->sink, &rank->err))
        rank->failed = p->done = true;
    else
        p->open = true;
}

/* Makes the calls of P's host until it waits or has no more. */
static void player_go(struct player *p)
{
    struct trace_item item;

    while (!p->done && !simulator_waits(p->simulator)) {
        int rc = p->open ? simulation_source_next(&p->source, &item,
                                                  &p->rank->err)
                         : 0;
        if (rc > 0) {
            simulator_add(p->simulator, &item);
            continue;
        }
        p->rank->failed = p->rank->failed || rc < 0;
        if (p->open) {
            player_stop(p);
            simulator_end(p->simulator);
        } else {
            p->done = true;
        }
    }
}

/* Returns whether all have ended. */
static bool players_go(struct player *players, size_t count)
{
    bool done = true;

    for (size_t i = 0; i < count; i++) {
        player_go(&players[i]);
        done = done && players[i].done;
    }
    return done;
}

static struct simulation_pair *pairs_make(const struct comm_job *job)
{
    struct simulation_pair *pairs = xcalloc(job->pair_count + 1, sizeof *pairs);

    for (size_t i = 0; i < job->pair_count; i++) {
        const struct comm_pair *p = &job->pairs[i];
        pairs[i] = (struct simulation_pair){
            .meet = p->other,
            .part = world_part(p->bytes, p->whole,
                               job->meets[p->meet].pair_count),
            .other_part = world_part(p->bytes, p->other_whole,
                                  job->meets[p->other].pair_count),
        };
    }
    return pairs;
}

static struct simulation_meet *meets_make(const struct comm_job *job,
                                          const struct simulation_pair *pairs)
{
    struct simulation_meet *meets =
        xcalloc(job->meet_count + 1, sizeof *meets);

    for (size_t i = 0; i < job->meet_count; i++)
        meets[i] = (struct simulation_meet){
            .expected = job->meets[i].expected,
            .neighbour = job->meets[i].neighbour,
            .pairs = pairs + job->meets[i].pair_first,
            .pair_count = job->meets[i].pair_count,
        };
    return meets;
}

void simulation_job(struct simulation_rank *ranks, size_t count,
                    const struct comm_job *job,
                    const struct simulation_options *options)
{
    struct simulation_pair *pairs = pairs_make(job);
    struct simulation_meet *meets = meets_make(job, pairs);
    struct simulation_world *world = world_create(meets, true);
    struct player *players = xcalloc(count + 1, sizeof *players);

    if (options->flow_plan)
        world_share(world, flow_plan_network(options->flow_plan));
    for (size_t i = 0; i < count; i++) {
        struct simulation_options own = *options;
        own.world = world;
        own.meets = job->meets_of[i];
        own.meet_ns = job->lasts_of[i];
        own.start_ns = job->start_ns[i];
        own.price.slow = ranks[i].slow;
        if (options->delays) {
            players[i].delays = *options->delays;
            players[i].delays.ranks = &ranks[i].who;
            own.delays = &players[i].delays;
        }
        own.flows =
            options->flow_plan ? flow_plan_of(options->flow_plan, i) : NULL;
        players[i].rank = &ranks[i];
        players[i].places =
            places_make(&ranks[i].plan->comms, options);
        own.places = players[i].places;
        ranks[i].result.network_users = users_most(
            players[i].places, ranks[i].plan->comms.call_count);
        player_start(&players[i], &own);
    }
    while (!players_go(players, count) && world_run(world))
        continue;
    sim_drain(world->sim);
    for (size_t i = 0; i < count; i++) {
        simulator_conclude(players[i].simulator);
        if (ranks[i].names)
            *ranks[i].names = simulator_names_take(players[i].simulator);
        simulator_destroy(players[i].simulator);
        player_stop(&players[i]);
        free(players[i].places);
        if (ranks[i].failed)
            simulation_fini(&ranks[i].result);
    }
    free(players);
    world_destroy(world);
    free(meets);
    free(pairs);
}

void simulation_ranks_fini(struct simulation_rank *ranks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!ranks[i].failed)
            simulation_fini(&ranks[i].result);
}

struct comm_job *simulation_join(const struct simulation_rank *ranks,
                                 size_t count,
                                 const struct comm_classes *classes)
{
    const struct comm_log **logs =
        xcalloc(count + 1, sizeof(const struct comm_log *));

    for (size_t i = 0; i < count; i++)
        logs[i] = &ranks[i].plan->comms;
    struct comm_job *job = comm_job_create(logs, count, classes);
    free(logs);
    return job;
}
