/* SPDX-License-Identifier: Apache-2.0
 * The three levels of BLAS, less the products of general matrices and what
 * brings a number back. A matrix times a vector is recorded as a product. */
#include "capture/cublas/cublas.h"

#include "capture/core/work/library_call.h"
#include "capture/core/work/gemm.h"
#include "capture/core/run/record.h"

/* The operands are not looked at. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define SHAPE(...) (&(const struct blas_shape){__VA_ARGS__})
#define CALL(name, ...)                                                        \
    {                                                                          \
        return cublas_call(handle, NAME_OF(#name), SHAPE(__VA_ARGS__));        \
    }
#define API    cublasStatus_t
#define HANDLE cublasHandle_t handle
#define UPLO   cublasFillMode_t uplo
#define SIDE   cublasSideMode_t side
#define TRANS  cublasOperation_t trans
#define DIAG   cublasDiagType_t diagonal

/* A of m x n, or its transpose, by a vector: a product with one column. */
static cublasStatus_t call_gemv(HANDLE, uint32_t name, TRANS, struct gemm *g)
{
    int64_t m = g->m;

    if (trans != CUBLAS_OP_N) {
        g->m = g->k;
        g->k = m;
    }
    g->n = 1;
    g->transpose_a = (int)trans;
    g->type_b = g->type_c = g->scale = g->type_a;
    g->compute = g->type_a == CUDA_R_64F || g->type_a == CUDA_C_64F
                     ? CUBLAS_COMPUTE_64F
                     : CUBLAS_COMPUTE_32F;
    g->ldb = g->k > 1 ? g->k : 1;
    g->ldc = g->m > 1 ? g->m : 1;
    return cublas_gemm(handle, name, g);
}

#define GEMV(name, type, batch_, stride_a_, stride_x, stride_y)                \
    {                                                                          \
        struct gemm g = {.type_a = type,        .batch = batch_,               \
                         .m = m,                .k = n,                        \
                         .a = a,                .b = x,                        \
                         .c = y,                .lda = lda,                    \
                         .stride_a = stride_a_, .stride_b = stride_x,          \
                         .stride_c = stride_y};                                \
                                                                               \
        return call_gemv(handle, NAME_OF(#name), trans, &g);                   \
    }

#define LEVEL1(P, T, type)                                                     \
    API cublas##P##axpy(HANDLE, int n, const T *alpha, const T *x, int incx,   \
                        T *y, int incy)                                        \
    CALL(cublas##P##axpy, type, .m = n)                                        \
    API cublas##P##scal(HANDLE, int n, const T *alpha, T *x, int incx)         \
    CALL(cublas##P##scal, type, .m = n)                                        \
    API cublas##P##copy(HANDLE, int n, const T *x, int incx, T *y, int incy)   \
    CALL(cublas##P##copy, type, .m = n)                                        \
    API cublas##P##swap(HANDLE, int n, T *x, int incx, T *y, int incy)         \
    CALL(cublas##P##swap, type, .m = n)

#define ROT(name, T, C, S, type)                                               \
    API name(HANDLE, int n, T *x, int incx, T *y, int incy, const C *c,        \
             const S *s)                                                       \
    CALL(name, type, .m = n)
#define ROTG(name, T, C, type)                                                 \
    API name(HANDLE, T *a, T *b, C *c, T *s)                                   \
    {                                                                          \
        memsim_call_result(c, sizeof *c);                                      \
        memsim_call_result(s, sizeof *s);                                      \
        return cublas_call(handle, NAME_OF(#name), SHAPE(type, .m = 1));       \
    }
#define ROTM(P, T, type)                                                       \
    API cublas##P##rotm(HANDLE, int n, T *x, int incx, T *y, int incy,         \
                        const T *param)                                        \
    CALL(cublas##P##rotm, type, .m = n)                                        \
    API cublas##P##rotmg(HANDLE, T *d1, T *d2, T *x1, const T *y1, T *param)   \
    {                                                                          \
        memsim_call_result(param, 5 * sizeof *param);                          \
        return cublas_call(handle, NAME_OF("cublas" #P "rotmg"),               \
                           SHAPE(type, .m = 1));                               \
    }

#define LEVEL2(P, T, type)                                                     \
    API cublas##P##gemv(HANDLE, TRANS, int m, int n, const T *alpha,           \
                        const T *a, int lda, const T *x, int incx,             \
                        const T *beta, T *y, int incy)                         \
    GEMV(cublas##P##gemv, type, 1, 0, 0, 0)                                    \
    API cublas##P##gemvStridedBatched(                                         \
        HANDLE, TRANS, int m, int n, const T *alpha, const T *a, int lda,      \
        long long stride_a, const T *x, int incx, long long x_stride,          \
        const T *beta, T *y, int incy, long long y_stride, int batch)          \
    GEMV(cublas##P##gemvStridedBatched, type, batch, stride_a, x_stride,       \
         y_stride)                                                             \
    API cublas##P##gemvBatched(HANDLE, TRANS, int m, int n, const T *alpha,    \
                               const T *const a[], int lda,                    \
                               const T *const x[], int incx, const T *beta,    \
                               T *const y[], int incy, int batch)              \
    GEMV(cublas##P##gemvBatched, type, batch, 0, 0, 0)                         \
    API cublas##P##trmv(HANDLE, UPLO, TRANS, DIAG, int n, const T *a, int lda, \
                        T *x, int incx)                                        \
    CALL(cublas##P##trmv, type, .m = n, .n = n)                                \
    API cublas##P##trsv(HANDLE, UPLO, TRANS, DIAG, int n, const T *a, int lda, \
                        T *x, int incx)                                        \
    CALL(cublas##P##trsv, type, .m = n, .n = n)

#define RANK(P, GER, T, type)                                                  \
    API cublas##P##GER(HANDLE, int m, int n, const T *alpha, const T *x,       \
                       int incx, const T *y, int incy, T *a, int lda)          \
    CALL(cublas##P##GER, type, .m = m, .n = n)
/* Symmetric ones, and Hermitian ones whose ALPHA is real: of type A. */
#define SYMMETRIC2(P, SY, T, A, type)                                          \
    API cublas##P##SY##mv(HANDLE, UPLO, int n, const T *alpha, const T *a,     \
                          int lda, const T *x, int incx, const T *beta, T *y,  \
                          int incy)                                            \
    CALL(cublas##P##SY##mv, type, .m = n, .n = n)                              \
    API cublas##P##SY##r(HANDLE, UPLO, int n, const A *alpha, const T *x,      \
                         int incx, T *a, int lda)                              \
    CALL(cublas##P##SY##r, type, .m = n, .n = n)                               \
    API cublas##P##SY##r2(HANDLE, UPLO, int n, const T *alpha, const T *x,     \
                          int incx, const T *y, int incy, T *a, int lda)       \
    CALL(cublas##P##SY##r2, type, .m = n, .n = n)

#define LEVEL3(P, T, type)                                                     \
    API cublas##P##trsm(HANDLE, SIDE, UPLO, TRANS, DIAG, int m, int n,         \
                        const T *alpha, const T *a, int lda, T *b, int ldb)    \
    CALL(cublas##P##trsm, type, m, n, side == CUBLAS_SIDE_LEFT ? m : n, 1)     \
    API cublas##P##trmm(HANDLE, SIDE, UPLO, TRANS, DIAG, int m, int n,         \
                        const T *alpha, const T *a, int lda, const T *b,       \
                        int ldb, T *c, int ldc)                                \
    CALL(cublas##P##trmm, type, m, n, side == CUBLAS_SIDE_LEFT ? m : n, 1)     \
    API cublas##P##geam(HANDLE, cublasOperation_t ta, cublasOperation_t tb,    \
                        int m, int n, const T *alpha, const T *a, int lda,     \
                        const T *beta, const T *b, int ldb, T *c, int ldc)     \
    CALL(cublas##P##geam, type, .m = m, .n = n)                                \
    API cublas##P##dgmm(HANDLE, SIDE, int m, int n, const T *a, int lda,       \
                        const T *x, int incx, T *c, int ldc)                   \
    CALL(cublas##P##dgmm, type, .m = m, .n = n)
#define SYMMETRIC3(P, SY, T, A, B, type)                                       \
    API cublas##P##SY##mm(HANDLE, SIDE, UPLO, int m, int n, const T *alpha,    \
                          const T *a, int lda, const T *b, int ldb,            \
                          const T *beta, T *c, int ldc)                        \
    CALL(cublas##P##SY##mm, type, m, n, side == CUBLAS_SIDE_LEFT ? m : n, 1)   \
    API cublas##P##SY##rk(HANDLE, UPLO, TRANS, int n, int k, const A *alpha,   \
                          const T *a, int lda, const B *beta, T *c, int ldc)   \
    CALL(cublas##P##SY##rk, type, n, n, k, 1)                                  \
    API cublas##P##SY##r2k(HANDLE, UPLO, TRANS, int n, int k, const T *alpha,  \
                           const T *a, int lda, const T *b, int ldb,           \
                           const B *beta, T *c, int ldc)                       \
    CALL(cublas##P##SY##r2k, type, n, n, k, 1)

#define FAMILY(P, T, type)                                                     \
    LEVEL1(P, T, type)                                                         \
    LEVEL2(P, T, type)                                                         \
    LEVEL3(P, T, type)                                                         \
    SYMMETRIC2(P, sy, T, T, type)                                              \
    SYMMETRIC3(P, sy, T, T, T, type)

#define REAL(P, T, type)                                                       \
    FAMILY(P, T, type)                                                         \
    ROT(cublas##P##rot, T, T, T, type)                                         \
    ROTG(cublas##P##rotg, T, T, type)                                          \
    ROTM(P, T, type)                                                           \
    RANK(P, ger, T, type)
#define COMPLEX(P, T, Q, R, type)                                              \
    FAMILY(P, T, type)                                                         \
    ROT(cublas##P##rot, T, R, T, type)                                         \
    ROT(cublas##P##Q##rot, T, R, R, type)                                      \
    ROTG(cublas##P##rotg, T, R, type)                                          \
    RANK(P, gerc, T, type)                                                     \
    RANK(P, geru, T, type)                                                     \
    SYMMETRIC2(P, he, T, R, type)                                              \
    SYMMETRIC3(P, he, T, R, R, type)                                           \
    API cublas##P##Q##scal(HANDLE, int n, const R *alpha, T *x, int incx)      \
    CALL(cublas##P##Q##scal, type, .m = n)

REAL(S, float, CUDA_R_32F)
REAL(D, double, CUDA_R_64F)
COMPLEX(C, cuComplex, s, float, CUDA_C_32F)
COMPLEX(Z, cuDoubleComplex, d, double, CUDA_C_64F)

API cublasAxpyEx(HANDLE, int n, const void *alpha, cudaDataType alpha_type,
                 const void *x, cudaDataType x_type, int incx, void *y,
                 cudaDataType y_type, int incy, cudaDataType execution)
CALL(cublasAxpyEx, y_type, .m = n)
API cublasScalEx(HANDLE, int n, const void *alpha, cudaDataType alpha_type,
                 void *x, cudaDataType x_type, int incx,
                 cudaDataType execution)
CALL(cublasScalEx, x_type, .m = n)
