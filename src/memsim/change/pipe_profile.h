/* SPDX-License-Identifier: Apache-2.0
 * An imported profile cut into what a pipeline's stages do. It names no
 * modules:
 *
 *   a step of the profile   embed a b c a b c a b c head | loss c' b' a' ...
 *   its layers                   [     ][     ][     ]         [       ]
 *   the host's thread       ......... the script's ..... | autograd's ....
 *
 * Layers are what repeats, the backward is what autograd's thread launches.
 * Where in a layer what repeats begins is not known: a layer may have an
 * operation or two of its neighbour's. */
#ifndef MEMSIM_MEMSIM_CHANGE_PIPE_PROFILE_H
#define MEMSIM_MEMSIM_CHANGE_PIPE_PROFILE_H

#include "memsim/change/pipe_cut.h"
#include "memsim/change/pipe_split.h"
#include "memsim/change/rewrite.h"

/* Fills *C, of which records, marks and layers are set; to be given to
 * pipe_cut_fini in any case. Returns 0, or -1 with ERR set: a step is not a
 * forward and a backward through the layers for each microbatch. */
int pipe_profile_cut(struct pipe_cut *c, struct err *err);

/* Adds the gradients that the profile marks to the parameters of R, with their
 * layers (from 1) in *LAYERS, to be freed. Without marks there are none. */
void pipe_profile_parameters(const struct pipe_cut *c, struct records *r,
                             uint32_t **layers);

/* Multiplies the times of kernels on lists behind the backward of STEP by
 * SHARE, that of the parameters. */
void pipe_profile_after(struct rewrite *w, const struct pipe_cut *c,
                        const struct pipe_step *step, double share);

#endif
