/* SPDX-License-Identifier: Apache-2.0
 * Stream-ordered memory pools: cudaMallocAsync and its relatives.
 *
 * The model, from "Stream-Ordered Memory Allocator" of the CUDA programming
 * guide: a pool keeps freed memory and uses it again. At each synchronisation
 * unused memory above the release threshold (0 at first) is returned to the
 * GPU. Sizes are multiples of 512 bytes, the alignment that the
 * driver shows. How much a pool takes from the GPU at a time is not
 * documented: POOL_CHUNK_BYTES, the unit in which the driver's cudaMalloc takes
 * addresses, is assumed here. The best fit by (size, address) is taken;
 * since all work is done as soon as it is given, memory can be used again at
 * once, whatever the stream. What a capture allocates is taken at once and
 * stays until it is given back. */
#ifndef MEMSIM_CAPTURE_CORE_WORK_MEM_POOL_H
#define MEMSIM_CAPTURE_CORE_WORK_MEM_POOL_H

#include <stdbool.h>

#include "capture/core/base/core.h"

#define POOL_CHUNK_BYTES (UINT64_C(32) << 20)
#define POOL_ALIGN_BYTES UINT64_C(512)

/* cudaMemPoolAttr and CUmemPool_attribute. */
enum pool_attribute {
    POOL_REUSE_FOLLOW_EVENTS = 1,
    POOL_REUSE_OPPORTUNISTIC,
    POOL_REUSE_INTERNAL,
    POOL_RELEASE_THRESHOLD,
    POOL_RESERVED,
    POOL_RESERVED_HIGH,
    POOL_USED,
    POOL_USED_HIGH,
    POOL_ATTRIBUTES,
};

/* A pool of DEVICE that holds at most MOST_BYTES (0: no limit). */
CORE_API int memsim_pool_create(int device, uint64_t most_bytes,
                                uint64_t *pool);

/* Default pools stay. What is allocated of others stays usable. */
CORE_API int memsim_pool_destroy(uint64_t pool);

/* DEVICE's default pool, and the one that cudaMallocAsync takes from. */
CORE_API int memsim_pool_default(int device, uint64_t *pool);
CORE_API int memsim_pool_current(int device, uint64_t *pool);
CORE_API int memsim_pool_select(int device, uint64_t pool);

/* POOL 0 is the current one of STREAM's device. TORCH: it is the caller. */
CORE_API int memsim_pool_malloc(uint64_t pool, uint64_t bytes, uint64_t stream,
                                bool torch, uint64_t *address);
CORE_API int memsim_pool_free(uint64_t address, uint64_t stream);

CORE_API int memsim_pool_trim(uint64_t pool, uint64_t keep_bytes);
CORE_API int memsim_pool_get(uint64_t pool, enum pool_attribute attribute,
                             uint64_t *value);
CORE_API int memsim_pool_set(uint64_t pool, enum pool_attribute attribute,
                             uint64_t value);
CORE_API int memsim_pool_device(uint64_t pool, int *device);

/* For stream.c, when DEVICE has been waited for. */
void pool_synchronized(int device);

/* For reset.c: DEVICE's pools end, and all that is in them. */
void pool_reset(int device);

#endif
