/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/time/simulation_plan.h"

#include <stdlib.h>

#include "common/base/xmalloc.h"

struct simulation_pass {
    struct step_finder *finder;
    struct op_trace *ops;
    struct host_calls calls;
    struct comm_log *comms;
};

static void pass_op(void *context, const struct op *op)
{
    struct simulation_pass *pass = context;

    host_calls_take(&pass->calls, op);
    comm_log_op(pass->comms, op);
}

static void pass_take(void *context, const struct trace_item *item,
                      const struct trace_now *now)
{
    struct simulation_pass *pass = ((struct simulation_plan *)context)->pass;

    pass->calls.record = now->ordinal;
    step_finder_take(pass->finder, item);
    comm_log_record(pass->comms, item);
    op_trace_add(pass->ops, item);
}

static void pass_end(void *context, const struct trace_now *now)
{
    struct simulation_plan *plan = context;
    struct simulation_pass *pass = plan->pass;

    (void)now;
    op_trace_end(pass->ops);
    op_trace_destroy(pass->ops);
    step_finder_conclude(pass->finder, &plan->steps);
    host_times_make(&plan->times, &pass->calls, &plan->steps);
    free(pass);
    plan->pass = NULL;
}

struct trace_listener simulation_plan_init(struct simulation_plan *plan)
{
    struct simulation_pass *pass = xcalloc(1, sizeof *pass);

    pass->finder = step_finder_create();
    pass->ops = op_trace_create(pass_op, pass);
    *plan = (struct simulation_plan){.pass = pass};
    pass->comms = &plan->comms;
    return (struct trace_listener){pass_take, pass_end, plan};
}

void simulation_plan_fini(struct simulation_plan *plan)
{
    if (plan->pass)
        pass_end(plan, NULL);
    step_list_fini(&plan->steps);
    host_times_fini(&plan->times);
    comm_log_fini(&plan->comms);
}

int simulation_plan_read(struct simulation_plan *plan, const char *path,
                         struct err *err)
{
    const struct trace_listener listener = simulation_plan_init(plan);
    struct trace_reader reader;
    int rc = trace_reader_open(&reader, path, err);

    if (!rc) {
        rc = trace_play(&reader, &listener, 1, err);
        trace_reader_close(&reader);
    }
    if (rc)
        simulation_plan_fini(plan);
    return rc;
}
