/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/cli/run_emulate.h"

#include <string.h>

#include "memsim/study/delay_options.h"
#include "playback/stragglers.h"

static const char entry_rule[] =
    "memsim emulate: --delay %s: what the kernels of a rank that is not run "
    "take is not known; give a time (gemm=1ms), or gpu=1.5x";

/* Whether E is about rank R of JOB. */
static bool is_about(const struct delay *e, const struct job *job, uint32_t r)
{
    return (e->rank == DELAY_ANY || e->rank == r) &&
           (e->node == DELAY_ANY || e->node == r / job->launch.local);
}

/* How long a kernel takes is known of real ones. */
static bool is_possible(const struct delay *e, const struct job *job)
{
    if (e->kind != DELAY_CALL || !(e->factor > 0) || strstr(e->name, "nccl"))
        return true;
    for (uint32_t r = 0; rank_set_next(&job->launch.ranks, r, &r); r++)
        if (is_about(e, job, r))
            return true;
    return false;
}

static int check_delays(const struct job *job, const struct output_options *o,
                        struct err *err)
{
    struct delays d;
    char text[160];

    if (study_delay_read(&o->study, &d, err))
        return -1;
    for (uint32_t i = 0; i < d.count; i++)
        if (!is_possible(&d.all[i], job))
            return err_set(err, entry_rule,
                           delay_text(&d.all[i], text, sizeof text));
    return 0;
}

int run_emulate_check(const struct job *job, const struct output_options *o,
                      struct err *err)
{
    if (job->launch.chooses)
        return err_set(err, "memsim emulate: which ranks are real? Name them, "
                            "as in --ranks 0,1; without --ranks rank 0 is");
    if (check_delays(job, o, err))
        return -1;
    if (o->study.placement)
        return err_set(err, "memsim emulate: --placement is for simulated "
                            "ranks; emulated ones fill nodes in order");
    return 0;
}

int run_emulate_cards(const struct job *job, const struct real_cards *cards,
                      struct err *err)
{
    const struct launch *l = &job->launch;

    for (uint32_t r = 0; rank_set_next(&l->ranks, r, &r); r++)
        if (r % l->local >= cards->count)
            return err_set(err,
                           "memsim emulate: rank %u uses GPU %u of its node, "
                           "and there %s here; name ranks with a GPU that is "
                           "here",
                           r, r % l->local,
                           cards->count == 1 ? "is one GPU" : "are fewer GPUs");
    return 0;
}

double run_emulate_slowest(const struct job *job,
                           const struct output_options *o)
{
    struct stragglers s;
    struct rank_set others = {0};
    struct err ignored = {""};
    double slowest = 0;

    if (!o->study.stragglers ||
        stragglers_parse(o->study.stragglers, &s, &ignored))
        return 0;
    for (uint32_t r = 0; r < job->launch.world; r++)
        if (!rank_set_has(&job->launch.ranks, r))
            rank_set_add(&others, r);
    slowest = stragglers_slowest(&s, &others);
    rank_set_fini(&others);
    return slowest;
}
