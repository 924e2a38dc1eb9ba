/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/cli/run_emulate.h"

#include "memsim/cluster/stragglers.h"

static uint32_t real_rank(const struct job *job)
{
    uint32_t rank = 0;

    rank_set_next(&job->launch.ranks, 0, &rank);
    return rank;
}

int run_emulate_check(const struct job *job, const struct output_options *o,
                      struct err *err)
{
    const struct launch *l = &job->launch;

    if (!l->world)
        return err_set(err, "memsim emulate: how many ranks has the job? Give "
                            "--nnodes and --nproc-per-node");
    if (l->ranks.count != 1)
        return err_set(err,
                       "memsim emulate: one rank can be real, but --ranks "
                       "names %u: emulate them one after another, each with "
                       "its own --ranks",
                       l->ranks.count);
    if (o->placement)
        return err_set(err, "memsim emulate: --placement is for simulated "
                            "ranks; emulated ones fill nodes in order");
    return 0;
}

int run_emulate_cards(const struct job *job, const struct real_cards *cards,
                      struct err *err)
{
    uint32_t rank = real_rank(job), local = rank % job->launch.local;

    if (local < cards->count)
        return 0;
    return err_set(err,
                   "memsim emulate: rank %u uses GPU %u of its node, and this "
                   "machine has %u: give --ranks one of the first %u of a "
                   "node, such as %u",
                   rank, local, cards->count, cards->count, rank - local);
}

double run_emulate_slowest(const struct job *job,
                           const struct output_options *o)
{
    struct stragglers s;
    struct rank_set others = {0};
    struct err ignored = {""};
    double slowest = 0;

    if (!o->stragglers || stragglers_parse(o->stragglers, &s, &ignored))
        return 0;
    for (uint32_t r = 0; r < job->launch.world; r++)
        if (r != real_rank(job))
            rank_set_add(&others, r);
    slowest = stragglers_slowest(&s, &others);
    rank_set_fini(&others);
    return slowest;
}
