/* SPDX-License-Identifier: Apache-2.0
 * Factorisations and solves, in the four types: Cholesky, LU, QR, LDL^T. */
#include "capture/cusolver/cusolver.h"

#include "capture/core/run/record.h"

/* What a factorisation computes from is not looked at: most arguments of most
 * functions here. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define SHAPE(...) (&(const struct solver_shape){__VA_ARGS__})
#define SIZE(op, ...)                                                          \
    {                                                                          \
        return solver_size(handle, SOLVER_##op, SHAPE(__VA_ARGS__), lwork);    \
    }
#define RUN(name, elements, T, info, ...)                                      \
    {                                                                          \
        return solver_run(handle, NAME_OF(#name), SHAPE(__VA_ARGS__),          \
                          (uint64_t)(elements) * sizeof(T), info, 1);          \
    }
#define API    cusolverStatus_t
#define HANDLE cusolverDnHandle_t handle

#define CHOLESKY(P, T, type_)                                                  \
    API cusolverDn##P##potrf_bufferSize(HANDLE, cublasFillMode_t uplo, int n,  \
                                        T *a, int lda, int *lwork)             \
    SIZE(POTRF, type_, .n = n, .lda = lda)                                     \
    API cusolverDn##P##potrf(HANDLE, cublasFillMode_t uplo, int n, T *a,       \
                             int lda, T *work, int lwork, int *info)           \
    RUN(cusolverDn##P##potrf, lwork, T, info, type_, .n = n, .lda = lda)       \
    API cusolverDn##P##potri_bufferSize(HANDLE, cublasFillMode_t uplo, int n,  \
                                        T *a, int lda, int *lwork)             \
    SIZE(POTRI, type_, .n = n, .lda = lda)                                     \
    API cusolverDn##P##potri(HANDLE, cublasFillMode_t uplo, int n, T *a,       \
                             int lda, T *work, int lwork, int *info)           \
    RUN(cusolverDn##P##potri, lwork, T, info, type_, .n = n, .lda = lda)       \
    API cusolverDn##P##potrs(HANDLE, cublasFillMode_t uplo, int n, int nrhs,   \
                             const T *a, int lda, T *b, int ldb, int *info)    \
    RUN(cusolverDn##P##potrs, 0, T, info, type_, .n = n, .k = nrhs,            \
        .lda = lda)                                                            \
    API cusolverDn##P##potrfBatched(HANDLE, cublasFillMode_t uplo, int n,      \
                                    T *a[], int lda, int *info, int batch)     \
    {                                                                          \
        return solver_run(                                                     \
            handle, NAME_OF("cusolverDn" #P "potrfBatched"),                   \
            SHAPE(type_, .n = n, .lda = lda, .batch = batch), 0, info, batch); \
    }                                                                          \
    API cusolverDn##P##potrsBatched(HANDLE, cublasFillMode_t uplo, int n,      \
                                    int nrhs, T *a[], int lda, T *b[],         \
                                    int ldb, int *info, int batch)             \
    RUN(cusolverDn##P##potrsBatched, 0, T, info, type_, .n = n, .k = nrhs,     \
        .lda = lda, .batch = batch)

#define LU(P, T, type_)                                                        \
    API cusolverDn##P##getrf_bufferSize(HANDLE, int m, int n, T *a, int lda,   \
                                        int *lwork)                            \
    SIZE(GETRF, type_, .m = m, .n = n, .lda = lda)                             \
    API cusolverDn##P##getrf(HANDLE, int m, int n, T *a, int lda, T *work,     \
                             int *pivots, int *info)                           \
    RUN(cusolverDn##P##getrf,                                                  \
        solver_workspace(SOLVER_GETRF, SHAPE(type_, .m = m, .n = n)), T, info, \
        type_, .m = m, .n = n, .lda = lda)                                     \
    API cusolverDn##P##getrs(HANDLE, cublasOperation_t trans, int n, int nrhs, \
                             const T *a, int lda, const int *pivots, T *b,     \
                             int ldb, int *info)                               \
    RUN(cusolverDn##P##getrs, 0, T, info, type_, .n = n, .k = nrhs,            \
        .lda = lda)

#define LDL(P, T, type_)                                                       \
    API cusolverDn##P##sytrf_bufferSize(HANDLE, int n, T *a, int lda,          \
                                        int *lwork)                            \
    SIZE(SYTRF, type_, .n = n, .lda = lda)                                     \
    API cusolverDn##P##sytrf(HANDLE, cublasFillMode_t uplo, int n, T *a,       \
                             int lda, int *pivots, T *work, int lwork,         \
                             int *info)                                        \
    RUN(cusolverDn##P##sytrf, lwork, T, info, type_, .n = n, .lda = lda)

/* OR is `or` for real matrices and `un` for complex ones. */
#define QR(P, OR, T, type_)                                                    \
    API cusolverDn##P##geqrf_bufferSize(HANDLE, int m, int n, T *a, int lda,   \
                                        int *lwork)                            \
    SIZE(GEQRF, type_, .m = m, .n = n, .lda = lda)                             \
    API cusolverDn##P##geqrf(HANDLE, int m, int n, T *a, int lda, T *tau,      \
                             T *work, int lwork, int *info)                    \
    RUN(cusolverDn##P##geqrf, lwork, T, info, type_, .m = m, .n = n,           \
        .lda = lda)                                                            \
    API cusolverDn##P##OR##gqr_bufferSize(HANDLE, int m, int n, int k,         \
                                          const T *a, int lda, const T *tau,   \
                                          int *lwork)                          \
    SIZE(ORGQR, type_, .m = m, .n = n, .k = k, .lda = lda)                     \
    API cusolverDn##P##OR##gqr(HANDLE, int m, int n, int k, T *a, int lda,     \
                               const T *tau, T *work, int lwork, int *info)    \
    RUN(cusolverDn##P##OR##gqr, lwork, T, info, type_, .m = m, .n = n,         \
        .k = k, .lda = lda)                                                    \
    API cusolverDn##P##OR##mqr_bufferSize(                                     \
        HANDLE, cublasSideMode_t side, cublasOperation_t trans, int m, int n,  \
        int k, const T *a, int lda, const T *tau, const T *c, int ldc,         \
        int *lwork)                                                            \
    SIZE(ORMQR, type_, .n = side == CUBLAS_SIDE_LEFT ? n : m, .k = k)          \
    API cusolverDn##P##OR##mqr(HANDLE, cublasSideMode_t side,                  \
                               cublasOperation_t trans, int m, int n, int k,   \
                               const T *a, int lda, const T *tau, T *c,        \
                               int ldc, T *work, int lwork, int *info)         \
    RUN(cusolverDn##P##OR##mqr, lwork, T, info, type_, .m = m, .n = n, .k = k)

#define FAMILY(P, OR, T, type_)                                                \
    CHOLESKY(P, T, type_)                                                      \
    LU(P, T, type_)                                                            \
    LDL(P, T, type_)                                                           \
    QR(P, OR, T, type_)

FAMILY(S, or, float, CUDA_R_32F)
FAMILY(D, or, double, CUDA_R_64F)
FAMILY(C, un, cuComplex, CUDA_C_32F)
FAMILY(Z, un, cuDoubleComplex, CUDA_C_64F)
