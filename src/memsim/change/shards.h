/* SPDX-License-Identifier: Apache-2.0
 * FSDP put into the profile of one GPU, as fully_shard of each layer and then
 * of the model does by default. The rest (R) are parameters outside of layers.
 *
 *   forward   R [layer 0][layer 1] ... head | backward  head [layer 1][layer 0]
 *   gathers   R  0        1                   last (1) 0
 *   scatters                                            1        0, R
 *
 * A unit's parameters are gathered on a stream of their own and copied out
 * where its layer begins; those of a backward are gathered one layer ahead.
 * Gradients are joined by a kernel and scattered where the layer's backward
 * ends. The optimizer's kernels on lists take the shard's part of their
 * time. */
#ifndef MEMSIM_MEMSIM_CHANGE_SHARDS_H
#define MEMSIM_MEMSIM_CHANGE_SHARDS_H

#include "common/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shards_report {
    size_t collectives; /* of the recording, that may average gradients: then
                           nothing is put in */
    uint32_t layers, steps, steps_kept; /* of steps; those left as they are */
    uint32_t lists; /* launches on lists of tensors, whose times are less */
    uint64_t layer_bytes, rest_bytes; /* parameters of a layer, of the rest */
    bool accumulates; /* only the last backward of a step scatters */
};

/* Writes the trace FROM with parameters sharded over RANKS to the new file TO;
 * no file where it has collectives. Returns 0, or -1 with ERR set: it marks no
 * gradients, or no layers are found in it. */
int shards_change(uint32_t ranks, const char *from, const char *to,
                  struct shards_report *report, struct err *err);

#endif
