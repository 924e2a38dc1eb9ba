/* SPDX-License-Identifier: Apache-2.0
 * Sizes that a library was asked for and that are not certain: which blocks
 * have them. A program asks and then allocates: the next block of that size, of
 * the same thread and GPU, is the one. */
#ifndef MEMSIM_COMMON_TRACE_SIZE_RANGE_H
#define MEMSIM_COMMON_TRACE_SIZE_RANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/trace/trace_read.h"

enum { SIZE_RANGES = 16 }; /* the latest ones */

struct size_ranges { /* zeroed: none */
    struct size_range {
        uint64_t device, bytes; /* of 0 bytes: free */
        uint64_t least_bytes, most_bytes;
        uint32_t thread;
    } rows[SIZE_RANGES];
    unsigned next;
};

/* Takes a SIZE_RANGE. */
void size_ranges_tell(struct size_ranges *s, const struct trace_item *item);

/* Whether ALLOC, a BLOCK_ALLOC, has such a size: what it may be on the GPU. */
bool size_ranges_take(struct size_ranges *s, const struct trace_item *alloc,
                      struct size_range *range);

#endif
