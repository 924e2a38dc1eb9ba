/* SPDX-License-Identifier: Apache-2.0
 * The driver's own part: its codes, and which context a thread works in. The
 * runtime binds a device's primary context by itself; here a call without one
 * fails, as it does over the real driver. */
#ifndef MEMSIM_CAPTURE_DRIVER_DRIVER_H
#define MEMSIM_CAPTURE_DRIVER_DRIVER_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "capture/core/base/core.h"
#include "capture/core/memory/device.h"

#define DRIVER_VERSION 13000 /* one driver serves CUDA 12 and 13 alike */

#define HANDLE(handle) ((uint64_t)(handle))

/* A core code as the driver numbers it; a bug of the program is reported with
 * the name of the entry point. */
#define driver_result(rc) driver_result_of(rc, __func__)
CUresult driver_result_of(int rc, const char *function);

/* CUDA_SUCCESS once cuInit, or the runtime in its stead, was called. */
CUresult driver_ready(void);

/* CUDA_SUCCESS where there is such a DEVICE. */
CUresult driver_device(int device);

/* CUDA_SUCCESS where this thread has a context to work in. */
CUresult driver_context(void);

/* The primary context of DEVICE, which is open. */
CUcontext driver_context_primary(int device);

/* Returns from an entry point that has no context, or was not initialised. */
#define NEED(condition)                                                        \
    do {                                                                       \
        CUresult need_ = (condition);                                          \
        if (need_)                                                             \
            return need_;                                                      \
    } while (0)

/* The same where one that was given nothing needs a place. */
#define NEED_PLACE(pointers)                                                   \
    NEED((pointers) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE)

#endif
