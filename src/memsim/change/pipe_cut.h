/* SPDX-License-Identifier: Apache-2.0
 * A recording cut into what a pipeline's stages do: each microbatch's forward
 * and backward, each of them into layers.
 *
 *   step   F0 B0 | feed F1 B1 | ... | after
 *   F      embed [ layer 0 ][ layer 1 ] ... head loss
 *   B      loss head ... [ layer 1 ][ layer 0 ] embed
 *
 * Layers are found by the modules' names. In a forward they are entered and
 * left; in a backward each block of memory names the module whose gradient it
 * is for (man 5 memsim-trace: block_alloc). */
#ifndef MEMSIM_MEMSIM_CHANGE_PIPE_CUT_H
#define MEMSIM_MEMSIM_CHANGE_PIPE_CUT_H

#include "common/base/map.h"
#include "memsim/change/layer_marks.h"
#include "memsim/change/layer_modules.h"

/* One forward or backward: records [from, until). */
struct pipe_pass {
    size_t from, until;
    size_t *cuts; /* of each layer: the record that it begins with */
};

struct pipe_microbatch {
    struct pipe_pass forward, backward;
    size_t feed_from, feed_until; /* records between it and the one before */
};

struct pipe_step {
    struct pipe_microbatch *all;
    size_t count, capacity;
    size_t head_from, head_until;   /* records that all ranks begin with */
    size_t after_from, after_until; /* records: the optimizer, and the rest */
    size_t after_first, after_end;  /* operations of it */
    bool cut; /* false: a warm-up step that is another than the rest */
};

/* What layer I gives to layer I + 1. */
struct pipe_boundary {
    uint64_t bytes;
    const char *why; /* it cannot be sent; NULL: it can */
};

struct pipe_cut {
    const struct records *records;
    const struct layer_marks *marks;
    const struct layer_modules *modules;
    uint32_t layers;
    struct pipe_step *steps;          /* as many as the records have */
    struct pipe_boundary *boundaries; /* layers - 1 */
    uint64_t stream, device;          /* that compute */
    uint32_t thread;                  /* that calls the forward */
    const char *refusal; /* of a profile, its begin; NULL: that of stages */
    struct map layer_by_module; /* layer + 1, of layers and what is in them */
    struct map layer_itself;    /* layer + 1, of layers alone */
};

/* Cuts the recording; to be given to pipe_cut_fini in any case. Returns 0, or
 * -1 with ERR set: it has no such microbatches, or not on one stream. */
int pipe_cut_make(struct pipe_cut *c, const struct records *records,
                  const struct layer_marks *marks,
                  const struct layer_modules *modules, struct err *err);
void pipe_cut_fini(struct pipe_cut *c);
void pipe_step_fini(struct pipe_step *step);

/* The records of the layers [FIRST, END) in PASS, with what is before the first
 * and behind the last one. */
struct pipe_range {
    size_t from, until;
};
struct pipe_range pipe_cut_forward(const struct pipe_cut *c,
                                   const struct pipe_pass *pass, uint32_t first,
                                   uint32_t end);
struct pipe_range pipe_cut_backward(const struct pipe_cut *c,
                                    const struct pipe_pass *pass,
                                    uint32_t first, uint32_t end);

#endif
