/* SPDX-License-Identifier: Apache-2.0
 * How large an element of cudaDataType is, for cuBLAS and cuSPARSE. */
#ifndef MEMSIM_CAPTURE_CORE_BASE_DATATYPE_H
#define MEMSIM_CAPTURE_CORE_BASE_DATATYPE_H

#include <library_types.h>
#include <stdint.h>

static inline uint64_t datatype_bytes(cudaDataType type)
{
    switch (type) {
    case CUDA_R_8I:
    case CUDA_R_8U:
        return 1;
    case CUDA_R_16F:
    case CUDA_R_16BF:
        return 2;
    case CUDA_R_64F:
    case CUDA_C_32F:
        return 8;
    case CUDA_C_64F:
        return 16;
    default:
        return 4;
    }
}

#endif
