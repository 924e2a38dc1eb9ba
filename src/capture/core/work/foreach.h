/* SPDX-License-Identifier: Apache-2.0
 * The lists of tensors that PyTorch's foreach kernels are given, as
 * aten/src/ATen/native/cuda/MultiTensorApply.cuh lays them out: for 4 KiB of
 * arguments, and from 2.12 on for 32 KiB where it is built for CUDA 13. */
#ifndef MEMSIM_CAPTURE_CORE_WORK_FOREACH_H
#define MEMSIM_CAPTURE_CORE_WORK_FOREACH_H

#include <stdbool.h>

#include "capture/core/work/kernel.h"

#define FOREACH_DEPTH_MAX      5
#define FOREACH_CHUNK_ELEMENTS 65536 /* kChunkSize */

/* Which of the structures: of DEPTH lists, TensorListScalarListMetadata where
 * each tensor has a number of SCALAR_BYTES, else TensorListMetadata or, where
 * HAS_STEPS, FusedOptimizerTensorListMetadata. */
struct foreach_kind {
    uint32_t depth;
    uint32_t scalar_bytes;
    bool has_steps;
};

/* Blocks take the tensors in order, chunk by chunk: the first tensor may have
 * been begun, the last one left, by other launches. */
struct foreach_lists {
    const uint64_t *addresses; /* ROOM of the first list, and so on */
    const int64_t *numel;
    const char *scalars;
    uint32_t room;
    uint32_t tensors, blocks;    /* those of this launch */
    int first_chunk, last_chunk; /* of the first and last tensor */
    uint32_t bytes;              /* of the structure, as far as it is read */
};

/* False where the first of LAUNCH's arguments is none such. */
bool foreach_read(const struct foreach_kind *kind,
                  const struct kernel_launch *launch,
                  struct foreach_lists *lists);

#endif
