/* SPDX-License-Identifier: Apache-2.0
 * The forwards and backwards of a pipeline's rank, in the order of its trace.
 */
#ifndef MEMSIM_MEMSIM_CHANGE_PIPE_PASSES_H
#define MEMSIM_MEMSIM_CHANGE_PIPE_PASSES_H

#include "memsim/change/records.h"

/* Records [from, until), and before them [lead_from, lead_until). */
struct pipe_part {
    bool backward;
    size_t from, until, lead_from, lead_until;
};

struct pipe_parts {
    struct pipe_part *all;
    size_t count, capacity;
    size_t end;   /* behind the last one */
    bool several; /* outermost modules take part: stages of one rank */
};

/* Finds those of step STEP of R; to be given to pipe_parts_fini. Sends and
 * receives, phases and calls of outermost modules lie between them. */
void pipe_parts_find(struct pipe_parts *parts, const struct records *r,
                     size_t step);
void pipe_parts_fini(struct pipe_parts *parts);

/* The N-th forward (backward) of PARTS; NULL: there are fewer. */
const struct pipe_part *pipe_parts_get(const struct pipe_parts *parts,
                                       bool backward, size_t n);

#endif
