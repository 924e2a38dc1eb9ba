/* SPDX-License-Identifier: Apache-2.0
 * A context's limits, set by cudaDeviceSetLimit and cuCtxSetLimit. They are
 * stored, but use no simulated memory (doc/errors.md). */
#ifndef MEMSIM_CAPTURE_CORE_MEMORY_LIMIT_H
#define MEMSIM_CAPTURE_CORE_MEMORY_LIMIT_H

#include "capture/core/base/core.h"

/* LIMIT is a cudaLimit, which the driver numbers alike, of the current device.
 * CORE_UNSUPPORTED_LIMIT for one that there is not. */
CORE_API int memsim_limit_get(unsigned limit, uint64_t *value);
CORE_API int memsim_limit_set(unsigned limit, uint64_t value);

/* For reset.c: DEVICE has those that a new context has. */
void limit_reset(int device);

#endif
