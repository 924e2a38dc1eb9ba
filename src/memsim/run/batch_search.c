/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/run/batch_search.h"

#include <stdlib.h>

#include "common/base/xmalloc.h"

#define PROBES     4 /* beyond the limit, where peaks are uneven */
#define DEAF_TRIES 5

/* After so many tries on one side the line is not believed any more. */
#define MISLED_TRIES 3

/* Nor where it points beyond what does not fit, by this part of it. */
#define MISLED_PART 20

/* The line starts at small batches, and a run of a large one takes long. */
#define LEAP 8

int batch_search_init(struct batch_search *s, uint64_t from, uint64_t to,
                      uint64_t multiple)
{
    *s = (struct batch_search){
        .from = (from + multiple - 1) / multiple * multiple,
        .to = to / multiple * multiple,
        .multiple = multiple,
    };
    return s->from && s->from <= s->to ? 0 : -1;
}

void batch_search_fini(struct batch_search *s)
{
    free(s->tries);
}

uint64_t batch_search_largest(const struct batch_search *s)
{
    uint64_t largest = 0;

    for (size_t i = 0; i < s->count; i++)
        if (s->tries[i].fits && s->tries[i].batch > largest)
            largest = s->tries[i].batch;
    return largest;
}

uint64_t batch_search_limit(const struct batch_search *s)
{
    uint64_t largest = batch_search_largest(s), limit = 0;

    for (size_t i = 0; i < s->count; i++) {
        const struct batch_try *t = &s->tries[i];

        if (!t->fits && t->batch > largest && (!limit || t->batch < limit))
            limit = t->batch;
    }
    return limit;
}

static bool is_tried(const struct batch_search *s, uint64_t batch)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->tries[i].batch == batch)
            return true;
    return false;
}

/* Beyond LIMIT, the first of a few that was not tried. */
static uint64_t probe_batch(const struct batch_search *s, uint64_t limit)
{
    for (uint64_t i = 1; i <= PROBES; i++) {
        uint64_t batch = limit + i * s->multiple;

        if (batch <= s->to && !is_tried(s, batch))
            return batch;
    }
    return 0;
}

/* How many of the last tries came out as the last one. */
static size_t trail_length(const struct batch_search *s)
{
    size_t n = 0;

    while (n < s->count &&
           s->tries[s->count - 1 - n].fits == s->tries[s->count - 1].fits)
        n++;
    return n;
}

/* The largest two that fit; NULL in ENDS[0]: there are no two. */
static void fitting_find(const struct batch_search *s,
                         const struct batch_try *ends[2])
{
    ends[0] = ends[1] = NULL;
    for (size_t i = 0; i < s->count; i++) {
        const struct batch_try *t = &s->tries[i];
        if (!t->fits || (ends[0] && t->batch < ends[0]->batch))
            continue;
        if (!ends[1] || t->batch > ends[1]->batch) {
            ends[0] = ends[1];
            ends[1] = t;
        } else {
            ends[0] = t;
        }
    }
}

/* A line through the largest two that fit. */
struct line {
    const struct batch_try *end;
    double slope; /* bytes for one more */
};

static bool line_find(const struct batch_search *s, struct line *l)
{
    const struct batch_try *ends[2];

    fitting_find(s, ends);
    if (!s->capacity_bytes || !ends[0] || !ends[0]->peak_used_bytes ||
        ends[1]->peak_used_bytes <= ends[0]->peak_used_bytes ||
        ends[1]->peak_used_bytes > s->capacity_bytes)
        return false;
    l->end = ends[1];
    l->slope = (double)(ends[1]->peak_used_bytes - ends[0]->peak_used_bytes) /
               (double)(ends[1]->batch - ends[0]->batch);
    return true;
}

/* The batch that fills the memory by the line; 0: there is none. */
static uint64_t line_meets(const struct batch_search *s)
{
    struct line l;

    if (!line_find(s, &l))
        return 0;
    double more =
        (double)(s->capacity_bytes - l.end->peak_used_bytes) / l.slope;
    double batch = (double)l.end->batch + more;

    return batch < (double)s->to ? (uint64_t)batch / s->multiple * s->multiple
                                 : s->to;
}

/* A step of the line's; 0: it misleads, or there is none. LIMIT is 0 where
 * nothing that does not fit is known. */
static uint64_t guess_batch(const struct batch_search *s, uint64_t largest,
                            uint64_t limit)
{
    uint64_t batch = line_meets(s);

    if (!batch)
        return 0;
    if (limit && (trail_length(s) > MISLED_TRIES ||
                  batch > limit + limit / MISLED_PART))
        return 0;
    if (batch <= largest)
        batch = largest + s->multiple;
    if (limit && batch >= limit)
        batch = limit - s->multiple;
    if (batch / LEAP > largest)
        batch = LEAP * largest;
    return batch;
}

uint64_t batch_search_next(const struct batch_search *s)
{
    uint64_t largest = batch_search_largest(s), limit = batch_search_limit(s);

    if (!s->count)
        return s->from;
    if (!largest || largest == s->to)
        return 0;
    uint64_t guessed = !limit || limit - largest > s->multiple
                           ? guess_batch(s, largest, limit)
                           : 0;
    if (guessed)
        return guessed;
    if (!limit)
        return largest < s->to - largest ? 2 * largest : s->to;
    if (limit - largest > s->multiple)
        return largest + (limit - largest) / s->multiple / 2 * s->multiple;
    return batch_search_is_uneven(s) ? probe_batch(s, limit) : 0;
}

void batch_search_tell(struct batch_search *s, bool fits,
                       uint64_t peak_allocated_bytes, uint64_t peak_used_bytes)
{
    uint64_t batch = batch_search_next(s);

    xgrow(&s->tries, s->count, &s->capacity, sizeof *s->tries);
    s->tries[s->count++] =
        (struct batch_try){batch, fits, peak_allocated_bytes, peak_used_bytes};
}

struct batch_try batch_search_expected(const struct batch_search *s)
{
    struct batch_try t = {.batch = batch_search_next(s), .fits = true};
    double capacity = (double)s->capacity_bytes;
    struct line l;

    for (size_t i = 0; i < s->count; i++)
        if (s->tries[i].peak_allocated_bytes > t.peak_allocated_bytes)
            t.peak_allocated_bytes = s->tries[i].peak_allocated_bytes;
    if (!line_find(s, &l))
        return t;
    double used = (double)l.end->peak_used_bytes +
                  l.slope * ((double)t.batch - (double)l.end->batch);
    t.fits = used <= capacity;
    t.peak_used_bytes = t.fits ? (uint64_t)used : s->capacity_bytes;
    return t;
}

/* Does the larger batch A contradict the smaller B? A per cent is none. */
static bool try_contradicts(const struct batch_try *a,
                            const struct batch_try *b)
{
    if (!a->fits)
        return false;
    return !b->fits ||
           a->peak_allocated_bytes < b->peak_allocated_bytes / 100 * 99;
}

bool batch_search_is_uneven(const struct batch_search *s)
{
    for (size_t i = 0; i < s->count; i++)
        for (size_t k = 0; k < s->count; k++)
            if (s->tries[i].batch > s->tries[k].batch &&
                try_contradicts(&s->tries[i], &s->tries[k]))
                return true;
    return false;
}

bool batch_search_is_deaf(const struct batch_search *s)
{
    for (size_t i = 0; i < s->count; i++)
        if (!s->tries[i].fits || s->tries[i].peak_allocated_bytes !=
                                     s->tries[0].peak_allocated_bytes)
            return false;
    return s->count >= DEAF_TRIES;
}
