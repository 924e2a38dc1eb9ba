/* SPDX-License-Identifier: Apache-2.0
 * The optimizer of a pipeline's rank: with the parameters of its stages. */
#ifndef MEMSIM_MEMSIM_CHANGE_PIPE_AFTER_H
#define MEMSIM_MEMSIM_CHANGE_PIPE_AFTER_H

#include "memsim/change/pipe_cut.h"
#include "memsim/change/pipe_split.h"
#include "memsim/change/rewrite.h"

/* Puts the stage of each parameter into STAGES. Those outside of the layers are
 * in the first or the last stage, by when their module is called. Returns 0, or
 * -1 with ERR set: that is not known, or a parameter is used in two stages. */
int pipe_parameters_place(const struct pipe_cut *c,
                          const struct pipe_split *split, uint32_t *stages,
                          struct err *err);

/* Adds the edits of W that leave the parameters that are KEPT in what comes
 * behind the backward of STEP. Returns 0, or -1 with ERR set: it is not known
 * which parameters its kernels work on. */
int pipe_after_change(struct rewrite *w, const struct pipe_cut *c,
                      const struct pipe_step *step, const bool *kept,
                      bool warm_up, struct err *err);

#endif
