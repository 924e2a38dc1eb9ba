/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/time/simulation_read.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"
#include "memsim/time/simulation_source.h"

/* Simulates PATH as the plan of OPTIONS says. */
static int run_plan(struct simulation *t, const char *path,
                    const struct simulation_options *options,
                    const struct simulation_sink *sink,
                    struct trace_names *names, struct err *err)
{
    const struct simulation_plan *plan = options->plan;
    struct simulation_source source;
    struct trace_item item;

    t->steps = step_list_copy(&plan->steps);
    t->begins = xcalloc(t->steps.count + 1, sizeof *t->begins);
    t->ends = xcalloc(t->steps.count + 1, sizeof *t->ends);
    struct simulator *s = simulator_create(
        t, options, options->host_as_recorded ? NULL : &plan->times, sink);
    int rc = simulation_source_open(&source, path, plan, sink, err);
    if (!rc) {
        while ((rc = simulation_source_next(&source, &item, err)) > 0)
            simulator_add(s, &item);
        simulation_source_close(&source);
        simulator_end(s);
    }
    if (names)
        *names = simulator_names_take(s);
    simulator_destroy(s);
    return rc;
}

int simulation_run(struct simulation *t, const char *path,
                   const struct simulation_options *options,
                   const struct simulation_sink *sink,
                   struct trace_names *names, struct err *err)
{
    struct simulation_options planned = *options;
    struct simulation_plan own;

    *t = (struct simulation){.device_count = 0};
    if (!options->plan &&
        simulation_plan_read(&own, path, simulation_keep_for(sink), err))
        return -1;
    if (!options->plan)
        planned.plan = &own;
    int rc = run_plan(t, path, &planned, sink, names, err);
    if (!options->plan)
        simulation_plan_fini(&own);
    if (rc)
        simulation_fini(t);
    return rc;
}

void simulation_fini(struct simulation *t)
{
    step_list_fini(&t->steps);
    free(t->begins);
    free(t->ends);
    *t = (struct simulation){.device_count = 0};
}

static struct simulation_moment *
moments_copy(const struct simulation_moment *moments, size_t count)
{
    struct simulation_moment *copy = xcalloc(count + 1, sizeof *copy);

    if (count)
        memcpy(copy, moments, count * sizeof *copy);
    return copy;
}

struct simulation simulation_copy(const struct simulation *t)
{
    struct simulation copy = *t;

    copy.steps = step_list_copy(&t->steps);
    copy.begins = moments_copy(t->begins, t->steps.count);
    copy.ends = moments_copy(t->ends, t->steps.count);
    return copy;
}
