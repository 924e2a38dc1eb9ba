/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/attribution/growth_heap.h"

#include <stdlib.h>
#include <string.h>

#define WARM_UP   3 /* rises: caches are filled */
#define RISES_MIN 3

_Static_assert(GROWTH_HEAP_LOOKS == WARM_UP + RISES_MIN + 1,
               "a rise lies between two looks");

/* A level may stay for some steps: its next rise is theirs, too. */
void growth_heap_measure(struct growth_heap *h, unsigned step, uint64_t bytes)
{
    if (!bytes || step <= h->step)
        return;
    h->looks++;
    if (bytes == h->bytes)
        return;
    int64_t steps = (int64_t)(step - h->step);
    if (h->step && h->count < GROWTH_HEAP_RISES)
        h->rises[h->count++] = (int64_t)(bytes - h->bytes) / steps;
    h->bytes = bytes;
    h->step = step;
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

/* Of COUNT rises, of which enough are like MIDDLE. */
static struct growth_rate rises_rate(const int64_t *rises, unsigned count,
                                     int64_t middle)
{
    int64_t least = middle, most = middle, sum = 0;

    for (unsigned i = 0; i < count; i++) {
        sum += rises[i] > 0 ? rises[i] : 0;
        if (!is_like(rises[i], middle))
            continue;
        least = rises[i] < least ? rises[i] : least;
        most = rises[i] > most ? rises[i] : most;
    }
    int64_t spread = most - least, mean = sum / count;
    int64_t low = middle - spread, high = middle + spread;
    return (struct growth_rate){
        .bytes = (uint64_t)middle,
        .least = low > 0 ? (uint64_t)low : 0,
        .most = (uint64_t)(high > mean ? high : mean),
    };
}

struct growth_rate growth_heap_rate(const struct growth_heap *h)
{
    int64_t sorted[GROWTH_HEAP_RISES];
    unsigned count = h->count > WARM_UP ? h->count - WARM_UP : 0, like = 0;

    if (count < RISES_MIN)
        return (struct growth_rate){0};
    memcpy(sorted, h->rises + WARM_UP, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, rise_compare);
    int64_t middle = sorted[count / 2];
    for (unsigned i = 0; i < count; i++)
        like += is_like(sorted[i], middle);
    return middle >= GROWTH_HEAP_MIN && like >= count - count / 4
               ? rises_rate(sorted, count, middle)
               : (struct growth_rate){0};
}

bool growth_heap_known(const struct growth_heap *h)
{
    return h->looks >= GROWTH_HEAP_LOOKS;
}
