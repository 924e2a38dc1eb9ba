/* SPDX-License-Identifier: Apache-2.0 */
#include "playback/host_busy.h"

#include <stdlib.h>

#include "common/base/xmalloc.h"

void host_looks_take(struct host_looks *l, const struct trace_item *item)
{
    if (item->head.kind != TRACE_HOST_CPUS)
        return;
    xgrow(&l->looks, l->count, &l->capacity, sizeof *l->looks);
    l->looks[l->count++] = (struct host_look){
        item->ordinal, item->head.thread, *trace_as_host_cpus(item)};
}

static uint64_t time_since(uint64_t from, uint64_t to)
{
    return to > from ? to - from : 0;
}

static double share_of(uint64_t part, uint64_t rest)
{
    return part ? (double)part / ((double)part + (double)rest) : 0;
}

static struct host_busy busy_between(const struct trace_host_cpus *a,
                                     const struct trace_host_cpus *b)
{
    uint64_t busy = time_since(a->busy_ns, b->busy_ns);
    uint64_t own = time_since(a->process_ns, b->process_ns);
    uint64_t others = time_since(own, busy);

    return (struct host_busy){
        .waited = share_of(time_since(a->waited_ns, b->waited_ns),
                           time_since(a->ran_ns, b->ran_ns)),
        .others = share_of(others,
                           busy - others + time_since(a->idle_ns, b->idle_ns)),
        .known = true,
    };
}

/* The last look of THREAD before the record END; NULL: there is none. */
static const struct host_look *look_before(const struct host_looks *l,
                                           uint32_t thread, uint64_t end)
{
    for (size_t i = l->count; i-- > 0;)
        if (l->looks[i].record < end && l->looks[i].thread == thread)
            return &l->looks[i];
    return NULL;
}

static const struct host_look *look_first(const struct host_looks *l,
                                          uint32_t thread)
{
    for (size_t i = 0; i < l->count; i++)
        if (l->looks[i].thread == thread)
            return &l->looks[i];
    return NULL;
}

/* The typical steps go from the record FIRST up to END. A look at a step's
 * begin comes right before its first record. */
static struct host_busy busy_find(const struct host_looks *l, uint64_t first,
                                  uint64_t end)
{
    const struct host_look *last = NULL;

    for (size_t i = l->count; i-- > 0 && !last;)
        if (l->looks[i].record < end)
            last = &l->looks[i];
    if (!last)
        return (struct host_busy){0};
    const struct host_look *from = look_before(l, last->thread, first);
    if (!from)
        from = look_first(l, last->thread);
    return from == last ? (struct host_busy){0}
                        : busy_between(&from->cpus, &last->cpus);
}

struct host_busy host_busy_make(struct host_looks *l,
                                const struct step_list *steps,
                                const bool *typical)
{
    struct host_busy busy = {0};
    uint64_t first = UINT64_MAX, end = 0;

    for (size_t i = 0; i < steps->count; i++)
        if (typical[i]) {
            first = steps->steps[i].first < first ? steps->steps[i].first
                                                  : first;
            end = steps->steps[i].end;
        }
    if (end)
        busy = busy_find(l, first, end);
    free(l->looks);
    *l = (struct host_looks){.count = 0};
    return busy;
}
