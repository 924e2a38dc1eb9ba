/* SPDX-License-Identifier: Apache-2.0
 * Lists of tensors as PyTorch's foreach kernels take them
 * (aten/src/ATen/native/cuda/MultiTensorApply.cuh): a launch takes chunks of
 * 65536 elements, tensor after tensor, until it has the most tensors or the
 * most blocks. */
#ifndef MEMSIM_MEMSIM_CHANGE_LAYER_LISTS_H
#define MEMSIM_MEMSIM_CHANGE_LAYER_LISTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct list_launch {
    uint64_t elements;
    uint32_t tensors, blocks;
};

/* The most that a launch takes. */
struct list_room {
    uint32_t tensors, blocks;
};

/* Which structure a kernel takes its lists in. */
enum list_variant {
    LIST_PLAIN,       /* TensorListMetadata and the fused optimizers' */
    LIST_SCALARS = 1, /* TensorListScalarListMetadata */
    LIST_LARGE = 2,   /* 32 KiB of arguments: PyTorch from 2.12 on, CUDA 13 */
    LIST_VARIANTS = 4,
};

/* The variant of the kernel NAME in the PyTorch VERSION ("2.12.1+cu130"). */
unsigned list_variant(const char *name, const char *version);

/* The room of VARIANT for lists of DEPTH tensors. False: DEPTH is not 1 to 5.
 */
bool list_room_get(uint32_t depth, unsigned variant, struct list_room *room);

/* Cuts COUNT tensors of SIZES elements into launches. Returns how many; ALL is
 * to be freed. */
size_t list_cut(const uint64_t *sizes, size_t count,
                const struct list_room *room, struct list_launch **all);

#endif
