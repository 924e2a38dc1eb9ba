/* SPDX-License-Identifier: Apache-2.0
 * Which module made a node of the autograd graph: each thread numbers the nodes
 * it makes, so the numbers at which its module changed tell it of each node. */
#ifndef MEMSIM_CAPTURE_CORE_TORCH_TAG_SEQUENCE_H
#define MEMSIM_CAPTURE_CORE_TORCH_TAG_SEQUENCE_H

#include <stdbool.h>

#include "capture/core/base/core.h"

/* Finds PyTorch's functions; LIBRARY is a handle of libtorch_cpu.so. */
void sequence_attach(void *library);

/* From here on this thread's nodes are MODULE's. */
void sequence_change(uint32_t module);

/* True where this thread evaluates a node, in backward that is; *MODULE is the
 * one that made it, 0 where that is not known any more. */
bool sequence_node(uint32_t *module);

#endif
