/* SPDX-License-Identifier: Apache-2.0
 * The size of the workspaces that PyTorch gives to libraries, if it depends on
 * the GPU. Pure. */
#ifndef MEMSIM_MEMSIM_REPLAY_WORKSPACE_H
#define MEMSIM_MEMSIM_REPLAY_WORKSPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/catalogue/gpu.h"
#include "memsim/alloc/alloc_conf.h"

/* A cuBLAS handle's workspace on GPU if CUBLAS_WORKSPACE_CONFIG is not set. */
uint64_t workspace_cublas_bytes(const struct alloc_rules *rules,
                                const struct gpu *gpu);

/* Whether BYTES is the workspace size of some GPU. */
bool workspace_is_cublas(uint64_t bytes);

#endif
