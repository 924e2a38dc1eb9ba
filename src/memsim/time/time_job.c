/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/time/time_job.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"

#define SINKS_MAX 3

/* Sinks that get the same. */
struct fan {
    struct simulation_sink sinks[SINKS_MAX];
    size_t count;
    struct time_keeper *whole, *one;
};

static void fan_op(void *context, const struct simulation_op *op)
{
    const struct fan *f = context;

    for (size_t i = 0; i < f->count; i++)
        if (f->sinks[i].op)
            f->sinks[i].op(f->sinks[i].context, op);
}

static void fan_called(void *context, uint64_t tag, const struct op *op,
                       const char *name)
{
    const struct fan *f = context;

    for (size_t i = 0; i < f->count; i++)
        if (f->sinks[i].called)
            f->sinks[i].called(f->sinks[i].context, tag, op, name);
}

static void fan_call(void *context, const struct simulation_call *call)
{
    const struct fan *f = context;

    for (size_t i = 0; i < f->count; i++)
        if (f->sinks[i].call)
            f->sinks[i].call(f->sinks[i].context, call);
}

static void fan_record(void *context, const struct trace_item *item,
                       uint64_t ns)
{
    const struct fan *f = context;

    for (size_t i = 0; i < f->count; i++)
        if (f->sinks[i].record)
            f->sinks[i].record(f->sinks[i].context, item, ns);
}

/* Starts what W wants. */
static struct simulation_sink fan_init(struct fan *f, const struct time_want *w)
{
    struct simulation_sink sink = {.op = NULL};

    *f = (struct fan){.count = 0};
    if (w->whole)
        f->whole = time_keeper_create(TIME_LOG_ALL, &f->sinks[f->count++]);
    if (w->one)
        f->one = time_keeper_create(w->step, &f->sinks[f->count++]);
    if (w->sink)
        f->sinks[f->count++] = *w->sink;
    if (!f->count)
        return sink;
    sink = (struct simulation_sink){
        .op = fan_op, .call = fan_call, .record = fan_record, .context = f};
    for (size_t i = 0; i < f->count; i++) {
        sink.all_records |= f->sinks[i].all_records;
        if (f->sinks[i].called)
            sink.called = fan_called;
    }
    return sink;
}

static void want_conclude(struct time_want *w, struct fan *f,
                          const struct simulation_rank *rank)
{
    const struct simulation *s = rank->failed ? NULL : &rank->result;

    w->failed = rank->failed;
    w->err = rank->err;
    if (s)
        w->result = *s;
    w->whole_log = time_keeper_end(f->whole, s);
    w->one_log = time_keeper_end(f->one, s);
}

void time_job_read(struct time_want *wants,
                   const struct simulation_peers *peers,
                   const struct simulation_options *options)
{
    size_t all = peers->count + peers->beside;
    struct simulation_rank *ranks = xcalloc(all + 1, sizeof *ranks);
    struct fan *fans = xcalloc(peers->count + 1, sizeof *fans);
    bool any = false;

    memcpy(ranks, peers->ranks, all * sizeof *ranks);
    for (size_t i = 0; i < peers->count; i++) {
        ranks[i].sink = fan_init(&fans[i], &wants[i]);
        any |= fans[i].count > 0;
    }
    if (any) {
        simulation_job(ranks, all, peers->job, options);
        for (size_t i = 0; i < peers->count; i++)
            want_conclude(&wants[i], &fans[i], &ranks[i]);
        simulation_ranks_fini(ranks + peers->count, peers->beside);
    }
    free(fans);
    free(ranks);
}

void time_job_fini(struct time_want *wants, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        time_log_destroy(wants[i].whole_log);
        time_log_destroy(wants[i].one_log);
        simulation_fini(&wants[i].result);
    }
}
