/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/time/spans.h"

#include <stdbool.h>
#include <stdlib.h>

#include "common/base/bisect.h"
#include "common/base/xmalloc.h"

void spans_add(struct spans *s, const struct span *span)
{
    if (span->end_ns <= span->start_ns)
        return;
    if (s->count == SPANS_MAX) {
        s->dropped++;
        return;
    }
    xgrow(&s->all, s->count, &s->capacity, sizeof *s->all);
    s->all[s->count++] = *span;
}

static int span_compare(const void *a, const void *b)
{
    uint64_t x = ((const struct span *)a)->start_ns;
    uint64_t y = ((const struct span *)b)->start_ns;

    return x < y ? -1 : x > y;
}

void spans_sort(struct spans *s)
{
    uint64_t last_ns = 0;

    if (s->count)
        qsort(s->all, s->count, sizeof *s->all, span_compare);
    s->last_ns = xreallocarray(s->last_ns, s->count + 1, sizeof *s->last_ns);
    for (size_t i = 0; i < s->count; i++) {
        if (s->all[i].end_ns > last_ns)
            last_ns = s->all[i].end_ns;
        s->last_ns[i] = last_ns;
    }
}

void spans_fini(struct spans *s)
{
    free(s->all);
    free(s->last_ns);
    *s = (struct spans){.all = NULL};
}

enum span_kind span_kind_of(enum sim_engine engine)
{
    switch (engine) {
    case SIM_COMPUTE:
        return SPAN_COMPUTE;
    case SIM_COMM:
        return SPAN_COMM;
    case SIM_COPY_IN:
    case SIM_COPY_OUT:
    case SIM_COPY_PEER:
        return SPAN_COPY;
    default:
        return SPAN_KINDS;
    }
}

/* The first span that may reach beyond FROM_NS. */
static size_t first_after(const struct spans *s, uint64_t from_ns)
{
    return BISECT(i, s->count, s->last_ns[i] <= from_ns);
}

/* A span begins or ends. */
struct edge {
    uint64_t ns;
    int64_t fill; /* negative: it ends */
    int8_t change;
    uint8_t kind;
};

static int edge_compare(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;

    return x->ns < y->ns ? -1 : x->ns > y->ns;
}

/* The edges of DEVICE between FROM_NS and TO_NS, in order; free() them. */
static struct edge *edges_make(const struct spans *s, unsigned device,
                               uint64_t from_ns, uint64_t to_ns, size_t *count)
{
    struct edge *edges = NULL;
    size_t capacity = 0;

    *count = 0;
    for (size_t i = first_after(s, from_ns);
         i < s->count && s->all[i].start_ns < to_ns; i++) {
        const struct span *span = &s->all[i];
        if (span->device != device || span->end_ns <= from_ns)
            continue;
        uint64_t start = span->start_ns > from_ns ? span->start_ns : from_ns;
        uint64_t end = span->end_ns < to_ns ? span->end_ns : to_ns;
        xgrow(&edges, *count, &capacity, sizeof *edges);
        edges[(*count)++] = (struct edge){start, span->fill, 1, span->kind};
        xgrow(&edges, *count, &capacity, sizeof *edges);
        edges[(*count)++] =
            (struct edge){end, -(int64_t)span->fill, -1, span->kind};
    }
    if (*count)
        qsort(edges, *count, sizeof *edges, edge_compare);
    return edges;
}

static void parts_add(struct span_parts *parts,
                      const int64_t running[SPAN_KINDS], uint64_t ns)
{
    if (running[SPAN_COMPUTE] > 0) {
        parts->compute_ns += ns;
        if (running[SPAN_COMM] > 0)
            parts->overlapped_comm_ns += ns;
    } else if (running[SPAN_COMM] > 0) {
        parts->exposed_comm_ns += ns;
    } else if (running[SPAN_COPY] > 0) {
        parts->exposed_copy_ns += ns;
    } else {
        parts->idle_ns += ns;
    }
}

struct span_parts spans_parts(const struct spans *s, unsigned device,
                              uint64_t from_ns, uint64_t to_ns)
{
    struct span_parts parts = {0};
    int64_t running[SPAN_KINDS] = {0};
    uint64_t now = from_ns;
    size_t count;
    struct edge *edges = edges_make(s, device, from_ns, to_ns, &count);

    for (size_t i = 0; i < count; i++) {
        parts_add(&parts, running, edges[i].ns - now);
        now = edges[i].ns;
        running[edges[i].kind] += edges[i].change;
    }
    if (to_ns > now)
        parts_add(&parts, running, to_ns - now);
    free(edges);
    return parts;
}

/* Adds FILL from START to END to the windows that they lie in. */
static void fill_add(const struct span_windows *w, double *fills,
                     uint64_t start, uint64_t end, double fill)
{
    while (start < end) {
        size_t at = (size_t)((start - w->from_ns) / w->window_ns);
        uint64_t until = w->from_ns + ((uint64_t)at + 1) * w->window_ns;
        if (at >= w->count)
            return;
        until = until < end ? until : end;
        fills[at] += fill * (double)(until - start);
        start = until;
    }
}

static uint64_t window_length(const struct span_windows *w, size_t i)
{
    uint64_t start = w->from_ns + (uint64_t)i * w->window_ns;

    if (start + w->window_ns < w->to_ns || start >= w->to_ns)
        return w->window_ns;
    return w->to_ns - start;
}

static double share_of(int64_t fill, int64_t running, bool busy)
{
    if (busy)
        return running > 0;
    return fill < SIM_WHOLE ? (double)fill / SIM_WHOLE : 1;
}

/* BUSY: whether something runs counts, not how much. */
static void windows_share(const struct spans *s, unsigned device,
                          const struct span_windows *w, bool busy,
                          double *fills)
{
    int64_t fill = 0, running = 0;
    uint64_t now = w->from_ns;
    size_t count;
    struct edge *edges = edges_make(s, device, w->from_ns, w->to_ns, &count);

    for (size_t i = 0; i < w->count; i++)
        fills[i] = 0;
    for (size_t i = 0; i < count; i++) {
        if (running > 0)
            fill_add(w, fills, now, edges[i].ns,
                     share_of(fill, running, busy));
        now = edges[i].ns;
        fill += edges[i].fill;
        running += edges[i].change;
    }
    free(edges);
    for (size_t i = 0; i < w->count; i++)
        fills[i] /= (double)window_length(w, i);
}

void spans_fill(const struct spans *s, unsigned device,
                const struct span_windows *w, double *fills)
{
    windows_share(s, device, w, false, fills);
}

void spans_busy(const struct spans *s, unsigned device,
                const struct span_windows *w, double *shares)
{
    windows_share(s, device, w, true, shares);
}
