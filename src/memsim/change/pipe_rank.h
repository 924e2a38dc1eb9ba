/* SPDX-License-Identifier: Apache-2.0
 * The recording of one rank of a pipeline, put together from pieces of the
 * recording of the whole model. */
#ifndef MEMSIM_MEMSIM_CHANGE_PIPE_RANK_H
#define MEMSIM_MEMSIM_CHANGE_PIPE_RANK_H

#include "memsim/change/pipe_cut.h"
#include "memsim/change/pipe_schedule.h"
#include "memsim/change/pipe_split.h"
#include "memsim/change/rewrite.h"

struct pipe_rank {
    const struct pipe_cut *cut;
    const struct pipe_split *split;
    const struct pipe_list *list; /* what it does in a step */
    struct rewrite *rewrite;   /* with the edits of what is behind backwards */
    uint32_t rank, node_ranks; /* of a node */
    /* Of a profile whose groups have other ranks, too: how far apart stages are
     * among the GPUs, and those of a node (0: not known). Else 1 and 0. */
    uint32_t apart, node_gpus;
    /* Of each parameter; NULL: the recording shows how gradients are added. */
    const uint32_t *adds_stage;
};

/* Writes the recording of RANK to the new file PATH. Records are added to those
 * of the rewrite. Returns 0, or -1 with ERR set and no file. */
int pipe_rank_write(const struct pipe_rank *rank, const char *path,
                    struct err *err);

#endif
