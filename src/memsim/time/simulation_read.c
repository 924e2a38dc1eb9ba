/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/time/simulation_read.h"

#include <stdlib.h>

#include "common/base/xmalloc.h"
#include "memsim/time/simulation_job.h"

static int records_read(struct simulator *s, const char *path, struct err *err)
{
    struct trace_reader reader;
    struct trace_item item;
    int rc;

    if (trace_reader_open(&reader, path, err))
        return -1;
    while ((rc = trace_reader_next(&reader, &item, err)) > 0)
        simulator_add(s, &item);
    trace_reader_close(&reader);
    simulator_end(s);
    return rc;
}

/* Simulates PATH as PLAN says. */
static int run_plan(struct simulation *t, const char *path,
                    const struct simulation_options *options,
                    const struct simulation_plan *plan,
                    const struct simulation_sink *sink,
                    struct trace_names *names, struct err *err)
{
    t->steps = step_list_copy(&plan->steps);
    t->begins = xcalloc(t->steps.count + 1, sizeof *t->begins);
    t->ends = xcalloc(t->steps.count + 1, sizeof *t->ends);
    struct simulator *s = simulator_create(
        t, options, options->host_as_recorded ? NULL : &plan->times, sink);
    int rc = records_read(s, path, err);
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
    struct simulation_plan own;

    if (options->peers)
        return simulation_among(t, options, sink, names, err);
    *t = (struct simulation){.device_count = 0};
    if (!options->plan && simulation_plan_read(&own, path, err))
        return -1;
    int rc = run_plan(t, path, options, options->plan ? options->plan : &own,
                      sink, names, err);
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
