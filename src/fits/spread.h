/* SPDX-License-Identifier: Apache-2.0
 * Over how many nodes the ranks of a group are spread. No I/O; memory comes
 * from common/base/xmalloc.h. */
#ifndef MEMSIM_FITS_SPREAD_H
#define MEMSIM_FITS_SPREAD_H

#include "fits/placement.h"

struct spread {
    uint32_t nodes;
    uint32_t gpus_per_node; /* of these ranks, the most of a node */
    double users; /* such groups that use a node's network at a time, where all
                     its GPUs do the same */
};

/* Of COUNT MEMBERS, which are AT, of a job of WORLD ranks (0: not known). */
void spread_find(struct spread *s, const uint32_t *members, uint32_t count,
                 const struct placement *at, uint32_t world);

#endif
