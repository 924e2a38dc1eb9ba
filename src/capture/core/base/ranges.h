/* SPDX-License-Identifier: Apache-2.0
 * Ranges of memory by their first address: open addressing, at most half full.
 * The caller locks. */
#ifndef MEMSIM_CAPTURE_CORE_BASE_RANGES_H
#define MEMSIM_CAPTURE_CORE_BASE_RANGES_H

#include <stdbool.h>
#include <stdint.h>

struct range {
    uint64_t address, bytes;
    uint32_t kind; /* the caller's */
    uint32_t born; /* likewise */
};

struct ranges {
    uint64_t places; /* a power of two */
    uint64_t count;
    struct range *all; /* bytes 0: free */
};

/* False: there is no room, or the address is there already. */
bool ranges_add(struct ranges *ranges, const struct range *range);
/* Sets *FOUND; false: it is not there. */
bool ranges_find(const struct ranges *ranges, uint64_t address,
                 struct range *found);
/* The same, and takes it out. */
bool ranges_remove(struct ranges *ranges, uint64_t address, struct range *old);
void ranges_clear(struct ranges *ranges);

#endif
