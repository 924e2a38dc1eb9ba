/* SPDX-License-Identifier: Apache-2.0
 * The 64-bit functions, which name their types: cusolverDnX... */
#include "capture/cusolver/cusolver.h"

#include "capture/core/run/record.h"

/* As in factor.c. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define SHAPE(...) (&(const struct solver_shape){type, __VA_ARGS__})
#define SIZE(op, ...)                                                          \
    {                                                                          \
        return solver_size_bytes(handle, op, SHAPE(__VA_ARGS__), device_bytes, \
                                 host_bytes);                                  \
    }
#define RUN(name, bytes, count, ...)                                           \
    {                                                                          \
        return solver_run(handle, NAME_OF(#name), SHAPE(__VA_ARGS__), bytes,   \
                          info, count);                                        \
    }
#define API     cusolverStatus_t
#define HANDLE  cusolverDnHandle_t handle
#define PARAMS  HANDLE, cusolverDnParams_t params
#define MATRIX  cudaDataType type, void *a, int64_t lda
#define SIZES   size_t *device_bytes, size_t *host_bytes
#define BUFFERS                                                                \
    void *on_device, size_t device_bytes, void *on_host, size_t host_bytes,    \
        int *info
#define CONST_MATRIX cudaDataType type, const void *a, int64_t lda

static enum solver_op op_of_syevd(cusolverEigMode_t jobz)
{
    return jobz == CUSOLVER_EIG_MODE_VECTOR ? SOLVER_SYEVD
                                            : SOLVER_SYEVD_VALUES;
}

API cusolverDnXpotrf_bufferSize(PARAMS, cublasFillMode_t uplo, int64_t n,
                                CONST_MATRIX, cudaDataType compute, SIZES)
SIZE(SOLVER_POTRF, .n = n, .lda = lda)
API cusolverDnXpotrf(PARAMS, cublasFillMode_t uplo, int64_t n, MATRIX,
                     cudaDataType compute, BUFFERS)
RUN(cusolverDnXpotrf, device_bytes, 1, .n = n, .lda = lda)
API cusolverDnXpotrs(PARAMS, cublasFillMode_t uplo, int64_t n, int64_t nrhs,
                     CONST_MATRIX, cudaDataType type_b, void *b, int64_t ldb,
                     int *info)
RUN(cusolverDnXpotrs, 0, 1, .n = n, .k = nrhs, .lda = lda)

API cusolverDnXgetrf_bufferSize(PARAMS, int64_t m, int64_t n, CONST_MATRIX,
                                cudaDataType compute, SIZES)
SIZE(SOLVER_GETRF, .m = m, .n = n, .lda = lda)
API cusolverDnXgetrf(PARAMS, int64_t m, int64_t n, MATRIX, int64_t *pivots,
                     cudaDataType compute, BUFFERS)
RUN(cusolverDnXgetrf, device_bytes, 1, .m = m, .n = n, .lda = lda)
API cusolverDnXgetrs(PARAMS, cublasOperation_t trans, int64_t n, int64_t nrhs,
                     CONST_MATRIX, const int64_t *pivots, cudaDataType type_b,
                     void *b, int64_t ldb, int *info)
RUN(cusolverDnXgetrs, 0, 1, .n = n, .k = nrhs, .lda = lda)

API cusolverDnXgeqrf_bufferSize(PARAMS, int64_t m, int64_t n, CONST_MATRIX,
                                cudaDataType type_tau, const void *tau,
                                cudaDataType compute, SIZES)
SIZE(SOLVER_GEQRF, .m = m, .n = n, .lda = lda)
API cusolverDnXgeqrf(PARAMS, int64_t m, int64_t n, MATRIX,
                     cudaDataType type_tau, void *tau, cudaDataType compute,
                     BUFFERS)
RUN(cusolverDnXgeqrf, device_bytes, 1, .m = m, .n = n, .lda = lda)

API cusolverDnXsytrs_bufferSize(HANDLE, cublasFillMode_t uplo, int64_t n,
                                int64_t nrhs, CONST_MATRIX,
                                const int64_t *pivots, cudaDataType type_b,
                                void *b, int64_t ldb, SIZES)
SIZE(SOLVER_SYTRS, .n = n, .k = nrhs, .lda = lda)
API cusolverDnXsytrs(HANDLE, cublasFillMode_t uplo, int64_t n, int64_t nrhs,
                     CONST_MATRIX, const int64_t *pivots, cudaDataType type_b,
                     void *b, int64_t ldb, BUFFERS)
RUN(cusolverDnXsytrs, device_bytes, 1, .n = n, .k = nrhs, .lda = lda)

API cusolverDnXtrtri_bufferSize(HANDLE, cublasFillMode_t uplo,
                                cublasDiagType_t diagonal, int64_t n, MATRIX,
                                SIZES)
SIZE(SOLVER_TRTRI, .n = n, .lda = lda)
API cusolverDnXtrtri(HANDLE, cublasFillMode_t uplo, cublasDiagType_t diagonal,
                     int64_t n, MATRIX, BUFFERS)
RUN(cusolverDnXtrtri, device_bytes, 1, .n = n, .lda = lda)

API cusolverDnXsyevd_bufferSize(PARAMS, cusolverEigMode_t jobz,
                                cublasFillMode_t uplo, int64_t n, CONST_MATRIX,
                                cudaDataType type_w, const void *w,
                                cudaDataType compute, SIZES)
SIZE(op_of_syevd(jobz), .n = n, .lda = lda)
API cusolverDnXsyevd(PARAMS, cusolverEigMode_t jobz, cublasFillMode_t uplo,
                     int64_t n, MATRIX, cudaDataType type_w, void *w,
                     cudaDataType compute, BUFFERS)
RUN(cusolverDnXsyevd, device_bytes, 1, .n = n, .lda = lda)
API cusolverDnXsyevBatched_bufferSize(PARAMS, cusolverEigMode_t jobz,
                                      cublasFillMode_t uplo, int64_t n,
                                      CONST_MATRIX, cudaDataType type_w,
                                      const void *w, cudaDataType compute,
                                      SIZES, int64_t batch)
SIZE(op_of_syevd(jobz), .n = n, .lda = lda, .batch = batch)
API cusolverDnXsyevBatched(PARAMS, cusolverEigMode_t jobz,
                           cublasFillMode_t uplo, int64_t n, MATRIX,
                           cudaDataType type_w, void *w, cudaDataType compute,
                           BUFFERS, int64_t batch)
RUN(cusolverDnXsyevBatched, device_bytes, batch, .n = n, .lda = lda,
    .batch = batch)

API cusolverDnXgeev_bufferSize(
    PARAMS, cusolverEigMode_t jobvl, cusolverEigMode_t jobvr, int64_t n,
    CONST_MATRIX, cudaDataType type_w, const void *w, cudaDataType type_vl,
    const void *vl, int64_t ldvl, cudaDataType type_vr, const void *vr,
    int64_t ldvr, cudaDataType compute, SIZES)
SIZE(SOLVER_GEEV, .n = n, .lda = lda)
API cusolverDnXgeev(PARAMS, cusolverEigMode_t jobvl, cusolverEigMode_t jobvr,
                    int64_t n, MATRIX, cudaDataType type_w, void *w,
                    cudaDataType type_vl, void *vl, int64_t ldvl,
                    cudaDataType type_vr, void *vr, int64_t ldvr,
                    cudaDataType compute, BUFFERS)
RUN(cusolverDnXgeev, device_bytes, 1, .n = n, .lda = lda)

API cusolverDnXgesvd_bufferSize(
    PARAMS, signed char jobu, signed char jobvt, int64_t m, int64_t n,
    CONST_MATRIX, cudaDataType type_s, const void *s, cudaDataType type_u,
    const void *u, int64_t ldu, cudaDataType type_vt, const void *vt,
    int64_t ldvt, cudaDataType compute, SIZES)
SIZE(SOLVER_GESVD, .m = m, .n = n, .lda = lda)
API cusolverDnXgesvd(PARAMS, signed char jobu, signed char jobvt, int64_t m,
                     int64_t n, MATRIX, cudaDataType type_s, void *s,
                     cudaDataType type_u, void *u, int64_t ldu,
                     cudaDataType type_vt, void *vt, int64_t ldvt,
                     cudaDataType compute, BUFFERS)
RUN(cusolverDnXgesvd, device_bytes, 1, .m = m, .n = n, .lda = lda)
