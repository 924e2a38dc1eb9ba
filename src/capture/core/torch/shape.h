/* SPDX-License-Identifier: Apache-2.0
 * The type and the dimensions of the tensor that a block is allocated for. */
#ifndef MEMSIM_CAPTURE_CORE_TORCH_SHAPE_H
#define MEMSIM_CAPTURE_CORE_TORCH_SHAPE_H

#include <stdint.h>

/* The id of a name such as "float32 8x1024x50257", of the tensor that this
 * thread is making, if it is the one that asked for BYTES; 0: not known. */
uint32_t shape_take(uint64_t bytes);

#endif
