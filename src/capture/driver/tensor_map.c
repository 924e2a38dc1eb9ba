/* SPDX-License-Identifier: Apache-2.0
 * Descriptors of tensors for Hopper's copy engine, which kernels written in
 * Triton or CUTLASS take as an argument. Nothing here reads them again: they
 * are checked, and keep the address. */
#include <string.h>

#include "capture/driver/driver.h"

#define RANK_MAX      5
#define ADDRESS_ALIGN 16
#define BOX_MAX       256

static CUresult encode_map(CUtensorMap *map, cuuint32_t rank,
                           const void *address, const cuuint64_t *dims)
{
    uint64_t place = (uint64_t)address;

    if (!map || !dims || !rank || rank > RANK_MAX || place % ADDRESS_ALIGN)
        return CUDA_ERROR_INVALID_VALUE;
    memset(map, 0, sizeof *map);
    memcpy(map, &place, sizeof place);
    return CUDA_SUCCESS;
}

CUresult cuTensorMapEncodeTiled(
    CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
    const cuuint64_t *dims, const cuuint64_t *strides, const cuuint32_t *box,
    const cuuint32_t *element_strides, CUtensorMapInterleave interleave,
    CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
    CUtensorMapFloatOOBfill fill)
{
    (void)type, (void)strides, (void)element_strides, (void)interleave;
    (void)swizzle, (void)promotion, (void)fill;
    NEED(encode_map(map, rank, address, dims));
    for (cuuint32_t i = 0; i < rank; i++)
        if (!box[i] || box[i] > BOX_MAX)
            return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult cuTensorMapReplaceAddress(CUtensorMap *map, void *address)
{
    uint64_t place = (uint64_t)address;

    if (!map || place % ADDRESS_ALIGN)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(map, &place, sizeof place);
    return CUDA_SUCCESS;
}
