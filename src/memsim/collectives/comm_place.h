/* SPDX-License-Identifier: Apache-2.0
 * On which nodes a communicator's ranks are. Pure. */
#ifndef MEMSIM_MEMSIM_COLLECTIVES_COMM_PLACE_H
#define MEMSIM_MEMSIM_COLLECTIVES_COMM_PLACE_H

#include "memsim/collectives/comm_log.h"
#include "fits/placement.h"

struct comm_place {
    uint32_t nodes;         /* 0: not known */
    uint32_t gpus_per_node; /* of these ranks, the most of a node */
    double users; /* such collectives that use a node's network at a time, where
                     all its GPUs do the same */
};

/* Sets PLACES of all calls of LOG, whose ranks are AT. */
void comm_places_find(const struct comm_log *log, const struct placement *at,
                      struct comm_place *places);

#endif
