/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/study/job_together.h"

#include <inttypes.h>
#include <string.h>

#include "common/base/xmalloc.h"

uint32_t job_own_world(const struct study_job *j)
{
    uint32_t world = j->classes.world;

    for (size_t i = 0; i < j->count; i++)
        if (j->ranks[i].plan->comms.world > world)
            world = j->ranks[i].plan->comms.world;
    return world;
}

struct simulation_peers job_peers(const struct study_job *j)
{
    return (struct simulation_peers){j->ranks, j->count, j->joined,
                                     j->beside.count};
}

static int beside_check(const struct study_job *j, struct err *err)
{
    if (j->t->timeline.data_parallel)
        return err_set(err, "--beside is for jobs as they were recorded, "
                            "without --dp");
    for (size_t i = 0; i < j->count; i++)
        if (j->ranks[i].plan->comms.imported)
            return err_set(err, "--beside: of a profile's collectives it is "
                                "not known which links they use");
    return 0;
}

int job_together_add(struct study_job *j, struct err *err)
{
    struct job_beside *b = &j->beside;

    if (beside_check(j, err) ||
        job_beside_read(b, j->t->options->beside, job_own_world(j), err))
        return -1;
    j->ranks = xreallocarray(j->ranks, j->count + b->count + 1,
                             sizeof *j->ranks);
    memcpy(j->ranks + j->count, b->ranks, b->count * sizeof *j->ranks);
    job_beside_classes(b, &j->classes, &j->all);
    return 0;
}

void job_together_align(const struct study_job *j)
{
    const struct simulation_peers peers = job_peers(j);
    const char *path = j->t->options->beside;
    struct job_beside_steps steps =
        job_beside_align(&peers, j->joined, &j->timeline);

    result_note(j->result,
                "--beside %s: its %" PRIu32 " ranks are behind this job's %"
                PRIu32 "; the second steps of both begin together",
                path, j->beside.world, j->beside.first);
    if (!j->t->cluster.network)
        result_note(j->result,
                    "--cluster %s has no network that the jobs share: they "
                    "slow nobody down",
                    j->t->cluster.name);
    if (!steps.own)
        result_note(j->result,
                    "--beside %s: one of the jobs has no steps: both "
                    "recordings begin together",
                    path);
    else if (steps.covered < steps.own)
        result_note(j->result,
                    "--beside %s ends before %zu of %zu steps of this job (the "
                    "first of several is not counted): they have the network "
                    "alone; record it with more steps",
                    path, steps.own - steps.covered, steps.own);
}
