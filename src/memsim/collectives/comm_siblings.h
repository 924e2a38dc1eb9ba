/* SPDX-License-Identifier: Apache-2.0
 * Groups of ranks that did not run and do what a group does that ran: the
 * members of one are those of the other, all as many ranks further. Pure. */
#ifndef MEMSIM_MEMSIM_COLLECTIVES_COMM_SIBLINGS_H
#define MEMSIM_MEMSIM_COLLECTIVES_COMM_SIBLINGS_H

#include "memsim/collectives/comm_join.h"

/* Sets *SHIFTS (the caller frees it) to how many ranks further the groups are
 * that C stands for; the first is 0, C itself. Of a world of several groups
 * like C, these are the ones with the same CLASSES of members; without CLASSES
 * C alone. C's members are known. Returns how many. */
size_t comm_siblings(const struct comm *c, const struct comm_classes *classes,
                     int64_t **shifts);

/* The same of RANK alone, of what it sends. */
size_t comm_rank_siblings(uint32_t rank, const struct comm_classes *classes,
                          int64_t **shifts);

#endif
