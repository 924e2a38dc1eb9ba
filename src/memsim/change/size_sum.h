/* SPDX-License-Identifier: Apache-2.0
 * Work on several parameters at a time, at another size: FSDP's units and DDP's
 * buckets. Which parameters they have follows from their elements in
 * two recordings: neighbours, or all but neighbours. */
#ifndef MEMSIM_MEMSIM_CHANGE_SIZE_SUM_H
#define MEMSIM_MEMSIM_CHANGE_SIZE_SUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIZE_SUMS_KEPT 64

/* Elements of parameters, in the modules' order, and the ranks that they are
 * sharded over. */
struct size_sums {
    const uint64_t *first, *second, *wanted;
    size_t count;
    uint64_t ranks;
    struct size_sum { /* what was looked for last */
        uint64_t first, second, wanted;
        bool found;
    } kept[SIZE_SUMS_KEPT];
    size_t kept_count;
};

/* Are FIRST and SECOND, a number in both recordings, the elements or the bytes
 * of some parameters, of all ranks or of one? *WANTED are then those in the
 * changed one. False: they are not, or of several that give different numbers.
 */
bool size_sum_find(struct size_sums *s, uint64_t first, uint64_t second,
                   uint64_t *wanted);

#endif
