/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/collectives/comm_align.h"

#include <stdlib.h>

#include "common/base/xmalloc.h"

#define SHIFT_MOST 256 /* beyond what the counts of calls differ by */

static int64_t end_of(const struct comm_call *c)
{
    return (int64_t)(c->start_ns + c->duration_ns);
}

static int ns_compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

static int64_t median_of(int64_t *ns, size_t count)
{
    qsort(ns, count, sizeof *ns, ns_compare);
    return ns[count / 2];
}

/* Bytes are compared where both profiles say them. */
static bool calls_alike(const struct comm_call *a, const struct comm_call *b)
{
    return a->kind == b->kind &&
           (!a->bytes || !b->bytes || a->bytes == b->bytes);
}

/* A shift, and how well it fits. */
struct fit {
    int64_t shift, clock_ns;
    int64_t spread_ns; /* of the differences of ends: the median deviation */
    size_t calls;
};

/* Of COUNT calls from A and B on. Returns whether they are alike. */
static bool fit_try(const struct comm_call *a, const struct comm_call *b,
                    size_t count, int64_t *ns, struct fit *fit)
{
    for (size_t i = 0; i < count; i++) {
        if (!calls_alike(&a[i], &b[i]))
            return false;
        ns[i] = end_of(&a[i]) - end_of(&b[i]);
    }
    fit->calls = count;
    fit->clock_ns = median_of(ns, count);
    for (size_t i = 0; i < count; i++)
        ns[i] = llabs(ns[i] - fit->clock_ns);
    fit->spread_ns = median_of(ns, count);
    return true;
}

int64_t comm_align(const struct comm_call *a, size_t a_count,
                   const struct comm_call *b, size_t b_count,
                   int64_t *clock_ns)
{
    int64_t most = (int64_t)a_count, least = -(int64_t)b_count;
    size_t shorter = a_count < b_count ? a_count : b_count;
    int64_t *ns = xcalloc(shorter + 1, sizeof *ns);
    struct fit best = {.calls = 0};

    int64_t limit = llabs(most + least) + SHIFT_MOST;
    most = most < limit ? most : limit;
    least = least > -limit ? least : -limit;
    for (int64_t shift = least; shift <= most; shift++) {
        size_t from_a = shift > 0 ? (size_t)shift : 0;
        size_t from_b = shift < 0 ? (size_t)-shift : 0;
        size_t left_a = a_count - from_a, left_b = b_count - from_b;
        size_t count = left_a < left_b ? left_a : left_b;
        struct fit fit = {.shift = shift};

        if (2 * count < shorter || !count ||
            !fit_try(a + from_a, b + from_b, count, ns, &fit))
            continue;
        if (!best.calls || fit.spread_ns < best.spread_ns)
            best = fit;
    }
    free(ns);
    *clock_ns = best.clock_ns;
    return best.shift;
}
