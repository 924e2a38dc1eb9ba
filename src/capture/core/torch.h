/* SPDX-License-Identifier: Apache-2.0
 * What PyTorch tells us of its allocator, through the functions it calls
 * between its own libraries. Nothing of it is patched. */
#ifndef MEMSIM_CAPTURE_TORCH_H
#define MEMSIM_CAPTURE_TORCH_H

#include <stdbool.h>

#include "capture/core/core.h"

/* To be asked by calls that take device memory, with their return address:
 * true where PyTorch's caching allocator is the caller. The first time, its
 * trace is attached to. */
CORE_API bool memsim_torch_calls(const void *return_address);

/* The same for cudaMallocAsync, which PyTorch calls for each tensor where
 * PYTORCH_CUDA_ALLOC_CONF says backend:cudaMallocAsync. */
CORE_API bool memsim_torch_pools(const void *return_address);

/* For pool.c: what PyTorch has of DEVICE, where it does not say so itself. */
void torch_usage(int device, uint64_t allocated, uint64_t reserved);

#endif
