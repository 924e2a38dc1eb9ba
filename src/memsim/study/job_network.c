/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/study/job_network.h"

#include <inttypes.h>

#include "memsim/collectives/comm_wider.h"

static void note_network(const struct cluster *c, const struct flow_plan *plan,
                         struct result *result)
{
    struct flow_plan_size size = flow_plan_size(plan);

    result_note(result,
                "--cluster %s: collectives between nodes share its network "
                "(%s); they use it in %" PRIu32 " ways, which %" PRIu32
                " kinds of links limit. The program's own clock has each "
                "collective alone: a step that the script printed has no "
                "sharing in it",
                c->name, c->network->about, size.patterns, size.rows);
    if (size.jobs > 1)
        result_note(result,
                    "--placement has %" PRIu32 " jobs like this one: their "
                    "collectives come at the same times and share the network",
                    size.jobs);
    if (size.unknown)
        result_note(result,
                    "of %" PRIu64 " collectives it is not known which links "
                    "they use: they slow nobody down",
                    size.unknown);
}

static int plan_make(const struct flow_job *flows, struct result *result,
                     struct flow_plan **plan, struct err *err)
{
    *plan = flow_plan_create(flows, err);
    if (!*plan)
        return -1;
    note_network(flows->cluster, *plan, result);
    return 0;
}

/* The plan of W, the wider job of N. */
static int wider_plan(const struct job_network *n,
                      const struct comm_wider *w, struct result *result,
                      struct flow_plan **plan, struct err *err)
{
    struct flow_job flows = n->flows;
    struct placement placement;
    int rc;

    if (placement_make(&placement, n->placement, w->classes.world,
                       n->flows.placement->width, err))
        return -1;
    flows.logs = w->logs;
    flows.classes = &w->classes;
    flows.placement = &placement;
    rc = plan_make(&flows, result, plan, err);
    placement_fini(&placement);
    return rc;
}

int job_network_plan(const struct job_network *n, struct result *result,
                     struct flow_plan **plan, struct err *err)
{
    const struct flow_job *f = &n->flows;
    struct comm_wider wider;

    *plan = NULL;
    if (!n->data_parallel)
        return plan_make(f, result, plan, err);
    if (!comm_wider_make(&wider, f->logs, f->count, f->classes, n->average,
                         n->data_parallel)) {
        result_note(result,
                    "--cluster %s: in which order %" PRIu32
                    " ranks average gradients is not known: collectives have "
                    "their prices alone, without its network",
                    f->cluster->name, n->data_parallel);
        return 0;
    }
    int rc = wider_plan(n, &wider, result, plan, err);
    comm_wider_fini(&wider);
    return rc;
}
