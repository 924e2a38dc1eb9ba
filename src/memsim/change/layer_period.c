/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/change/layer_period.h"

#include <stdlib.h>
#include <string.h>

#define LAYERS_MAX   1024
#define REGION_LEAST 20 /* 1 of so many of the operations */

/* The longest run of [FROM, UNTIL) with PERIOD. */
static struct layer_region run_longest(const uint64_t *marks, size_t from,
                                       size_t until, size_t period)
{
    struct layer_region best = {from, 0, period};
    size_t start = from;

    for (size_t i = from; i + period < until; i++) {
        if (marks[i] != marks[i + period]) {
            start = i + 1;
            continue;
        }
        size_t length = i + 1 - start + period;
        if (length > best.length) {
            best.at = start;
            best.length = length;
        }
    }
    return best;
}

/* The first and the last layer may do more than the others. */
static bool is_of_layers(const struct layer_region *r, uint32_t layers)
{
    size_t halves = 2 * r->length / r->period; /* of a period */
    size_t least = layers < 4 ? 2 * (size_t)layers - 1 : 2 * (size_t)layers - 3;

    return halves >= least && halves < 2 * (size_t)layers + 2;
}

bool layer_region_find(const uint64_t *marks, size_t count, uint32_t layers,
                       size_t unit, struct layer_region *region)
{
    *region = (struct layer_region){.length = 0};
    for (size_t period = unit; period * (2 * layers - 3) <= 2 * count;
         period += unit) {
        struct layer_region r = run_longest(marks, 0, count, period);
        if (is_of_layers(&r, layers) && r.length > region->length)
            *region = r;
    }
    return region->length > 0;
}

static int compare_regions(const void *a, const void *b)
{
    const struct layer_region *x = a, *y = b;

    return (x->at > y->at) - (x->at < y->at);
}

/* What is before and behind a region has others. */
size_t layer_regions_find(const uint64_t *marks, size_t count, uint32_t layers,
                          struct layer_region *regions)
{
    size_t from[LAYER_REGIONS_MAX] = {0}, until[LAYER_REGIONS_MAX] = {count};
    size_t todo = 1, found = 0;

    while (todo && found < LAYER_REGIONS_MAX) {
        struct layer_region *region = &regions[found];
        size_t first = from[--todo], end = until[todo];
        if (!layer_region_find(marks + first, end - first, layers, 1, region) ||
            region->period < LAYER_PERIOD_MIN ||
            region->length * REGION_LEAST < count)
            continue;
        region->at += first;
        found++;
        if (todo + 2 > LAYER_REGIONS_MAX)
            break;
        from[todo] = first;
        until[todo++] = region->at;
        from[todo] = region->at + region->length;
        until[todo++] = end;
    }
    qsort(regions, found, sizeof *regions, compare_regions);
    return found;
}

/* The longest region of [FROM, UNTIL) that repeats three times or more, with
 * its smallest period. */
static bool region_any(const uint64_t *marks, size_t from, size_t until,
                       struct layer_region *region)
{
    *region = (struct layer_region){.length = 0};
    for (size_t period = LAYER_PERIOD_MIN; 3 * period <= until - from;
         period++) {
        struct layer_region r = run_longest(marks, from, until, period);
        if (r.length >= 3 * period && r.length > region->length)
            *region = r;
    }
    return region->length > 0;
}

struct votes {
    size_t of[LAYERS_MAX + 2]; /* operations, by the number of layers */
};

/* A region of R periods is of R layers, or of one more whose first or last is
 * cut. */
static void vote_for_region(struct votes *v, const struct layer_region *r)
{
    size_t layers = r->length / r->period;

    if (layers > LAYERS_MAX)
        return;
    v->of[layers] += r->length;
    v->of[layers + 1] += r->length - 1;
}

static void vote_all(struct votes *v, const uint64_t *marks, size_t from,
                     size_t until)
{
    struct layer_region r;

    if (!region_any(marks, from, until, &r))
        return;
    vote_for_region(v, &r);
    vote_all(v, marks, from, r.at);
    vote_all(v, marks, r.at + r.length, until);
}

uint32_t layer_count_guess(const uint64_t *marks, size_t count)
{
    struct votes v;
    uint32_t best = 0;

    memset(&v, 0, sizeof v);
    vote_all(&v, marks, 0, count);
    for (uint32_t i = 3; i <= LAYERS_MAX; i++)
        if (v.of[i] > (best ? v.of[best] : 0))
            best = i;
    return best;
}
