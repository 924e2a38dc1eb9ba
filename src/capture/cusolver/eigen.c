/* SPDX-License-Identifier: Apache-2.0
 * Eigenvalues and singular values, in the four types. */
#include "capture/cusolver/cusolver.h"

#include "capture/core/work/library_call.h"
#include "capture/core/run/record.h"

/* As in factor.c. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define SHAPE(...) (&(const struct solver_shape){__VA_ARGS__})
#define SIZE(op, ...)                                                          \
    {                                                                          \
        return solver_size(handle, op, SHAPE(__VA_ARGS__), lwork);             \
    }
#define RUN(name, T, info, count, ...)                                         \
    {                                                                          \
        return solver_run(handle, NAME_OF(#name), SHAPE(__VA_ARGS__),          \
                          (uint64_t)lwork * sizeof(T), info, count);           \
    }
#define API    cusolverStatus_t
#define HANDLE cusolverDnHandle_t handle

static enum solver_op op_of_syevd(cusolverEigMode_t jobz)
{
    return jobz == CUSOLVER_EIG_MODE_VECTOR ? SOLVER_SYEVD
                                            : SOLVER_SYEVD_VALUES;
}

/* The rules for singular values are those of a matrix with m >= n. */
#define TALL(m_, n_) .m = m_ > n_ ? m_ : n_, .n = m_ > n_ ? n_ : m_

/* SY is `sy` for real matrices and `he` for complex ones, R the real type. */
#define EIGEN(P, SY, T, R, type_)                                              \
    API cusolverDn##P##SY##evd_bufferSize(                                     \
        HANDLE, cusolverEigMode_t jobz, cublasFillMode_t uplo, int n,          \
        const T *a, int lda, const R *w, int *lwork)                           \
    SIZE(op_of_syevd(jobz), type_, .n = n, .lda = lda)                         \
    API cusolverDn##P##SY##evd(HANDLE, cusolverEigMode_t jobz,                 \
                               cublasFillMode_t uplo, int n, T *a, int lda,    \
                               R *w, T *work, int lwork, int *info)            \
    RUN(cusolverDn##P##SY##evd, T, info, 1, type_, .n = n, .lda = lda)         \
    API cusolverDn##P##SY##gvd_bufferSize(                                     \
        HANDLE, cusolverEigType_t itype, cusolverEigMode_t jobz,               \
        cublasFillMode_t uplo, int n, const T *a, int lda, const T *b,         \
        int ldb, const R *w, int *lwork)                                       \
    SIZE(op_of_syevd(jobz), type_, .n = n, .lda = lda)                         \
    API cusolverDn##P##SY##gvd(HANDLE, cusolverEigType_t itype,                \
                               cusolverEigMode_t jobz, cublasFillMode_t uplo,  \
                               int n, T *a, int lda, T *b, int ldb, R *w,      \
                               T *work, int lwork, int *info)                  \
    RUN(cusolverDn##P##SY##gvd, T, info, 1, type_, .n = n, .lda = lda)         \
    API cusolverDn##P##SY##evj_bufferSize(                                     \
        HANDLE, cusolverEigMode_t jobz, cublasFillMode_t uplo, int n,          \
        const T *a, int lda, const R *w, int *lwork, syevjInfo_t params)       \
    SIZE(SOLVER_SYEVJ, type_, .n = n, .lda = lda)                              \
    API cusolverDn##P##SY##evj(HANDLE, cusolverEigMode_t jobz,                 \
                               cublasFillMode_t uplo, int n, T *a, int lda,    \
                               R *w, T *work, int lwork, int *info,            \
                               syevjInfo_t params)                             \
    RUN(cusolverDn##P##SY##evj, T, info, 1, type_, .n = n, .lda = lda)         \
    API cusolverDn##P##SY##evjBatched_bufferSize(                              \
        HANDLE, cusolverEigMode_t jobz, cublasFillMode_t uplo, int n,          \
        const T *a, int lda, const R *w, int *lwork, syevjInfo_t params,       \
        int batch)                                                             \
    SIZE(SOLVER_SYEVJ_BATCHED, type_, .n = n, .lda = lda, .batch = batch)      \
    API cusolverDn##P##SY##evjBatched(                                         \
        HANDLE, cusolverEigMode_t jobz, cublasFillMode_t uplo, int n, T *a,    \
        int lda, R *w, T *work, int lwork, int *info, syevjInfo_t params,      \
        int batch)                                                             \
    RUN(cusolverDn##P##SY##evjBatched, T, info, batch, type_, .n = n,          \
        .lda = lda, .batch = batch)

#define SINGULAR(P, T, R, type_)                                               \
    API cusolverDn##P##gesvd_bufferSize(HANDLE, int m, int n, int *lwork)      \
    SIZE(SOLVER_GESVD, type_, TALL(m, n))                                      \
    API cusolverDn##P##gesvd(HANDLE, signed char jobu, signed char jobvt,      \
                             int m, int n, T *a, int lda, R *s, T *u, int ldu, \
                             T *vt, int ldvt, T *work, int lwork, R *rwork,    \
                             int *info)                                        \
    RUN(cusolverDn##P##gesvd, T, info, 1, type_, .m = m, .n = n, .lda = lda)   \
    API cusolverDn##P##gesvdj_bufferSize(                                      \
        HANDLE, cusolverEigMode_t jobz, int econ, int m, int n, const T *a,    \
        int lda, const R *s, const T *u, int ldu, const T *v, int ldv,         \
        int *lwork, gesvdjInfo_t params)                                       \
    SIZE(SOLVER_GESVDJ, type_, TALL(m, n))                                     \
    API cusolverDn##P##gesvdj(HANDLE, cusolverEigMode_t jobz, int econ, int m, \
                              int n, T *a, int lda, R *s, T *u, int ldu, T *v, \
                              int ldv, T *work, int lwork, int *info,          \
                              gesvdjInfo_t params)                             \
    RUN(cusolverDn##P##gesvdj, T, info, 1, type_, .m = m, .n = n, .lda = lda)  \
    API cusolverDn##P##gesvdjBatched_bufferSize(                               \
        HANDLE, cusolverEigMode_t jobz, int m, int n, const T *a, int lda,     \
        const R *s, const T *u, int ldu, const T *v, int ldv, int *lwork,      \
        gesvdjInfo_t params, int batch)                                        \
    SIZE(SOLVER_GESVDJ_BATCHED, type_, TALL(m, n), .batch = batch)             \
    API cusolverDn##P##gesvdjBatched(                                          \
        HANDLE, cusolverEigMode_t jobz, int m, int n, T *a, int lda, R *s,     \
        T *u, int ldu, T *v, int ldv, T *work, int lwork, int *info,           \
        gesvdjInfo_t params, int batch)                                        \
    RUN(cusolverDn##P##gesvdjBatched, T, info, batch, type_, .m = m, .n = n,   \
        .lda = lda, .batch = batch)                                            \
    API cusolverDn##P##gesvdaStridedBatched_bufferSize(                        \
        HANDLE, cusolverEigMode_t jobz, int rank, int m, int n, const T *a,    \
        int lda, long long stride_a, const R *s, long long stride_s,           \
        const T *u, int ldu, long long stride_u, const T *v, int ldv,          \
        long long stride_v, int *lwork, int batch)                             \
    SIZE(SOLVER_GESVDA, type_, TALL(m, n), .batch = batch)                     \
    API cusolverDn##P##gesvdaStridedBatched(                                   \
        HANDLE, cusolverEigMode_t jobz, int rank, int m, int n, const T *a,    \
        int lda, long long stride_a, R *s, long long stride_s, T *u, int ldu,  \
        long long stride_u, T *v, int ldv, long long stride_v, T *work,        \
        int lwork, int *info, double *residuals, int batch)                    \
    {                                                                          \
        memsim_call_result(residuals, (uint64_t)batch * sizeof *residuals);    \
        return solver_run(                                                     \
            handle, NAME_OF("cusolverDn" #P "gesvdaStridedBatched"),           \
            SHAPE(type_, .m = m, .n = n, .k = rank, .lda = lda,                \
                  .batch = batch),                                             \
            (uint64_t)lwork * sizeof(T), info, batch);                         \
    }

#define FAMILY(P, SY, T, R, type_)                                             \
    EIGEN(P, SY, T, R, type_)                                                  \
    SINGULAR(P, T, R, type_)

FAMILY(S, sy, float, float, CUDA_R_32F)
FAMILY(D, sy, double, double, CUDA_R_64F)
FAMILY(C, he, cuComplex, float, CUDA_C_32F)
FAMILY(Z, he, cuDoubleComplex, double, CUDA_C_64F)
