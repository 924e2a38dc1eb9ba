/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/attribution/growth_heap.h"

#include <stdlib.h>
#include <string.h>

#define WARM_UP   3 /* rises: caches are filled */
#define RISES_MIN 3

/* A level that was not looked at is that of the step before. */
void growth_heap_measure(struct growth_heap *h, unsigned step, uint64_t bytes)
{
    if (!bytes || bytes == h->bytes || step <= h->step)
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

uint64_t growth_heap_rate(const struct growth_heap *h)
{
    int64_t sorted[GROWTH_HEAP_RISES];
    unsigned count = h->count > WARM_UP ? h->count - WARM_UP : 0, like = 0;

    if (count < RISES_MIN)
        return 0;
    memcpy(sorted, h->rises + WARM_UP, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, rise_compare);
    int64_t middle = sorted[count / 2];
    for (unsigned i = 0; i < count; i++)
        like += sorted[i] >= middle / 2 && sorted[i] <= 2 * middle;
    return middle >= GROWTH_HEAP_MIN && like >= count - count / 4
               ? (uint64_t)middle
               : 0;
}
