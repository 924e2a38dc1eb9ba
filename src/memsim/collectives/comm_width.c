/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/collectives/comm_width.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"

#define SMALL_BYTES 4096 /* of a norm, a loss, a count of tokens */

/* What a communicator is used for, by kind, in steps. */
struct use {
    uint64_t forward[COMM_KINDS], later[COMM_KINDS];
};

/* A profile has no phases. Its forward gathers whatever the group is for. */
static bool is_forward(const struct comm_log *log, const struct comm_call *c)
{
    if (!log->imported)
        return c->phase == TRACE_PHASE_FORWARD ||
               c->phase == TRACE_PHASE_RECOMPUTE;
    return c->in_forward &&
           (c->kind == COMM_REDUCE_SCATTER || c->kind == COMM_ALL_REDUCE);
}

/* A profile's all-reduce that is no gradients'. */
static bool is_small(const struct comm_log *log, const struct comm_call *c)
{
    return log->imported && c->kind == COMM_ALL_REDUCE && c->bytes &&
           c->bytes <= SMALL_BYTES;
}

static struct use *uses_count(const struct comm_log *log)
{
    struct use *uses = xcalloc(log->comm_count + 1, sizeof *uses);

    for (size_t i = 0; i < log->call_count; i++) {
        const struct comm_call *c = &log->calls[i];
        if (is_small(log, c))
            continue;
        if (is_forward(log, c))
            uses[c->comm].forward[c->kind]++;
        else if (log->imported || c->phase >= TRACE_PHASE_BACKWARD)
            uses[c->comm].later[c->kind]++;
    }
    return uses;
}

static bool use_shards(const struct use *u)
{
    return u->later[COMM_REDUCE_SCATTER] > 0;
}

static bool use_scatters(const struct use *u)
{
    return use_shards(u) || u->forward[COMM_REDUCE_SCATTER] > 0;
}

static uint64_t forward_calls(const struct use *u)
{
    uint64_t calls = 0;

    for (int k = 0; k < COMM_KINDS; k++)
        calls += k == COMM_BROADCAST ? 0 : u->forward[k]; /* of buffers */
    return calls;
}

/* All-reduces and nothing else. NAMED: whatever the forward does. */
static bool use_averages(const struct use *u, bool named)
{
    uint64_t forward = forward_calls(u);

    return (u->later[COMM_ALL_REDUCE] || (named && forward)) &&
           (named || !forward) && !u->later[COMM_PAIR] &&
           !u->later[COMM_ALL_GATHER];
}

/* Is a profile's group with USE one of shards? One that reduce-scatters in the
 * forward, as for tensor parallelism, has to be named. */
static bool shards_profile(const struct comm_log *log, const struct use *u,
                           const char *average)
{
    return log->imported && use_scatters(u) &&
           (average || !u->forward[COMM_REDUCE_SCATTER]);
}

/* A profile's group is named as the profile does. */
static bool is_named(const struct comm *c, const char *average)
{
    size_t length = average ? strlen(average) : 0;

    return !average ||
           (length < sizeof c->id && !memcmp(c->id, average, length) &&
            (c->id[length] == ' ' || !c->id[length]));
}

static int refuse_several(const struct comm_log *log, const bool *is_data,
                          struct err *err)
{
    const char *names[2] = {"", ""};
    size_t count = 0;

    for (size_t i = 0; i < log->comm_count; i++)
        if (is_data[i] && count++ < 2)
            names[count - 1] = log->comms[i].id;
    if (!log->imported || count < 2)
        return 0;
    return err_set(err,
                   "--dp: %zu groups of the profile may average, such as "
                   "'%.*s' and '%.*s': name the one that averages gradients "
                   "with --average",
                   count, (int)strcspn(names[0], " "), names[0],
                   (int)strcspn(names[1], " "), names[1]);
}

static int refuse_layers(uint32_t ranks, struct err *err)
{
    return err_set(err,
                   "--dp: the group of %" PRIu32 " ranks reduce-scatters in "
                   "the forward, too, as for tensor parallelism, or the "
                   "backward has no thread of its own: if it is the one of "
                   "data parallelism, name it with --average",
                   ranks);
}

/* A profile without a group that only averages. SPLIT: the ranks of one that
 * all-reduces in the forward; 0: there is none. */
static int refuse_profile(const struct comm_log *log, uint32_t split,
                          struct err *err)
{
    if (!log->has_backward)
        return err_set(err, "%s",
                       "--dp: the profile does not say where its backward is: "
                       "one thread launches all kernels. If a group averages "
                       "gradients, name it with --average");
    if (split)
        return err_set(err,
                       "--dp: the group of %" PRIu32 " ranks all-reduces in "
                       "the forward, as for tensor parallelism, and no other "
                       "one averages gradients. With record_shapes=True the "
                       "profile says where gradients are ready, and --dp puts "
                       "in what DistributedDataParallel does; if the group is "
                       "the one of data parallelism, name it with --average",
                       split);
    return err_set(err, "--dp: rank %" PRIu32 " of the profile all-reduces no "
                        "gradients: there is no data-parallel group",
                   log->rank);
}

static int refuse_recording(const struct comm_log *log, uint32_t sharded,
                            struct err *err)
{
    if (sharded)
        return err_set(err,
                       "--dp: parameters, gradients or the optimizer's state "
                       "are sharded over %" PRIu32 " ranks (ZeRO, FSDP): "
                       "another width changes memory, too. Run the job with "
                       "that width",
                       sharded);
    return err_set(err, "--dp: rank %" PRIu32 " all-reduces no gradients in "
                        "backward: there is no data-parallel group",
                   log->rank);
}

/* Is what all-reduces alone a group of gradients? One thread's profile does not
 * say, unless the group is named. */
static bool knows_averages(const struct comm_log *log, const char *average)
{
    return !log->imported || log->has_backward || average;
}

/* Does USE average gradients, or shards of them? */
static bool is_average(const struct comm_log *log, const struct use *u,
                       const char *average)
{
    return shards_profile(log, u, average) ||
           (knows_averages(log, average) &&
            use_averages(u, log->imported && average) && !use_shards(u));
}

/* Ranks of groups that do something else than to average; 0: there is none. */
struct groups {
    uint32_t sharded, split;
};

static void groups_add(struct groups *g, const struct comm_log *log,
                       size_t comm, const struct use *u)
{
    uint32_t own = log->comms[comm].ranks;

    if (own < 2)
        return;
    if ((log->imported ? use_scatters : use_shards)(u))
        g->sharded = own;
    if (u->forward[COMM_ALL_REDUCE])
        g->split = own;
}

static int refuse_all(const struct comm_log *log, const struct groups *g,
                      struct err *err)
{
    if (!log->imported)
        return refuse_recording(log, g->sharded, err);
    return g->sharded ? refuse_layers(g->sharded, err)
                      : refuse_profile(log, g->split, err);
}

int comm_width_find(const struct comm_log *log, const char *average,
                    bool *is_data, struct comm_width *width, struct err *err)
{
    struct use *uses = uses_count(log);
    struct groups found = {0, 0};

    *width = (struct comm_width){.ranks = 0};
    for (size_t i = 0; i < log->comm_count; i++) {
        is_data[i] = log->comms[i].ranks > 1 &&
                     is_named(&log->comms[i], average) &&
                     is_average(log, &uses[i], average);
        if (is_data[i])
            *width = (struct comm_width){
                log->comms[i].ranks, shards_profile(log, &uses[i], average)};
        groups_add(&found, log, i, &uses[i]);
    }
    free(uses);
    if (width->ranks)
        return refuse_several(log, is_data, err);
    return log->call_count ? refuse_all(log, &found, err) : 0;
}

struct comm_place comm_width_place(const struct comm_log *log,
                                   const struct comm *c, uint32_t ranks,
                                   uint32_t width)
{
    struct comm_place place = {.nodes = 0, .users = 1};

    if (!c->members || c->ranks < 2)
        return place;
    uint64_t apart = c->members[1] - c->members[0];
    uint32_t here = (uint32_t)(apart < width ? width / apart : 1);
    uint64_t world = (uint64_t)log->world / c->ranks * ranks;
    uint64_t node = world && world < width ? world : width;
    here = here < ranks ? here : ranks;
    place.gpus_per_node = here ? here : 1;
    place.nodes = (ranks + place.gpus_per_node - 1) / place.gpus_per_node;
    if (place.nodes > 1)
        place.users = (double)node / (double)place.gpus_per_node;
    return place;
}
