/* SPDX-License-Identifier: Apache-2.0
 * The scratch memory that PyTorch lends to libraries, as far as it depends on
 * the GPU. Pure. */
#ifndef MEMSIM_MEMSIM_WORKSPACE_H
#define MEMSIM_MEMSIM_WORKSPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/catalogue/gpu.h"
#include "memsim/alloc/alloc_conf.h"

/* What a cuBLAS handle gets on GPU where CUBLAS_WORKSPACE_CONFIG is not set. */
uint64_t workspace_cublas_bytes(const struct alloc_rules *rules,
                                const struct gpu *gpu);

/* Can BYTES be that of some GPU? */
bool workspace_is_cublas(uint64_t bytes);

#endif
