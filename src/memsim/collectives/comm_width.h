/* SPDX-License-Identifier: Apache-2.0
 * The data-parallel width of a job, and what another one would change. Pure. */
#ifndef MEMSIM_MEMSIM_COLLECTIVES_COMM_WIDTH_H
#define MEMSIM_MEMSIM_COLLECTIVES_COMM_WIDTH_H

#include "common/base/err.h"
#include "memsim/collectives/comm_place.h"

struct comm_width {
    uint32_t ranks; /* 0: the process has no collectives */
    bool shards;    /* of parameters, gradients or states over these ranks */
};

/* Finds the communicators of LOG that average gradients: they all-reduce, and
 * never in forward. A profile has no phases: there the backward has a thread of
 * its own, and they all-reduce behind the forward, and do nothing else, or they
 * reduce-scatter in the backward alone (FSDP, sharded optimizers); of several
 * AVERAGE names the one (NULL: none is named), and is taken at its word. Sets
 * IS_DATA of each communicator and *WIDTH. Returns 0, or -1 with ERR set where
 * another width would change more than is known, such as the memory of a
 * recording with shards of parameters or of the optimizer's state. */
int comm_width_find(const struct comm_log *log, const char *average,
                    bool *is_data, struct comm_width *width, struct err *err);

/* The place of C with RANKS ranks as far apart as its own; WIDTH: GPUs a node.
 */
struct comm_place comm_width_place(const struct comm_log *log,
                                   const struct comm *c, uint32_t ranks,
                                   uint32_t width);

#endif
