/* SPDX-License-Identifier: Apache-2.0
 * What host threads waited for: the GPU, and each other.
 *
 *   a call that returns just after an operation ended waited for it:
 *
 *     host    ...[ cudaStreamSynchronize      ]..
 *     stream  ......[        op           ].......
 *                                          ^^^ what the return itself takes
 *
 *   a thread that calls again after a pause, just after another thread's call
 *   returned, waited for that thread (autograd's threads and the main one):
 *
 *     main      ..[launch]..................[launch]..
 *     autograd  ............[launch][launch]..........
 *
 * Queries of an event in a loop are a wait like any other: the first other call
 * after them waited for the operation that ended before the last query. */
#include "memsim/import/profile.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"

#define RETURN_NS 60000 /* an end within this before a return is its cause */
#define LONG_NS   20000 /* a call without work that takes longer waited */
#define PAUSE_NS  20000 /* between calls of a thread: it may have waited */

static bool name_has(const struct profile *p, uint32_t name, const char *part)
{
    return strstr(p->names[name], part) != NULL;
}

static bool is_query(const struct profile *p, const struct profile_call *call)
{
    return name_has(p, call->name, "EventQuery") ||
           name_has(p, call->name, "StreamQuery");
}

/* Does the call wait by its nature, or did it take so long that it must have?
 */
static bool may_wait(const struct profile *p, const struct profile_call *call)
{
    return name_has(p, call->name, "Synchronize") ||
           name_has(p, call->name, "emcpy") || call->duration_ns > LONG_NS;
}

static void find_wait(struct profile *p, const uint32_t *ends,
                      struct profile_call *call)
{
    int64_t end = profile_call_end(call);

    if (!may_wait(p, call))
        return;
    uint32_t op = profile_op_ended(p, ends, call->start_ns, end);
    if (op == PROFILE_NONE || end - profile_op_end(&p->ops[op]) > RETURN_NS)
        return;
    const struct profile_op *waited = &p->ops[op];
    /* not for work that was given later, by another thread */
    if (waited->call != PROFILE_NONE &&
        p->calls[waited->call].start_ns > call->start_ns)
        return;
    call->waits = op;
    p->inferred_waits++;
}

/* Takes queries out of their threads' rows; a call after some may have waited
 * from the call before them on. */
static void fold_queries(struct profile *p)
{
    uint32_t *to = xcalloc(p->calls_count + 1, sizeof *to);
    bool *queried = xcalloc(p->threads_count + 1, sizeof *queried);
    size_t kept = 0;

    for (size_t t = 0; t < p->threads_count; t++)
        p->threads[t].last = PROFILE_NONE;
    for (size_t i = 0; i < p->calls_count; i++) {
        struct profile_call call = p->calls[i];
        struct profile_thread *thread = &p->threads[call.thread];

        to[i] = PROFILE_NONE;
        if (is_query(p, &call)) {
            queried[call.thread] = true;
            continue;
        }
        call.previous = thread->last;
        call.polled = queried[call.thread];
        queried[call.thread] = false;
        p->calls[kept] = call;
        thread->last = to[i] = (uint32_t)kept++;
    }
    p->calls_count = kept;
    for (size_t i = 0; i < p->ops_count; i++)
        if (p->ops[i].call != PROFILE_NONE)
            p->ops[i].call = to[p->ops[i].call];
    free(queried);
    free(to);
}

/* CALL came after queries: what ended last in the pause before it? */
static void find_polled(struct profile *p, const uint32_t *ends,
                        struct profile_call *call)
{
    if (!call->polled)
        return;
    call->polled = false;
    if (call->previous == PROFILE_NONE || call->waits != PROFILE_NONE)
        return;
    int64_t from = profile_call_end(&p->calls[call->previous]);
    if (call->start_ns - from < PAUSE_NS)
        return;
    uint32_t op = profile_op_ended(p, ends, from, call->start_ns);
    if (op == PROFILE_NONE ||
        call->start_ns - profile_op_end(&p->ops[op]) > RETURN_NS)
        return;
    call->waits = op;
    call->polled = true;
    p->inferred_waits++;
}

/* The call of another thread that returned last before CALL, after CALL's own
 * thread had paused. Walks with the calls, which are sorted by their start. */
struct returns {
    uint32_t *by_end; /* calls by their end */
    size_t at;        /* the first that ends after the current call's start */
};

static int compare_call_ends(const void *a, const void *b, void *context)
{
    const struct profile *p = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    int64_t ex = profile_call_end(&p->calls[x]);
    int64_t ey = profile_call_end(&p->calls[y]);

    return ex != ey ? (ex > ey) - (ex < ey) : (x > y) - (x < y);
}

static void find_join(struct profile *p, struct returns *returns, size_t index)
{
    struct profile_call *call = &p->calls[index];
    int64_t from = call->previous == PROFILE_NONE
                       ? INT64_MIN
                       : profile_call_end(&p->calls[call->previous]);

    while (returns->at < p->calls_count &&
           profile_call_end(&p->calls[returns->by_end[returns->at]]) <=
               call->start_ns)
        returns->at++;
    if (call->polled || (from != INT64_MIN && call->start_ns - from < PAUSE_NS))
        return;
    for (size_t i = returns->at; i--;) {
        uint32_t other = returns->by_end[i];

        if (profile_call_end(&p->calls[other]) <= from)
            return;
        if (p->calls[other].thread == call->thread || other >= index)
            continue;
        call->join = other;
        p->inferred_joins++;
        return;
    }
}

static void find_joins(struct profile *p)
{
    struct returns returns = {xcalloc(p->calls_count + 1, sizeof(uint32_t)), 0};

    for (size_t i = 0; i < p->calls_count; i++)
        returns.by_end[i] = (uint32_t)i;
    if (p->calls_count)
        qsort_r(returns.by_end, p->calls_count, sizeof(uint32_t),
                compare_call_ends, p);
    for (size_t i = 0; i < p->calls_count; i++)
        find_join(p, &returns, i);
    free(returns.by_end);
}

void profile_link_hosts(struct profile *p)
{
    uint32_t *ends = profile_ends(p);

    fold_queries(p);
    for (size_t i = 0; i < p->calls_count; i++) {
        find_wait(p, ends, &p->calls[i]);
        find_polled(p, ends, &p->calls[i]);
    }
    find_joins(p);
    free(ends);
}
