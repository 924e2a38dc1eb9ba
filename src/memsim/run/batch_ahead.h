/* SPDX-License-Identifier: Apache-2.0
 * What a search for the largest batch may ask next, whatever comes out: runs
 * that can be made at the same time. The search then goes on as if they had
 * been made one by one. Pure. */
#ifndef MEMSIM_MEMSIM_RUN_BATCH_AHEAD_H
#define MEMSIM_MEMSIM_RUN_BATCH_AHEAD_H

#include "memsim/run/batch_search.h"

/* Results that need no run. */
struct batch_known {
    /* Sets *T to the result of BATCH, if it is known. */
    bool (*find)(void *context, uint64_t batch, struct batch_try *t);
    void *context;
};

/* Sets BATCHES to at most MOST batches without a known result: the one that S
 * needs next, then those that it needs after the fewest results, the likelier
 * ones first. Returns how many; 0: S ends by what is known. */
size_t batch_ahead(const struct batch_search *s,
                   const struct batch_known *known, uint64_t *batches,
                   size_t most);

#endif
