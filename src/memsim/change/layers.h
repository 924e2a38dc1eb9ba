/* SPDX-License-Identifier: Apache-2.0
 * Another number of layers in a recording.
 *
 * A step's forward and backward repeat a sequence of operations once per layer.
 * A layer more is this sequence once more, a layer less is it once less:
 *
 *   forward   embed [L L L L] head loss      ->  embed [L L L L L L] head loss
 *   backward  loss head [l l l l] embed      ->  loss head [l l l l l l] embed
 *   optimizer foreach(embed, 4 layers, head) ->  cut again for 6 layers
 *
 * The number of layers comes from the modules' names; in an imported profile,
 * which has none, from the repetition. What does not repeat is kept. */
#ifndef MEMSIM_MEMSIM_CHANGE_LAYERS_H
#define MEMSIM_MEMSIM_CHANGE_LAYERS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

struct layers_change {
    uint32_t layers;    /* wanted, at least 1 */
    uint32_t recorded;  /* what the recording has; 0: to be found */
    const char *prefix; /* the modules' list; NULL: the largest */
    bool copies; /* something of each parameter comes behind the backward's
                    layers: DDP copies gradients out of its buckets */
};

struct layers_report {
    uint32_t recorded;
    uint32_t guessed;      /* of a profile, by repetition; 0: nothing repeats */
    char prefix[256];      /* "": found by repetition */
    uint32_t steps;        /* changed */
    uint32_t steps_kept;   /* warm-up steps that do not repeat: as recorded */
    uint32_t lists_scaled; /* kernels on lists of tensors of an imported
                              profile: their times were multiplied */
    size_t covered_percent; /* of a profile's operations that repeat so */
    size_t forward_ops, backward_ops; /* of a layer, in the last step; of a
                               profile: of the first and second region */
};

/* Writes the recording FROM, changed, to TO, a new file. Returns 0, or -1 with
 * ERR set: it cannot be read or written, or the change is not sound. */
int layers_change(const struct layers_change *change, const char *from,
                  const char *to, struct layers_report *report,
                  struct err *err);

#endif
