/* SPDX-License-Identifier: Apache-2.0
 * The critical path of a step: from its last operation back to its beginning,
 * always to what the start waited for. What is on it must get faster for the
 * step to get faster. The four kinds of dependency:
 *
 *   host-host      call.before: the thread's call before this one
 *   host-device    op.call: the call that launched it
 *   device-device  done.before_tag, done.event_tag, done.cause_tag
 *   device-host    call.woken_by: the operation that the call waited for */
#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"
#include "memsim/time/timing_internal.h"

#define STEPS_MAX 100000000 /* of the walk: it ends in any case */

void path_add_op(struct path *p, const struct simulation_op *op)
{
    if (op->step != p->step)
        return;
    xgrow(&p->ops, p->op_count, &p->op_capacity, sizeof *p->ops);
    p->ops[p->op_count++] = *op;
}

void path_add_call(struct path *p, const struct simulation_call *call)
{
    if (call->step != p->step)
        return;
    xgrow(&p->calls, p->call_count, &p->call_capacity, sizeof *p->calls);
    p->calls[p->call_count++] = *call;
}

void path_fini(struct path *p)
{
    free(p->ops);
    free(p->calls);
}

static int op_compare(const void *a, const void *b)
{
    uint64_t x = ((const struct simulation_op *)a)->done.tag;
    uint64_t y = ((const struct simulation_op *)b)->done.tag;

    return x < y ? -1 : x > y;
}

static const struct simulation_op *op_find(const struct path *p, uint64_t tag)
{
    const struct simulation_op key = {.done.tag = tag};

    return p->op_count ? bsearch(&key, p->ops, p->op_count, sizeof key,
                                 op_compare)
                       : NULL;
}

static int call_compare(const void *a, const void *b)
{
    uint64_t x = ((const struct simulation_call *)a)->number;
    uint64_t y = ((const struct simulation_call *)b)->number;

    return x < y ? -1 : x > y;
}

static const struct simulation_call *call_find(const struct path *p,
                                             uint64_t number)
{
    const struct simulation_call key = {.number = number};

    return p->call_count ? bsearch(&key, p->calls, p->call_count, sizeof key,
                                   call_compare)
                         : NULL;
}

/* What is on the path, by name. */
struct walk {
    const struct path *path;
    const struct trace_names *names;
    struct tally ops; /* by operator_key */
    struct map examples; /* const struct simulation_op by key + 1 */
    double host_ns, driver_ns, gap_ns, peers_ns;
    uint64_t host_calls, driver_calls, gaps, meets;
};

static void walk_op(struct walk *w, const struct simulation_op *op)
{
    tally_add(&w->ops, operator_key(op),
              (double)(op->done.end_ns - op->done.start_ns));
    map_put(&w->examples, operator_key(op) + 1, (void *)op);
}

static double ns_between(uint64_t from_ns, uint64_t to_ns)
{
    return to_ns > from_ns ? (double)(to_ns - from_ns) : 0;
}

/* From CALL, which begins at a time that its thread decided, back to what the
 * thread waited for. Returns that operation, or NULL where the step begins. */
static const struct simulation_op *walk_host(struct walk *w,
                                           const struct simulation_call *call)
{
    while (call) {
        const struct simulation_call *before = call_find(w->path, call->before);
        if (!before)
            return NULL;
        w->host_ns += ns_between(before->end_ns, call->start_ns);
        w->host_calls++;
        if (before->woken_by)
            return op_find(w->path, before->woken_by);
        w->driver_ns += ns_between(before->start_ns, before->end_ns);
        w->driver_calls++;
        call = before;
    }
    return NULL;
}

/* From OP, which waited for another rank, to what it would have waited for
 * without that: the later one of its stream's and its event's operation. */
static const struct simulation_op *walk_peer(struct walk *w,
                                             const struct simulation_op *op)
{
    const struct simulation_op *before = op_find(w->path, op->done.before_tag);
    const struct simulation_op *event = op_find(w->path, op->done.event_tag);

    w->peers_ns += ns_between(op->done.ready_ns, op->done.start_ns);
    w->meets++;
    if (!before || (event && event->done.end_ns > before->done.end_ns))
        before = event;
    return before;
}

static const struct simulation_op *walk_back(struct walk *w,
                                           const struct simulation_op *op)
{
    const struct sim_done *d = &op->done;

    if (d->cause == SIM_BY_HOST) {
        const struct simulation_call *call = call_find(w->path, op->call);
        if (!call)
            return NULL;
        w->driver_ns += ns_between(call->start_ns, d->called_ns);
        w->driver_calls++;
        return walk_host(w, call);
    }
    if (d->cause == SIM_BY_PEER)
        return walk_peer(w, op);
    const struct simulation_op *before = op_find(w->path, d->cause_tag);
    if (before) {
        w->gap_ns += ns_between(before->done.end_ns, d->start_ns);
        w->gaps++;
    }
    return before;
}

/* Kernels of one name are one row. */
static void row_put(struct timing *t, const char *name, double ns,
                    uint64_t calls)
{
    size_t at = 0;

    if (!(ns > 0))
        return;
    while (at < t->path_count && strcmp(t->path[at].name, name))
        at++;
    if (at == t->path_count)
        t->path[t->path_count++].name = xstrdup(name);
    t->path[at].ns += ns;
    t->path[at].calls += (double)calls;
}

static void walk_tell(const struct walk *w, struct timing *t)
{
    char text[256];

    t->path = xcalloc(w->ops.count + 4, sizeof *t->path);
    for (size_t i = 0; i < w->ops.count; i++) {
        operator_name(map_get(&w->examples, w->ops.rows[i].key + 1), w->names,
                      text, sizeof text);
        row_put(t, text, w->ops.rows[i].ns,
                (uint64_t)w->ops.rows[i].calls);
    }
    row_put(t, "host", w->host_ns, w->host_calls);
    row_put(t, "driver calls", w->driver_ns, w->driver_calls);
    row_put(t, "gaps between operations", w->gap_ns, w->gaps);
    row_put(t, "other ranks", w->peers_ns, w->meets);
    t->path_count = rows_finish(t->path, t->path_count);
}

void path_find(struct path *p, const struct trace_names *names,
               struct timing *t)
{
    struct walk w = {.path = p, .names = names};
    const struct simulation_op *last = NULL;

    if (p->op_count)
        qsort(p->ops, p->op_count, sizeof *p->ops, op_compare);
    if (p->call_count)
        qsort(p->calls, p->call_count, sizeof *p->calls, call_compare);
    for (size_t i = 0; i < p->op_count; i++)
        if (!last || p->ops[i].done.end_ns > last->done.end_ns)
            last = &p->ops[i];
    for (long n = 0; last && n < STEPS_MAX; n++) {
        walk_op(&w, last);
        last = walk_back(&w, last);
    }
    walk_tell(&w, t);
    tally_fini(&w.ops);
    map_fini(&w.examples);
}
