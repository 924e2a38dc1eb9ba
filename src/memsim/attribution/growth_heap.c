/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/attribution/growth_heap.h"

#include <stdlib.h>

#define WARM_UP   3 /* rises: caches are filled */
#define RISES_MIN 3
#define THIRDS    3

_Static_assert(GROWTH_HEAP_LOOKS == WARM_UP + RISES_MIN + 1,
               "a rise lies between two looks");

/* --- levels --------------------------------------------------------------- */

/* Leaves out every second level, but none of the warm-up. */
static void levels_thin(struct growth_heap *h)
{
    unsigned to = WARM_UP;

    for (unsigned from = WARM_UP; from < h->count; from += 2)
        h->levels[to++] = h->levels[from];
    h->count = to;
    h->apart = 2 * h->apart + 1;
}

static void level_keep(struct growth_heap *h)
{
    if (h->left) {
        h->left--;
        return;
    }
    if (h->count == GROWTH_HEAP_LEVELS)
        levels_thin(h);
    h->levels[h->count++] = (struct growth_heap_level){h->bytes, h->step};
    h->left = h->apart;
}

/* A level may stay for some steps: its next rise is theirs, too. */
void growth_heap_measure(struct growth_heap *h, unsigned step, uint64_t bytes)
{
    if (!bytes || (h->looks && step <= h->step))
        return;
    h->looks++;
    h->step = step;
    if (bytes == h->bytes)
        return;
    h->bytes = bytes;
    h->changed = step;
    level_keep(h);
}

/* --- it grows evenly ------------------------------------------------------ */

/* The rises that count, a step: of RISES_MIN + 1 levels or more. */
struct rises {
    int64_t of[GROWTH_HEAP_LEVELS];
    unsigned count;
    unsigned steps; /* all of them */
};

/* From A to B, with each step. */
static int64_t rise_rate(const struct growth_heap_level *a,
                         const struct growth_heap_level *b)
{
    return (int64_t)(b->bytes - a->bytes) / (int64_t)(b->step - a->step);
}

static void rises_make(const struct growth_heap *h, struct rises *r)
{
    r->count = h->count - WARM_UP - 1;
    r->steps = h->levels[h->count - 1].step - h->levels[WARM_UP].step;
    for (unsigned i = 0; i < r->count; i++)
        r->of[i] = rise_rate(&h->levels[WARM_UP + i],
                             &h->levels[WARM_UP + i + 1]);
}

static int rise_compare(const void *x, const void *y)
{
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;

    return a < b ? -1 : a > b;
}

static bool is_like(int64_t rise, int64_t middle)
{
    return rise >= middle / 2 && rise <= 2 * middle;
}

/* Of R's rises, of which enough are like MIDDLE. */
static struct growth_rate rises_rate(const struct rises *r, int64_t middle)
{
    int64_t least = middle, most = middle, sum = 0;

    for (unsigned i = 0; i < r->count; i++) {
        sum += r->of[i] > 0 ? r->of[i] : 0;
        if (!is_like(r->of[i], middle))
            continue;
        least = r->of[i] < least ? r->of[i] : least;
        most = r->of[i] > most ? r->of[i] : most;
    }
    int64_t spread = most - least, mean = sum / r->count;
    int64_t low = middle - spread, high = middle + spread;
    return (struct growth_rate){
        .bytes = (uint64_t)middle,
        .least = low > 0 ? (uint64_t)low : 0,
        .most = (uint64_t)(high > mean ? high : mean),
    };
}

/* Whether garbage collections take again and again what was added: more than
 * one, and less than half of it is left. */
static bool is_collected(const struct growth_heap *h, const struct rises *r,
                         int64_t middle)
{
    unsigned falls = 0;

    for (unsigned i = 0; i < r->count; i++)
        falls += r->of[i] < -middle;
    return falls > 1 && 2 * rise_rate(&h->levels[WARM_UP],
                                      &h->levels[h->count - 1]) < middle;
}

/* Until the end: a cache that is full does not grow any more. */
static struct growth_rate even_rate(const struct growth_heap *h)
{
    struct rises r;
    unsigned like = 0;

    rises_make(h, &r);
    qsort(r.of, r.count, sizeof *r.of, rise_compare);
    int64_t middle = r.of[r.count / 2];
    for (unsigned i = 0; i < r.count; i++)
        like += is_like(r.of[i], middle);
    bool grows = (middle >= GROWTH_HEAP_EVEN ||
                  middle * (int64_t)r.steps >= (int64_t)GROWTH_HEAP_MIN) &&
                 like >= r.count - r.count / 4 &&
                 2 * (h->step - h->changed) <= h->step &&
                 !is_collected(h, &r, middle);
    return grows ? rises_rate(&r, middle) : (struct growth_rate){0};
}

/* --- it grows unevenly ---------------------------------------------------- */

/* The largest change between two levels that counts, up or down. */
static int64_t change_most(const struct growth_heap *h, bool down)
{
    int64_t most = 0;

    for (unsigned i = WARM_UP + 1; i < h->count; i++) {
        int64_t more = (int64_t)(h->levels[i].bytes - h->levels[i - 1].bytes);
        more = down ? -more : more;
        most = more > most ? more : most;
    }
    return most;
}

/* The heap when STEP began. */
static struct growth_heap_level level_at(const struct growth_heap *h,
                                         unsigned step)
{
    unsigned i = WARM_UP;

    while (i + 1 < h->count && h->levels[i + 1].step <= step)
        i++;
    return (struct growth_heap_level){
        step < h->step ? h->levels[i].bytes : h->bytes, step};
}

/* Each third has at least half of what an even growth would give it; one rise
 * is at most half of all, a fall at most a quarter. */
static struct growth_rate uneven_rate(const struct growth_heap *h)
{
    struct growth_heap_level at[THIRDS + 1];
    unsigned begin = h->levels[WARM_UP].step;

    for (unsigned i = 0; i <= THIRDS; i++)
        at[i] = level_at(h, begin + (h->step - begin) * i / THIRDS);
    int64_t all = (int64_t)(at[THIRDS].bytes - at[0].bytes);
    if (all < (int64_t)GROWTH_HEAP_MIN || 2 * change_most(h, false) > all ||
        4 * change_most(h, true) > all)
        return (struct growth_rate){0};
    int64_t mean = rise_rate(&at[0], &at[THIRDS]), least = mean, most = mean;
    for (unsigned i = 0; i < THIRDS; i++) {
        int64_t of = rise_rate(&at[i], &at[i + 1]);
        least = of < least ? of : least;
        most = of > most ? of : most;
    }
    return 2 * least < mean
               ? (struct growth_rate){0}
               : (struct growth_rate){(uint64_t)mean, (uint64_t)least,
                                      (uint64_t)most};
}

/* -------------------------------------------------------------------------- */

struct growth_rate growth_heap_rate(const struct growth_heap *h)
{
    if (h->count < WARM_UP + RISES_MIN + 1)
        return (struct growth_rate){0};
    const struct growth_rate even = even_rate(h);
    return even.bytes ? even : uneven_rate(h);
}

bool growth_heap_known(const struct growth_heap *h)
{
    return h->looks >= GROWTH_HEAP_LOOKS;
}

uint64_t growth_heap_least(const struct growth_heap *h)
{
    uint64_t steps = h->step - WARM_UP - 1;

    if (!growth_heap_known(h))
        return 0;
    uint64_t least = (GROWTH_HEAP_MIN + steps - 1) / steps;
    return least < GROWTH_HEAP_EVEN ? least : GROWTH_HEAP_EVEN;
}
