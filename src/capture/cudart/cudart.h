/* SPDX-License-Identifier: Apache-2.0
 * The runtime's own part: last errors, and codes. Compiled once per CUDA major,
 * with that major's headers. */
#ifndef MEMSIM_CAPTURE_CUDART_CUDART_H
#define MEMSIM_CAPTURE_CUDART_CUDART_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#include "capture/core/base/core.h"
#include "capture/core/memory/device.h"

/* RC as cudaError_t, kept as this thread's last error where it is one. Every
 * entry point returns through it, and is named in the report where it failed
 * for a bug of the program. */
#define cudart_result(rc) cudart_result_of(rc, __func__)
cudaError_t cudart_fail(int rc, const char *function);

static inline cudaError_t cudart_result_of(int rc, const char *function)
{
    return rc ? cudart_fail(rc, function) : cudaSuccess;
}

/* Returns from an entry point that was given nothing where it needs a place. */
#define NEED(pointers)                                                         \
    do {                                                                       \
        if (!(pointers))                                                       \
            return cudart_result(CORE_INVALID_VALUE);                          \
    } while (0)

#define STREAM(stream) ((uint64_t)(stream))

/* The kernel of HOST: a host stub's address or, where a program got one, a
 * cudaKernel_t. NULL where it is neither. */
struct kernel *cudart_kernel(const void *host);

#endif
