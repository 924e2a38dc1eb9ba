/* SPDX-License-Identifier: Apache-2.0
 * A stable sort, without recursion and without memory of its own: kernels that
 * sort run in other people's processes. */
#ifndef MEMSIM_CAPTURE_CORE_COMPUTE_COMPUTE_MERGE_H
#define MEMSIM_CAPTURE_CORE_COMPUTE_COMPUTE_MERGE_H

#include <stdbool.h>
#include <stdint.h>

struct merge_item {
    uint64_t key, place; /* PLACE, or a value, goes with the key */
};

/* Whether A may stand before B: not after it. */
typedef bool merge_order(const void *context, uint64_t a, uint64_t b);

/* Bottom-up merge sort: stable, in the two halves of ITEMS, each of COUNT.
 * Returns where the sorted ones are. */
static inline struct merge_item *merge_sort(struct merge_item *items,
                                            uint64_t count,
                                            merge_order *in_order,
                                            const void *context)
{
    struct merge_item *from = items, *to = items + count;

    for (uint64_t width = 1; width < count; width *= 2) {
        for (uint64_t start = 0; start < count; start += 2 * width) {
            uint64_t middle = start + width < count ? start + width : count;
            uint64_t end = middle + width < count ? middle + width : count;
            uint64_t a = start, b = middle;

            for (uint64_t i = start; i < end; i++)
                to[i] = a < middle && (b >= end || in_order(context,
                                                            from[a].key,
                                                            from[b].key))
                            ? from[a++]
                            : from[b++];
        }
        struct merge_item *swap = from;
        from = to;
        to = swap;
    }
    return from;
}

#endif
