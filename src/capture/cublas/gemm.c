/* SPDX-License-Identifier: Apache-2.0
 * The matrix products: every entry point fills one struct gemm. */
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

/* The part of struct gemm that all of them are given by the same names. */
#define SHAPE                                                                  \
    .m = m, .n = n, .k = k, .lda = lda, .ldb = ldb, .ldc = ldc, .a = a,        \
    .b = b, .c = c, .beta = beta, .transpose_a = (int)ta,                      \
    .transpose_b = (int)tb
#define TYPES(type, compute_type)                                              \
    .type_a = type, .type_b = type, .type_c = type, .compute = compute_type,   \
    .scale = type

/* cublasSgemm and its kin, with INT as int and int64_t. */
#define GEMM(name, T, INT, type, compute)                                      \
    cublasStatus_t name(cublasHandle_t handle, cublasOperation_t ta,           \
                        cublasOperation_t tb, INT m, INT n, INT k,             \
                        const T *alpha, const T *a, INT lda, const T *b,       \
                        INT ldb, const T *beta, T *c, INT ldc)                 \
    {                                                                          \
        struct gemm g = {SHAPE, TYPES(type, compute), .batch = 1};             \
                                                                               \
        (void)alpha;                                                           \
        return cublas_gemm(handle, NAME_OF(#name), &g);                        \
    }
#define GEMM_STRIDED(name, T, INT, type, compute)                              \
    cublasStatus_t name(cublasHandle_t handle, cublasOperation_t ta,           \
                        cublasOperation_t tb, INT m, INT n, INT k,             \
                        const T *alpha, const T *a, INT lda, long long sa,     \
                        const T *b, INT ldb, long long sb, const T *beta,      \
                        T *c, INT ldc, long long sc, INT batch)                \
    {                                                                          \
        struct gemm g = {                                                      \
            SHAPE,          TYPES(type, compute), .batch = batch,              \
            .stride_a = sa, .stride_b = sb,       .stride_c = sc};             \
                                                                               \
        (void)alpha;                                                           \
        return cublas_gemm(handle, NAME_OF(#name), &g);                        \
    }
#define GEMM_BATCHED(name, T, INT, type, compute)                              \
    cublasStatus_t name(cublasHandle_t handle, cublasOperation_t ta,           \
                        cublasOperation_t tb, INT m, INT n, INT k,             \
                        const T *alpha, const T *const a[], INT lda,           \
                        const T *const b[], INT ldb, const T *beta,            \
                        T *const c[], INT ldc, INT batch)                      \
    {                                                                          \
        struct gemm g = {SHAPE, TYPES(type, compute), .batch = batch};         \
                                                                               \
        (void)alpha;                                                           \
        return cublas_gemm(handle, NAME_OF(#name), &g);                        \
    }

#define FAMILY(P, T, type, compute)                                            \
    GEMM(cublas##P##gemm, T, int, type, compute)                               \
    GEMM(cublas##P##gemm_64, T, int64_t, type, compute)                        \
    GEMM_STRIDED(cublas##P##gemmStridedBatched, T, int, type, compute)         \
    GEMM_STRIDED(cublas##P##gemmStridedBatched_64, T, int64_t, type, compute)  \
    GEMM_BATCHED(cublas##P##gemmBatched, T, int, type, compute)                \
    GEMM_BATCHED(cublas##P##gemmBatched_64, T, int64_t, type, compute)

FAMILY(S, float, CUDA_R_32F, CUBLAS_COMPUTE_32F)
FAMILY(D, double, CUDA_R_64F, CUBLAS_COMPUTE_64F)
FAMILY(C, cuComplex, CUDA_C_32F, CUBLAS_COMPUTE_32F)
FAMILY(Z, cuDoubleComplex, CUDA_C_64F, CUBLAS_COMPUTE_64F)

/* The Ex calls name their types; the scale's type follows from the compute
 * type. */
#define TYPES_EX                                                               \
    .type_a = (int)type_a, .type_b = (int)type_b, .type_c = (int)type_c,       \
    .compute = (int)compute,                                                   \
    .scale = compute == CUBLAS_COMPUTE_64F   ? CUDA_R_64F                      \
             : compute == CUBLAS_COMPUTE_16F ? CUDA_R_16F                      \
                                             : CUDA_R_32F

#define GEMM_EX(name, INT)                                                     \
    cublasStatus_t name(                                                       \
        cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb,     \
        INT m, INT n, INT k, const void *alpha, const void *a,                 \
        cudaDataType type_a, INT lda, const void *b, cudaDataType type_b,      \
        INT ldb, const void *beta, void *c, cudaDataType type_c, INT ldc,      \
        cublasComputeType_t compute, cublasGemmAlgo_t algorithm)               \
    {                                                                          \
        struct gemm g = {SHAPE, TYPES_EX, .batch = 1};                         \
                                                                               \
        (void)alpha;                                                           \
        (void)algorithm;                                                       \
        return cublas_gemm(handle, NAME_OF(#name), &g);                        \
    }
#define GEMM_STRIDED_EX(name, INT)                                             \
    cublasStatus_t name(                                                       \
        cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb,     \
        INT m, INT n, INT k, const void *alpha, const void *a,                 \
        cudaDataType type_a, INT lda, long long sa, const void *b,             \
        cudaDataType type_b, INT ldb, long long sb, const void *beta, void *c, \
        cudaDataType type_c, INT ldc, long long sc, INT batch,                 \
        cublasComputeType_t compute, cublasGemmAlgo_t algorithm)               \
    {                                                                          \
        struct gemm g = {SHAPE,          TYPES_EX,       .batch = batch,       \
                         .stride_a = sa, .stride_b = sb, .stride_c = sc};      \
                                                                               \
        (void)alpha;                                                           \
        (void)algorithm;                                                       \
        return cublas_gemm(handle, NAME_OF(#name), &g);                        \
    }
#define GEMM_BATCHED_EX(name, INT)                                             \
    cublasStatus_t name(                                                       \
        cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb,     \
        INT m, INT n, INT k, const void *alpha, const void *const a[],         \
        cudaDataType type_a, INT lda, const void *const b[],                   \
        cudaDataType type_b, INT ldb, const void *beta, void *const c[],       \
        cudaDataType type_c, INT ldc, INT batch, cublasComputeType_t compute,  \
        cublasGemmAlgo_t algorithm)                                            \
    {                                                                          \
        struct gemm g = {SHAPE, TYPES_EX, .batch = batch};                     \
                                                                               \
        (void)alpha;                                                           \
        (void)algorithm;                                                       \
        return cublas_gemm(handle, NAME_OF(#name), &g);                        \
    }

GEMM_EX(cublasGemmEx, int)
GEMM_EX(cublasGemmEx_64, int64_t)
GEMM_STRIDED_EX(cublasGemmStridedBatchedEx, int)
GEMM_STRIDED_EX(cublasGemmStridedBatchedEx_64, int64_t)
GEMM_BATCHED_EX(cublasGemmBatchedEx, int)
GEMM_BATCHED_EX(cublasGemmBatchedEx_64, int64_t)

cublasStatus_t cublasSgemmEx(cublasHandle_t handle, cublasOperation_t ta,
                             cublasOperation_t tb, int m, int n, int k,
                             const float *alpha, const void *a,
                             cudaDataType type_a, int lda, const void *b,
                             cudaDataType type_b, int ldb, const float *beta,
                             void *c, cudaDataType type_c, int ldc)
{
    const cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
    struct gemm g = {SHAPE, TYPES_EX, .batch = 1};

    (void)alpha;
    return cublas_gemm(handle, NAME_OF("cublasSgemmEx"), &g);
}
