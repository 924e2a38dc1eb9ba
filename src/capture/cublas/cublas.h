/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MEMSIM_CAPTURE_CUBLAS_H
#define MEMSIM_CAPTURE_CUBLAS_H

#include <cublas_v2.h>
#include <stdint.h>

#include "capture/core/core.h"

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

#endif
