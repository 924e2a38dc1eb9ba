/* SPDX-License-Identifier: Apache-2.0
 * The matrix products: every entry point fills one struct gemm
 * (products.inc). */
#include "capture/cublas/cublas.h"

#include "capture/core/work/gemm.h"
#include "capture/core/run/record.h"

/* BLAS requires lda >= max(1, rows): cuBLAS checks it before anything else. */
static int arguments_are_bad(const struct gemm *g)
{
    int64_t rows_a = g->transpose_a == CUBLAS_OP_N ? g->m : g->k;
    int64_t rows_b = g->transpose_b == CUBLAS_OP_N ? g->k : g->n;

    return g->m < 0 || g->n < 0 || g->k < 0 || g->batch < 0 ||
           g->lda < (rows_a > 1 ? rows_a : 1) ||
           g->ldb < (rows_b > 1 ? rows_b : 1) || g->ldc < (g->m > 1 ? g->m : 1);
}

cublasStatus_t cublas_gemm(cublasHandle_t handle, uint32_t name, struct gemm *g)
{
    const struct cublas *c = cublas_get(handle);

    if (!c)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (arguments_are_bad(g))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!g->m || !g->n || !g->batch)
        return CUBLAS_STATUS_SUCCESS;
    g->stream = c->stream;
    g->type_d = g->type_c;
    g->ldd = g->ldc;
    g->math_mode = (uint32_t)c->math_mode;
    g->workspace_bytes = c->workspace_bytes;
    return cublas_status(memsim_gemm(name, g));
}

#define PRODUCT(name, text, arguments)                                         \
    return cublas_gemm(handle, NAME_OF(text), &g)

#include "capture/cublas/products.inc"
