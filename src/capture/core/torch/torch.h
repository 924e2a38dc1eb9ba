/* SPDX-License-Identifier: Apache-2.0
 * Observes PyTorch's allocator through the functions that PyTorch's libraries
 * call among themselves. None of its code is patched; torch_slots.h describes
 * which of its data is. */
#ifndef MEMSIM_CAPTURE_CORE_TORCH_TORCH_H
#define MEMSIM_CAPTURE_CORE_TORCH_TORCH_H

#include <stdbool.h>

#include "capture/core/base/core.h"

/* Called by functions that allocate device memory, with their return address.
 * True if PyTorch's caching allocator is the caller. The first call attaches to
 * its trace. */
CORE_API bool memsim_torch_calls(const void *return_address);

/* Whether the caller is PyTorch's caching allocator: it records an event behind
 * the work of other streams with a block that it frees, and asks for it before
 * it hands out the block again. */
CORE_API bool memsim_torch_asks(const void *return_address);

/* To be called before an event is recorded, which may be such a one. */
CORE_API void memsim_torch_defers(const void *return_address);

/* The same for cudaMallocAsync, which PyTorch calls for each tensor where
 * PYTORCH_CUDA_ALLOC_CONF says backend:cudaMallocAsync. */
CORE_API bool memsim_torch_pools(const void *return_address);

/* To be asked by cudaGetDeviceCount: PyTorch calls it before its allocator is
 * used. */
CORE_API void memsim_torch_counts(const void *return_address);

/* Before cudaFree of ADDRESS. */
CORE_API void memsim_torch_frees(const void *return_address, uint64_t address);

/* The version of this process's PyTorch, "2.11.0+cu130"; "" where there is none
 * or it has not taken memory yet. */
CORE_API const char *memsim_torch_version(void);

/* Called before memory can be on another stream than the default one. */
void torch_observe(void);

/* For py/limits.py: torch.cuda.set_per_process_memory_fraction() was called;
 * FRACTION is as Python writes it. */
CORE_API void memsim_torch_fraction(int device, const char *fraction);

/* Likewise: the allocator was given SETTINGS, in the variable's syntax. */
CORE_API void memsim_torch_settings(const char *settings);

/* For stream_capture.c, set while anything is captured: the block of BYTES at
 * ADDRESS was handed out anew, for *STREAM, or where that is NULL for one that
 * is not known. */
typedef void torch_fresh_block(const uint64_t *stream, uint64_t address,
                               uint64_t bytes);
extern torch_fresh_block *_Atomic torch_fresh;

/* For mem_pool.c: what PyTorch has of DEVICE, where it does not say so itself.
 */
void torch_usage(int device, uint64_t allocated, uint64_t reserved);

#endif
