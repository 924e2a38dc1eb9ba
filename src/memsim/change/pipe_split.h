/* SPDX-License-Identifier: Apache-2.0
 * Which layers a pipeline's stages have. */
#ifndef MEMSIM_MEMSIM_CHANGE_PIPE_SPLIT_H
#define MEMSIM_MEMSIM_CHANGE_PIPE_SPLIT_H

#include <stdint.h>

#include "common/base/err.h"

#define PIPE_RANKS_MAX  32 /* processes of a recording */
#define PIPE_STAGES_MAX 256

/* Stage S is on rank S % ranks. */
struct pipe_split {
    uint32_t ranks, chunks; /* of each rank: 1, or more where interleaved */
    uint32_t stages;        /* ranks * chunks */
    /* The layers of each stage as the user listed them; [0] 0: evenly */
    uint32_t listed[PIPE_STAGES_MAX];
    /* Stage S has the layers [first[S], first[S + 1]); see pipe_split_layers */
    uint32_t first[PIPE_STAGES_MAX + 1];
};

/* Reads "4", "4x2" (4 ranks, 2 stages of each) or, with the layers of each
 * stage, "3+5+5+3" and "1+3+3+1x2". Returns 0, or -1 with ERR set. */
int pipe_split_read(struct pipe_split *split, const char *text,
                    struct err *err);

/* Gives LAYERS to the stages: as listed; else evenly, the first LAYERS % stages
 * of them having one more. Returns 0, or -1 with ERR set. */
int pipe_split_layers(struct pipe_split *split, uint32_t layers,
                      struct err *err);

/* The stage of LAYER, from 1. */
uint32_t pipe_split_stage(const struct pipe_split *split, uint32_t layer);

#endif
