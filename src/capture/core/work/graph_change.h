/* SPDX-License-Identifier: Apache-2.0
 * Changed parameters of a graph's nodes, and whether nodes are enabled. A graph
 * has its own changes. An executable graph starts with a copy of those at its
 * instantiation and then has its own: "the modifications only affect future
 * launches" of the one that is changed (cudaGraphExecKernelNodeSetParams). */
#ifndef MEMSIM_CAPTURE_CORE_WORK_GRAPH_CHANGE_H
#define MEMSIM_CAPTURE_CORE_WORK_GRAPH_CHANGE_H

#include <stdbool.h>

#include "capture/core/work/graph_steps.h"

/* Graphs share it, and never change it. */
struct graph_work_steps {
    _Atomic uint32_t references;
    struct graph_steps steps;
};

struct graph_change {
    struct graph_work_steps *work; /* NULL: what it did from the start */
    bool is_off;
};

struct graph_changes {
    struct graph_change *of; /* by node; NULL: none has changed */
    uint32_t count;
};

/* NODE counts from 1, as in struct step; NULL where it is as it was. */
static inline const struct graph_change *
graph_change_of(const struct graph_changes *changes, uint32_t node)
{
    return node && node <= changes->count ? &changes->of[node - 1] : NULL;
}

/* The change of NODE, of NODES, to be made; NULL without room. */
struct graph_change *graph_change_begin(struct graph_changes *changes,
                                        uint32_t node, uint32_t nodes);

/* NULL without room. Held once. */
struct graph_work_steps *graph_work_steps_new(void);
void graph_work_steps_release(struct graph_work_steps *work);

void graph_changes_copy(struct graph_changes *to,
                        const struct graph_changes *from);
void graph_changes_fini(struct graph_changes *changes);

#endif
