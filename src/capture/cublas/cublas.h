/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MEMSIM_CAPTURE_CUBLAS_CUBLAS_H
#define MEMSIM_CAPTURE_CUBLAS_CUBLAS_H

#include <cublas_v2.h>
#include <stdint.h>

#include "capture/core/base/core.h"

/* What a cublasHandle_t points to. */
struct cublas {
    int device;
    uint64_t stream;
    cublasPointerMode_t pointer_mode;
    cublasAtomicsMode_t atomics;
    cublasMath_t math_mode;
    uint64_t workspace_bytes; /* the caller's, by cublasSetWorkspace */
    int sm_target;
};

/* HANDLE's, or NULL where it is not a live one. */
struct cublas *cublas_get(cublasHandle_t handle);

/* A core status as cuBLAS says it. */
cublasStatus_t cublas_status(int rc);

/* Checks a product, fills in what the handle says, and records it. */
struct gemm;
cublasStatus_t cublas_gemm(cublasHandle_t handle, uint32_t name,
                           struct gemm *gemm);

/* Any other work of ours: m, n, k, how many at once, and the type. */
struct blas_shape {
    cudaDataType type;
    int64_t m, n, k, batch;
};

/* Records it under NAME; CUBLAS_STATUS_INVALID_VALUE where a dimension is
 * negative. Nothing to do is success. */
cublasStatus_t cublas_call(cublasHandle_t handle, uint32_t name,
                           const struct blas_shape *shape);

#endif
