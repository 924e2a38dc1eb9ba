/* SPDX-License-Identifier: Apache-2.0
 * How many blocks of a kernel fit a multiprocessor at once. */
#ifndef MEMSIM_CAPTURE_CORE_MEMORY_OCCUPANCY_H
#define MEMSIM_CAPTURE_CORE_MEMORY_OCCUPANCY_H

#include "capture/core/base/core.h"

/* What stands for a kernel's registers where its binary was not read: most of
 * PyTorch's elementwise kernels take so many. */
#define OCCUPANCY_REGISTERS 32

/* Blocks of THREADS, each with REGISTERS a thread and SHARED_BYTES of its
 * own; 0 where not one fits. CORE_INVALID_VALUE for a block that no GPU
 * takes. */
CORE_API int memsim_occupancy(int threads, uint32_t registers,
                              uint64_t shared_bytes, int *blocks);

#endif
