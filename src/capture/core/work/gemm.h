/* SPDX-License-Identifier: Apache-2.0
 * Records a matrix product in the trace, as cuBLAS and cuBLASLt describe it.
 * Types, operations and compute types are numbered as in library_types.h
 * and cublas_api.h. */
#ifndef MEMSIM_CAPTURE_CORE_WORK_GEMM_H
#define MEMSIM_CAPTURE_CORE_WORK_GEMM_H

#include "capture/core/base/core.h"

struct gemm {
    uint64_t stream;
    int64_t m, n, k, batch;
    int type_a, type_b, type_c, type_d;
    int compute, scale;
    int transpose_a, transpose_b;
    int64_t lda, ldb, ldc, ldd;
    int64_t stride_a, stride_b, stride_c; /* in elements; 0: one, or pointers */
    const void *a, *b, *c;                /* for their alignment */
    const void *beta;                     /* of the scale's type, or NULL */
    uint32_t epilogue;                    /* cublasLtEpilogue_t */
    uint64_t workspace_bytes;
    uint32_t math_mode;
};

/* Records the product under NAME, a memsim_name(). CORE_OK, or why the stream
 * cannot take it. */
CORE_API int memsim_gemm(uint32_t name, const struct gemm *gemm);

/* The record alone, of a product on DEVICE. */
void gemm_record(uint32_t name, const struct gemm *g, int device);

#endif
