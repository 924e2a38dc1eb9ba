/* SPDX-License-Identifier: Apache-2.0
 * The runtime's own part: last errors, and codes. Compiled once per CUDA major,
 * with that major's headers. */
#ifndef MEMSIM_CAPTURE_CUDART_H
#define MEMSIM_CAPTURE_CUDART_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#include "capture/core/core.h"
#include "capture/core/device.h"

/* RC as cudaError_t, kept as this thread's last error where it is one. Every
 * entry point returns through it. */
cudaError_t cudart_result(int rc);

#define STREAM(stream) ((uint64_t)(stream))

#endif
