/* SPDX-License-Identifier: Apache-2.0
 * On which node each rank of the job is. Ranks fill nodes in order, unless
 * --placement says otherwise. */
#ifndef MEMSIM_FITS_PLACEMENT_H
#define MEMSIM_FITS_PLACEMENT_H

#include <stdint.h>

#include "common/base/err.h"

struct placement {
    uint32_t width; /* GPUs of a node */
    uint32_t ranks; /* that are listed; 0: all fill nodes in order. More than
                       the job has: those of further jobs like it follow */
    uint32_t *node, *gpu; /* by rank: the node, and the GPU of it */
};

/* What --placement says as TEXT: "block" (or NULL), "round-robin", or a file
 * with a line for each of WORLD ranks, "NODE" or "NODE GPU", and as many for
 * each job like this one that runs at the same time. Returns 0, or -1: it does
 * not cover the ranks, or puts two on one GPU. */
int placement_make(struct placement *p, const char *text, uint32_t world,
                   uint32_t width, struct err *err);
void placement_fini(struct placement *p);

static inline uint32_t placement_node(const struct placement *p, uint32_t rank)
{
    return rank < p->ranks ? p->node[rank] : rank / p->width;
}

static inline uint32_t placement_gpu(const struct placement *p, uint32_t rank)
{
    return rank < p->ranks ? p->gpu[rank] : rank % p->width;
}

/* How many nodes WORLD ranks take, with those of the other jobs: up to the last
 * one that is used. */
uint32_t placement_nodes(const struct placement *p, uint32_t world);

/* How many jobs of WORLD ranks P places; at least 1. */
uint32_t placement_jobs(const struct placement *p, uint32_t world);

#endif
