/* SPDX-License-Identifier: Apache-2.0
 * A job whose gradients are averaged over another number of ranks: which ranks
 * its communicators have then, and which of the ranks that ran stands for each.
 * Pure. */
#ifndef MEMSIM_MEMSIM_COLLECTIVES_COMM_WIDER_H
#define MEMSIM_MEMSIM_COLLECTIVES_COMM_WIDER_H

#include "memsim/collectives/comm_join.h"

struct comm_wider {
    const struct comm_log **logs; /* COUNT, with the calls of those given */
    size_t count;
    struct comm_classes classes;
};

/* Makes W of COUNT LOGS, which are borrowed, and CLASSES (NULL: every rank ran)
 * with gradients averaged over RANKS; AVERAGE as for comm_width_find. The first
 * and the last of the ranks that average keep their places, those added are as
 * the last but one. Returns whether the ranks' order is known; W is to be given
 * to comm_wider_fini if so. */
bool comm_wider_make(struct comm_wider *w, const struct comm_log *const *logs,
                     size_t count, const struct comm_classes *classes,
                     const char *average, uint32_t ranks);
void comm_wider_fini(struct comm_wider *w);

#endif
