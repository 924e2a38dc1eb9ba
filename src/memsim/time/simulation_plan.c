/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/time/simulation_plan.h"

#include <stdlib.h>

#include "common/base/xmalloc.h"

#define THREADS_MAX 4096 /* whose allocations are compared */

struct simulation_pass {
    struct step_finder *finder;
    struct op_trace *ops;
    struct host_calls calls;
    struct host_looks looks;
    struct comm_log *comms;
    /* What the last allocation of a thread said of its place, which holds until
     * the thread enters or leaves a module. */
    struct place {
        bool known;
        uint64_t module, operator;
    } places[THREADS_MAX];
    /* The record behind the last work, where it is not kept: the last step may
     * end there. */
    struct trace_item mark;
    bool after_work, has_mark;
};

/* --- records that are kept ------------------------------------------------ */

static struct place *place_of(struct simulation_pass *pass, uint32_t thread)
{
    return thread < THREADS_MAX ? &pass->places[thread] : NULL;
}

/* Does ITEM, an allocation, say what op_trace knows already? */
static bool is_same_place(struct simulation_pass *pass,
                          const struct trace_item *item)
{
    const struct trace_block_alloc *alloc = trace_as_block_alloc(item);
    struct place *p = place_of(pass, item->head.thread);

    if (!p)
        return false;
    if (p->known && p->module == alloc->module &&
        p->operator == alloc->operator)
        return true;
    *p = (struct place){true, alloc->module, alloc->operator};
    return false;
}

/* Keeps what op_trace reads of an allocation. */
static void keep_alloc(struct simulation_plan *plan,
                       const struct trace_item *item)
{
    const struct trace_block_alloc *alloc = trace_as_block_alloc(item);
    const struct trace_block_alloc place = {.module = alloc->module,
                                            .operator= alloc->operator};
    struct trace_item kept = *item;

    kept.fields = (const uint64_t *)&place;
    trace_kept_add(plan->kept, &kept);
}

static void keep_mark(struct simulation_plan *plan)
{
    if (plan->pass->has_mark)
        trace_kept_add(plan->kept, &plan->pass->mark);
    plan->pass->has_mark = false;
}

/* Makes ITEM, which is not kept, the mark where it follows work. */
static void skip_item(struct simulation_pass *pass,
                      const struct trace_item *item)
{
    static const uint64_t no_fields[TRACE_FIELDS_MAX];

    if (!pass->after_work)
        return;
    pass->mark = *item;
    pass->mark.head.kind = TRACE_MARK;
    pass->mark.head.fields = 0;
    pass->mark.head.text_bytes = 0;
    pass->mark.fields = no_fields;
    pass->mark.text = NULL;
    pass->has_mark = true;
    pass->after_work = false;
}

static void place_forget(struct simulation_pass *pass,
                         const struct trace_item *item)
{
    struct place *p = place_of(pass, item->head.thread);

    if (p && item->head.kind >= TRACE_MODULE_ENTER &&
        item->head.kind <= TRACE_PHASE)
        p->known = false;
}

static void keep_work(struct simulation_plan *plan,
                      const struct trace_item *item)
{
    struct simulation_pass *pass = plan->pass;
    bool allocates = item->head.kind == TRACE_BLOCK_ALLOC;

    if (trace_kind_for(item->head.kind) != TRACE_FOR_TIME ||
        (allocates && is_same_place(pass, item))) {
        skip_item(pass, item);
        return;
    }
    pass->after_work = step_is_work(item->head.kind);
    if (pass->after_work)
        pass->has_mark = false;
    keep_mark(plan);
    place_forget(pass, item);
    if (allocates)
        keep_alloc(plan, item);
    else
        trace_kept_add(plan->kept, item);
}

/* --- the pass ------------------------------------------------------------- */

static void pass_op(void *context, const struct op *op)
{
    struct simulation_pass *pass = context;

    host_calls_take(&pass->calls, op);
    comm_log_op(pass->comms, op);
}

static void pass_take(void *context, const struct trace_item *item,
                      const struct trace_now *now)
{
    struct simulation_plan *plan = context;
    struct simulation_pass *pass = plan->pass;

    pass->calls.record = now->ordinal;
    step_finder_take(pass->finder, item);
    comm_log_record(pass->comms, item);
    op_trace_add(pass->ops, item);
    host_looks_take(&pass->looks, item);
    if (plan->keep == SIMULATION_KEEP_ALL)
        trace_kept_add(plan->kept, item);
    else if (plan->keep == SIMULATION_KEEP_WORK)
        keep_work(plan, item);
}

static void pass_end(void *context, const struct trace_now *now)
{
    struct simulation_plan *plan = context;
    struct simulation_pass *pass = plan->pass;

    (void)now;
    if (plan->kept)
        keep_mark(plan);
    if (plan->kept && !trace_kept_is_whole(plan->kept))
        simulation_plan_forget(plan);
    op_trace_end(pass->ops);
    op_trace_destroy(pass->ops);
    step_finder_conclude(pass->finder, &plan->steps);
    host_times_make(&plan->times, &pass->calls, &plan->steps);
    plan->times.busy =
        host_busy_make(&pass->looks, &plan->steps, plan->times.typical);
    free(pass);
    plan->pass = NULL;
}

struct trace_listener simulation_plan_init(struct simulation_plan *plan,
                                           enum simulation_keep keep,
                                           size_t most_bytes)
{
    struct simulation_pass *pass = xcalloc(1, sizeof *pass);

    pass->finder = step_finder_create();
    pass->ops = op_trace_create(pass_op, pass);
    *plan = (struct simulation_plan){.pass = pass, .keep = keep};
    pass->comms = &plan->comms;
    if (keep)
        plan->kept = trace_kept_create(most_bytes);
    return (struct trace_listener){
        .take = pass_take, .end = pass_end, .context = plan};
}

void simulation_plan_forget(struct simulation_plan *plan)
{
    trace_kept_destroy(plan->kept);
    plan->kept = NULL;
}

void simulation_plan_fini(struct simulation_plan *plan)
{
    if (plan->pass)
        pass_end(plan, NULL);
    simulation_plan_forget(plan);
    step_list_fini(&plan->steps);
    host_times_fini(&plan->times);
    comm_log_fini(&plan->comms);
}

int simulation_plan_read(struct simulation_plan *plan, const char *path,
                         enum simulation_keep keep, struct err *err)
{
    const struct trace_listener listener =
        simulation_plan_init(plan, keep, SIMULATION_KEPT_BYTES);
    int rc = trace_play_file(path, &listener, err);

    if (rc)
        simulation_plan_fini(plan);
    return rc;
}
