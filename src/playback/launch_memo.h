/* SPDX-License-Identifier: Apache-2.0
 * Prices of launches that were asked before, by what their records say: a step
 * makes the same few hundred launches again and again. What a launch's price
 * follows from (its kernel's name, its grid, what was read of its arguments) is
 * all in its record. */
#ifndef MEMSIM_PLAYBACK_LAUNCH_MEMO_H
#define MEMSIM_PLAYBACK_LAUNCH_MEMO_H

#include "playback/price.h"

#define LAUNCH_MEMO_SETS 512 /* a power of 2 */
#define LAUNCH_MEMO_WAYS 4

/* Of one pricer. Zeroed, it is empty; 208 KiB. */
struct launch_memo {
    struct launch_memo_slot {
        uint64_t key; /* 0: free */
        struct price price;
    } slots[LAUNCH_MEMO_SETS][LAUNCH_MEMO_WAYS];
    uint64_t misses; /* which of a set's slots goes next */
};

/* Of OP, a launch, never 0. */
uint64_t launch_memo_key(const struct op *op);

/* The price that KEY has in M; NULL: none. */
const struct price *launch_memo_find(const struct launch_memo *m, uint64_t key);
void launch_memo_put(struct launch_memo *m, uint64_t key,
                     const struct price *price);

#endif
