/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/time/time_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/bisect.h"
#include "common/base/xmalloc.h"

#define TICKS_MAX 1000000 /* of more, every second one is kept */

struct time_keeper {
    struct time_log *log;
    uint32_t step;
    size_t op_capacity, call_capacity, tick_capacity;
    uint64_t tick_ns; /* ticks are so far apart at least */
};

/* --- while the trace is simulated ----------------------------------------- */

static bool is_wanted(const struct time_keeper *k, uint32_t step)
{
    return k->step == TIME_LOG_ALL || k->step == step;
}

static void on_op(void *context, const struct simulation_op *op)
{
    struct time_keeper *k = context;
    struct time_log *log = k->log;

    if (!is_wanted(k, op->step))
        return;
    if (log->op_count == TIME_LOG_MAX) {
        log->ops_dropped++;
        return;
    }
    xgrow(&log->ops, log->op_count, &k->op_capacity, sizeof *log->ops);
    log->ops[log->op_count++] = *op;
}

static void on_call(void *context, const struct simulation_call *call)
{
    struct time_keeper *k = context;
    struct time_log *log = k->log;

    if (!is_wanted(k, call->step))
        return;
    if (log->call_count == TIME_LOG_MAX) {
        log->calls_dropped++;
        return;
    }
    xgrow(&log->calls, log->call_count, &k->call_capacity, sizeof *log->calls);
    log->calls[log->call_count++] = *call;
}

/* Keeps every second tick, and from now on none that is nearer than those. */
static void ticks_thin(struct time_keeper *k)
{
    struct time_log *log = k->log;
    size_t kept = 0;

    for (size_t i = 0; i < log->tick_count; i += 2)
        log->ticks[kept++] = log->ticks[i];
    log->tick_count = kept;
    k->tick_ns =
        (log->ticks[kept - 1].recorded_ns - log->ticks[0].recorded_ns) / kept;
}

static void tick_keeper(struct time_keeper *k, uint64_t recorded_ns,
                        uint64_t ns)
{
    struct time_log *log = k->log;
    const struct time_log_tick *last =
        log->tick_count ? &log->ticks[log->tick_count - 1] : NULL;

    if (!last)
        log->first_ns = recorded_ns;
    if (last && (recorded_ns <= last->recorded_ns + k->tick_ns ||
                 ns <= last->ns))
        return;
    if (log->tick_count == TICKS_MAX)
        ticks_thin(k);
    xgrow(&log->ticks, log->tick_count, &k->tick_capacity, sizeof *log->ticks);
    log->ticks[log->tick_count++] = (struct time_log_tick){recorded_ns, ns};
}

static void on_record(void *context, const struct trace_item *item, uint64_t ns)
{
    struct time_keeper *k = context;
    struct time_log *log = k->log;
    uint32_t parent;

    tick_keeper(k, item->head.time_ns, ns);
    trace_names_add(&log->names, item);
    if (item->head.kind == TRACE_PROCESS)
        log->pid = trace_as_process(item)->pid;
    if (item->head.kind != TRACE_MODULE)
        return;
    const struct trace_module *m = trace_as_module(item);
    module_table_name(&log->modules, (uint32_t)m->module, (uint32_t)m->root,
                      trace_names_get(&log->names, m->name), &parent);
}

static int op_compare(const void *a, const void *b)
{
    uint64_t x = ((const struct simulation_op *)a)->done.tag;
    uint64_t y = ((const struct simulation_op *)b)->done.tag;

    return x < y ? -1 : x > y;
}

static int call_compare(const void *a, const void *b)
{
    uint64_t x = ((const struct simulation_call *)a)->number;
    uint64_t y = ((const struct simulation_call *)b)->number;

    return x < y ? -1 : x > y;
}

struct time_keeper *time_keeper_create(uint32_t step,
                                       struct simulation_sink *sink)
{
    struct time_keeper *k = xcalloc(1, sizeof *k);

    k->log = xcalloc(1, sizeof *k->log);
    k->step = step;
    *sink = (struct simulation_sink){
        .op = on_op, .call = on_call, .record = on_record, .context = k};
    return k;
}

struct time_log *time_keeper_end(struct time_keeper *k,
                                 const struct simulation *s)
{
    struct time_log *log = k ? k->log : NULL;

    free(k);
    if (!log || !s) {
        time_log_destroy(log);
        return NULL;
    }
    log->simulation = simulation_copy(s);
    if (log->op_count)
        qsort(log->ops, log->op_count, sizeof *log->ops, op_compare);
    if (log->call_count)
        qsort(log->calls, log->call_count, sizeof *log->calls, call_compare);
    module_table_count(&log->modules);
    return log;
}

void time_log_destroy(struct time_log *log)
{
    if (!log)
        return;
    simulation_fini(&log->simulation);
    trace_names_fini(&log->names);
    module_table_fini(&log->modules);
    free(log->ops);
    free(log->calls);
    free(log->ticks);
    free(log);
}

/* --- what it says --------------------------------------------------------- */

/* The last tick that is not after RECORDED_NS. */
static size_t tick_find(const struct time_log *log, uint64_t recorded_ns)
{
    size_t after = BISECT(i, log->tick_count,
                          log->ticks[i].recorded_ns <= recorded_ns);

    return after ? after - 1 : 0;
}

uint64_t time_log_at(const struct time_log *log, uint64_t recorded_ns)
{
    if (!log->tick_count || recorded_ns <= log->ticks[0].recorded_ns)
        return log->tick_count ? log->ticks[0].ns : 0;
    size_t at = tick_find(log, recorded_ns);
    const struct time_log_tick *a = &log->ticks[at], *b = a + 1;
    if (at + 1 == log->tick_count)
        return a->ns;
    double part = (double)(recorded_ns - a->recorded_ns) /
                  (double)(b->recorded_ns - a->recorded_ns);
    return a->ns + (uint64_t)(part * (double)(b->ns - a->ns));
}

const struct simulation_op *time_log_op(const struct time_log *log,
                                        uint64_t tag)
{
    const struct simulation_op key = {.done.tag = tag};

    return log->op_count ? bsearch(&key, log->ops, log->op_count, sizeof key,
                                   op_compare)
                         : NULL;
}

const struct simulation_call *time_log_call(const struct time_log *log,
                                            uint64_t number)
{
    const struct simulation_call key = {.number = number};

    return log->call_count ? bsearch(&key, log->calls, log->call_count,
                                     sizeof key, call_compare)
                           : NULL;
}
