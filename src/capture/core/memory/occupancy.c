/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/memory/occupancy.h"

#include "capture/core/memory/device.h"

static uint32_t least_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

int memsim_occupancy(int threads, uint32_t registers, uint64_t shared_bytes,
                     int *blocks)
{
    const struct gpu *gpu = memsim_device_gpu();

    if (threads <= 0 || (uint32_t)threads > gpu->max_threads_per_block)
        return CORE_INVALID_VALUE;
    uint32_t fit = least_u32(gpu->max_threads_per_sm / (uint32_t)threads,
                             gpu->max_blocks_per_sm);
    if (registers)
        fit = least_u32(fit, gpu->registers_per_sm /
                                 (registers * (uint32_t)threads));
    if (shared_bytes)
        fit = least_u32(
            fit, (uint32_t)(gpu->shared_per_sm_bytes /
                            (shared_bytes + gpu->shared_reserved_bytes)));
    *blocks = (int)fit;
    return CORE_OK;
}
