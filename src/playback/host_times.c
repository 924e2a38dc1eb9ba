/* SPDX-License-Identifier: Apache-2.0 */
#include "playback/host_times.h"

#include <stdlib.h>

#include "common/base/bisect.h"
#include "common/base/xmalloc.h"

#define CALLS_MAX  (32u << 20)
#define GAPS_ALIKE 8  /* gaps between the same calls that say what is usual */
#define GAP_MOST   3  /* times their median */
#define STEPS_MIN  2  /* alike; the last one, which may be shorter, beside */
#define STEPS_MAX  64 /* whose numbers of calls are compared */

void host_calls_take(void *context, const struct op *op)
{
    struct host_calls *c = context;

    if (!host_call_is(op) || c->dropped)
        return;
    if (c->count == CALLS_MAX) {
        c->dropped = true;
        return;
    }
    xgrow(&c->calls, c->count, &c->capacity, sizeof *c->calls);
    c->calls[c->count++] = (struct host_call){
        c->record, op->host_ns, op->name | (uint64_t)op->kind << 32};
}

/* The calls of a step. */
struct span {
    size_t first, count;
};

static size_t call_at(const struct host_calls *c, uint64_t record)
{
    return BISECT(i, c->count, c->calls[i].record < record);
}

static struct span *spans_make(const struct host_calls *c,
                               const struct step_list *steps)
{
    struct span *spans = xcalloc(steps->count + 1, sizeof *spans);

    for (size_t i = 0; i < steps->count; i++) {
        spans[i].first = call_at(c, steps->steps[i].first);
        spans[i].count = call_at(c, steps->steps[i].end) - spans[i].first;
    }
    return spans;
}

/* How many steps that are no warm-up make COUNT calls. */
static size_t steps_like(const struct span *spans,
                         const struct step_list *steps, size_t count)
{
    size_t found = 0;

    for (size_t i = 0; i < steps->count; i++)
        found += !steps->steps[i].warm_up && spans[i].count == count;
    return found;
}

/* The number of calls that most steps make; 0: too few make the same. */
static size_t calls_typical(const struct span *spans,
                            const struct step_list *steps)
{
    size_t most = 0, typical = 0;

    for (size_t i = 0; i < steps->count && i < STEPS_MAX; i++) {
        size_t found = steps_like(spans, steps, spans[i].count);
        if (found > most && !steps->steps[i].warm_up) {
            most = found;
            typical = spans[i].count;
        }
    }
    return most >= STEPS_MIN ? typical : 0;
}

/* The time before call I of the step, or after its last one. */
static uint64_t gap_of(const struct host_calls *c, const struct step *step,
                       const struct span *span, size_t i)
{
    uint64_t from = i ? c->calls[span->first + i - 1].ns : step->first_ns;
    uint64_t to = i < span->count ? c->calls[span->first + i].ns : step->end_ns;

    return to > from ? to - from : 0;
}

static uint64_t gap_least(const struct host_times *t,
                          const struct host_calls *c,
                          const struct step_list *steps,
                          const struct span *spans, size_t call)
{
    uint64_t least = UINT64_MAX;

    for (size_t i = 0; i < steps->count; i++) {
        if (!t->typical[i] || call > spans[i].count ||
            (call == spans[i].count && call < t->gap_count))
            continue;
        uint64_t gap = gap_of(c, &steps->steps[i], &spans[i], call);
        least = gap < least ? gap : least;
    }
    return least;
}

/* A gap and the calls that it lies between. */
struct between {
    uint64_t before, after, ns;
    size_t call;
};

static int between_compare(const void *a, const void *b)
{
    const struct between *x = a, *y = b;

    if (x->before != y->before)
        return x->before < y->before ? -1 : 1;
    if (x->after != y->after)
        return x->after < y->after ? -1 : 1;
    if (x->ns != y->ns)
        return x->ns < y->ns ? -1 : 1;
    return x->call < y->call ? -1 : x->call > y->call;
}

/* LIST has COUNT gaps between the same calls, the shortest first. */
static void gaps_cap(struct host_times *t, const struct between *list,
                     size_t count)
{
    uint64_t most = GAP_MOST * list[(count - 1) / 2].ns;

    if (count < GAPS_ALIKE)
        return;
    for (size_t i = count; i-- > 0 && list[i].ns > most;)
        t->gaps[list[i].call] = most;
}

/* Caps the gaps of a typical step, whose calls begin at CALLS. */
static void times_cap(struct host_times *t, const struct host_call *calls)
{
    struct between *list = xcalloc(t->gap_count + 1, sizeof *list);

    for (size_t i = 1; i < t->gap_count; i++)
        list[i - 1] =
            (struct between){calls[i - 1].what, calls[i].what, t->gaps[i], i};
    qsort(list, t->gap_count - 1, sizeof *list, between_compare);
    for (size_t i = 0, end; i + 1 < t->gap_count; i = end) {
        for (end = i;
             end + 1 < t->gap_count && list[end].before == list[i].before &&
             list[end].after == list[i].after;
             end++)
            continue;
        gaps_cap(t, &list[i], end - i);
    }
    free(list);
}

static int ns_compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* How many whole steps the times are the least of, and how these differ. */
static void spread_find(struct host_times *t, const struct step_list *steps,
                        const struct span *spans)
{
    uint64_t *all = xcalloc(steps->count + 1, sizeof *all);

    for (size_t i = 0; i < steps->count; i++)
        if (t->typical[i] && spans[i].count == t->gap_count)
            all[t->steps++] = steps->steps[i].end_ns - steps->steps[i].first_ns;
    qsort(all, t->steps, sizeof *all, ns_compare);
    if (t->steps && all[0])
        t->spread = (double)all[t->steps / 2] / (double)all[0] - 1;
    free(all);
}

static void times_fill(struct host_times *t, const struct host_calls *c,
                       const struct step_list *steps, const struct span *spans)
{
    t->gap_count = calls_typical(spans, steps);
    if (!t->gap_count)
        return;
    for (size_t i = 0; i < steps->count; i++)
        t->typical[i] =
            !steps->steps[i].warm_up &&
            (spans[i].count == t->gap_count ||
             (i + 1 == steps->count && spans[i].count < t->gap_count));
    spread_find(t, steps, spans);
    t->gaps = xcalloc(t->gap_count, sizeof *t->gaps);
    for (size_t i = 0; i < t->gap_count; i++)
        t->gaps[i] = gap_least(t, c, steps, spans, i);
    t->after = gap_least(t, c, steps, spans, t->gap_count);
    for (size_t i = 0; i < steps->count; i++)
        if (t->typical[i] && spans[i].count == t->gap_count) {
            times_cap(t, &c->calls[spans[i].first]);
            return;
        }
}

void host_times_make(struct host_times *t, struct host_calls *calls,
                     const struct step_list *steps)
{
    *t = (struct host_times){.dropped = calls->dropped};
    t->typical = xcalloc(steps->count + 1, sizeof *t->typical);
    if (!calls->dropped) {
        struct span *spans = spans_make(calls, steps);
        times_fill(t, calls, steps, spans);
        free(spans);
    }
    free(calls->calls);
    *calls = (struct host_calls){.count = 0};
}

void host_times_fini(struct host_times *t)
{
    free(t->typical);
    free(t->gaps);
    *t = (struct host_times){.gap_count = 0};
}
