/* SPDX-License-Identifier: Apache-2.0
 * Between which bounds the peak of PyTorch's allocated bytes lies, where the
 * sizes of libraries' workspaces are those of another GPU or a model's. Of a
 * convolution (struct workspace, capture/cudnn/convolution.h) a real GPU
 * allocates any size from 0 to `workspace_most`, and frees it afterwards. Other
 * blocks have a range of their own (SIZE_RANGE) as long as they live. */
#ifndef MEMSIM_MEMSIM_ATTRIBUTION_WORKSPACE_RANGE_H
#define MEMSIM_MEMSIM_ATTRIBUTION_WORKSPACE_RANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/trace/trace_read.h"

struct size_range;

/* Of one GPU. All bytes are PyTorch's allocated bytes; 0 to begin with. */
struct workspace_range {
    uint64_t least_bytes, most_bytes; /* of the peak, so far */
    uint64_t gpus;         /* bit N: measured on GPUs[N] of the .c file */
    uint64_t now_bytes;    /* allocated */
    uint64_t last_bytes;   /* the block that came last; 0: it was used */
    uint64_t under_bytes, over_bytes; /* what blocks may be less or more */
};

void workspace_range_alloc(struct workspace_range *r,
                           const struct trace_block_alloc *alloc);
void workspace_range_free(struct workspace_range *r,
                          const struct trace_block_free *freed);

/* The block that came last may have SIZE. Sets by how much it may be smaller
 * and larger, which is given back when the block is free. */
void workspace_range_hold(struct workspace_range *r,
                          const struct size_range *size, uint64_t *under_bytes,
                          uint64_t *over_bytes);
void workspace_range_give_back(struct workspace_range *r, uint64_t under_bytes,
                               uint64_t over_bytes);

/* To be called before the convolution's workspace is freed. */
void workspace_range_convolution(struct workspace_range *r,
                                 const struct trace_convolution *convolution);

/* Takes what is not yet in the bounds into them. */
void workspace_range_end(struct workspace_range *r);

/* Whether the bounds are further apart than 1% of the peak. */
bool workspace_range_matters(const struct workspace_range *r);

/* "a V100 in 2021", "an H100 in 2024, or nowhere": where the sizes are from. */
const char *workspace_range_source(const struct workspace_range *r, char *text,
                                   uint64_t size);

#endif
