/* SPDX-License-Identifier: Apache-2.0
 * The allocator's events of an estimate and of a real run, side by side. */
#ifndef MEMSIM_MEMSIM_TIME_TRUTH_BLOCKS_H
#define MEMSIM_MEMSIM_TIME_TRUTH_BLOCKS_H

#include "memsim/time/truth_side.h"

/* What stands in one place of both. NULL: a block of the other side alone,
 * which is given and taken back at once: a workspace of 0 bytes is no block. */
struct truth_pair {
    const struct truth_event *estimate, *run;
};

/* Zeroed, it is before the first. After the last, where both sides are: at
 * their ends, or where their events differ. */
struct truth_walk {
    size_t estimate, run;
};

/* Returns false after the last pair. */
bool truth_walk_next(const struct truth_side *estimate,
                     const struct truth_side *run, struct truth_walk *walk,
                     struct truth_pair *pair);

#endif
