/* SPDX-License-Identifier: Apache-2.0
 * How many elements of a tensor are not zero, where that is known of more
 * elements than are kept: a mask of a detector's is zeros with some ones
 * scattered over them. A note of an address, and of all bytes from there on: it
 * ends when the first of them is written or forgotten. */
#ifndef MEMSIM_CAPTURE_CORE_MEMORY_VALUES_FEW_H
#define MEMSIM_CAPTURE_CORE_MEMORY_VALUES_FEW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* ONES: no element is more than 1, where several that are added up are taken to
 * be spread evenly. */
struct few {
    uint64_t count; /* of elements that are not zero, at most */
    bool ones;
};

struct values_few {
    uint64_t address, bytes;
    struct few few;
};

#define VALUES_FEW 1024 /* in pairs, the newer one first */

extern struct values_few values_few[VALUES_FEW];

/* Where a note of ADDRESS is, if there is one. Blocks are multiples of 512
 * bytes: Fibonacci hashing. */
static inline struct values_few *values_few_at(uint64_t address)
{
    struct values_few *pair =
        &values_few[(address * UINT64_C(0x9e3779b97f4a7c15) >> 55) * 2];

    return pair + (pair[1].address == address);
}

/* Of BYTES at ADDRESS, written before. */
static inline void values_few_set(uint64_t address, uint64_t bytes,
                                  struct few few)
{
    struct values_few *at = values_few_at(address);

    if (at->address && at->address != address)
        at[1] = *at;
    *at = (struct values_few){address, bytes, few};
}

/* False where nothing is noted of just these BYTES at ADDRESS. */
static inline bool values_few_get(uint64_t address, uint64_t bytes,
                                  struct few *few)
{
    const struct values_few found = *values_few_at(address);

    *few = found.few;
    return found.address == address && found.bytes == bytes;
}

static inline void values_few_end(uint64_t address)
{
    struct values_few *few = values_few_at(address);

    if (few->address == address)
        few->address = 0;
}

#endif
