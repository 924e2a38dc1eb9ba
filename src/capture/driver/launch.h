/* SPDX-License-Identifier: Apache-2.0
 * A launch as the driver's callers give it, in the core's terms. */
#ifndef MEMSIM_CAPTURE_DRIVER_LAUNCH_H
#define MEMSIM_CAPTURE_DRIVER_LAUNCH_H

#include <cuda.h>

#include "capture/core/base/launch.h"

static inline struct kernel_launch driver_launch(const CUlaunchConfig *c,
                                                 void **arguments)
{
    return (struct kernel_launch){
        .grid = {c->gridDimX, c->gridDimY, c->gridDimZ},
        .block = {c->blockDimX, c->blockDimY, c->blockDimZ},
        .shared_bytes = c->sharedMemBytes,
        .stream = (uint64_t)c->hStream,
        .arguments = arguments,
    };
}

#endif
