/* SPDX-License-Identifier: Apache-2.0
 * getChosenWorkspaceSize, parseChosenWorkspaceSize in PyTorch's
 * aten/src/ATen/cuda/CublasHandlePool.cpp. From 2.12 on Blackwell has as much
 * as Hopper: seen by running each release as such a GPU. */
#include "memsim/replay/workspace.h"

#include "common/base/units.h"

#define COMMON_BYTES (2 * 4 * MIB + 8 * 16 * KIB) /* :4096:2:16:8 */
#define HOPPER_BYTES (32 * MIB)

uint64_t workspace_cublas_bytes(const struct alloc_rules *rules,
                                const struct gpu *gpu)
{
    bool blackwell_has_more =
        rules->major > 2 || (rules->major == 2 && rules->minor >= 12);

    if (gpu->capability_major == 9 ||
        (gpu->capability_major >= 10 && blackwell_has_more))
        return HOPPER_BYTES;
    return COMMON_BYTES;
}

bool workspace_is_cublas(uint64_t bytes)
{
    return bytes == COMMON_BYTES || bytes == HOPPER_BYTES;
}
