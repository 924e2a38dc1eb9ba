/* SPDX-License-Identifier: Apache-2.0
 * What comes behind the backward with another number of layers: kernels on
 * lists of the parameters, or of their gradients, get lists with more or fewer
 * tensors; kernels on a value of each tensor get more or fewer values. */
#ifndef MEMSIM_MEMSIM_CHANGE_LAYER_AFTER_H
#define MEMSIM_MEMSIM_CHANGE_LAYER_AFTER_H

#include "memsim/change/layer_marks.h"
#include "memsim/change/layer_modules.h"
#include "memsim/change/rewrite.h"

struct layer_after {
    struct rewrite *rewrite;
    const struct layer_marks *marks;
    const struct layer_modules *modules;
    size_t first, end; /* operations */
    bool warm_up;      /* lists that are not known are left as they are */
    uint32_t wanted;   /* layers */
    const struct parameter *job; /* the changed job's parameters; NULL: those of
                                    so many layers */
    size_t job_count;
};

/* Adds the edits. Returns 0, or -1 where a kernel's list of tensors is not that
 * of all parameters, nor that of the larger or the smaller ones. */
int layer_after_change(const struct layer_after *a, struct err *err);

/* A profile does not say how many tensors a list has. Multiplies the times of
 * such kernels among the operations [FIRST, END) by FACTOR; returns how many
 * they are. */
uint32_t layer_scale_lists(struct rewrite *w, const struct layer_marks *m,
                           size_t first, size_t end, double factor);

#endif
