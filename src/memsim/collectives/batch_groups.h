/* SPDX-License-Identifier: Apache-2.0
 * Which ranks work on one batch together: those of a tensor-parallel group,
 * which reduce activations in forward, and the stages of a pipeline. Pure. */
#ifndef MEMSIM_MEMSIM_COLLECTIVES_BATCH_GROUPS_H
#define MEMSIM_MEMSIM_COLLECTIVES_BATCH_GROUPS_H

#include "memsim/collectives/comm_join.h"

/* Of COUNT LOGS, whose ranks stand for CLASSES (NULL: for themselves), and of
 * which KNOWS says how much is known of each one's batch (0: nothing). Sets
 * GROUPS of each log to how many groups have their batch at a rank that it
 * stands for: of a group's ranks the first of those that know most. Returns how
 * many groups there are; 0: of some nothing is known. */
uint64_t batch_groups(const struct comm_log *const *logs, size_t count,
                      const struct comm_classes *classes,
                      const unsigned *knows, uint64_t *groups);

#endif
