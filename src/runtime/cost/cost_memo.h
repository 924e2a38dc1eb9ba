/* SPDX-License-Identifier: Apache-2.0
 * Prices that were asked before. A step asks for the same few hundred shapes
 * again and again; a tree ensemble takes microseconds, a look here tens of
 * nanoseconds. The answers are those of cost_price(), whatever is kept. */
#ifndef MEMSIM_RUNTIME_COST_COST_MEMO_H
#define MEMSIM_RUNTIME_COST_COST_MEMO_H

#include "runtime/cost/cost.h"

#define COST_MEMO_SETS 1024 /* a power of 2 */
#define COST_MEMO_WAYS 4

/* Of one image and one GPU. Zeroed, it is empty; 192 KiB. */
struct cost_memo {
    struct cost_memo_slot {
        uint64_t key; /* 0: free */
        struct cost_answer answer;
    } slots[COST_MEMO_SETS][COST_MEMO_WAYS];
    uint64_t misses; /* which of a set's slots goes next */
};

/* cost_price(), remembered. Not for several threads at once. */
void cost_memo_price(struct cost_memo *memo, const struct cost_image *image,
                     const struct cost_gpu *gpu, const struct work *work,
                     struct cost_answer *answer);

#endif
