/* SPDX-License-Identifier: Apache-2.0
 * A launch as the runtime's callers give it, in the core's terms. */
#ifndef MEMSIM_CAPTURE_CUDART_LAUNCH_H
#define MEMSIM_CAPTURE_CUDART_LAUNCH_H

#include <cuda_runtime_api.h>

#include "capture/core/base/launch.h"

static inline struct kernel_launch cudart_launch(dim3 grid, dim3 block,
                                                 void **arguments,
                                                 size_t shared,
                                                 cudaStream_t stream)
{
    return (struct kernel_launch){
        .grid = {grid.x, grid.y, grid.z},
        .block = {block.x, block.y, block.z},
        .shared_bytes = shared < UINT32_MAX ? (uint32_t)shared : UINT32_MAX,
        .stream = (uint64_t)stream,
        .arguments = arguments,
    };
}

#endif
