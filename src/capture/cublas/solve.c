/* SPDX-License-Identifier: Apache-2.0
 * Batched factorisations and solves. An INFO on the host says which argument
 * was bad: none; those on the device, that every matrix was regular. */
#include "capture/cublas/cublas.h"

#include "capture/core/work/library_call.h"
#include "capture/core/run/record.h"

/* The matrices are not looked at. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

cublasStatus_t cublas_call(cublasHandle_t handle, uint32_t name,
                           const struct blas_shape *s)
{
    const struct cublas *c = cublas_get(handle);

    if (!c)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (s->m < 0 || s->n < 0 || s->k < 0 || s->batch < 0)
        return CUBLAS_STATUS_INVALID_VALUE;
    const struct call call = {
        .name = name,
        .stream = c->stream,
        .workspace_bytes = c->workspace_bytes,
        .values = {(uint64_t)s->m, (uint64_t)s->n, (uint64_t)s->k,
                   (uint64_t)s->batch, (uint64_t)s->type},
    };
    return cublas_status(memsim_call(&call));
}

/* INFO has COUNT codes: one on the host, or one of each matrix. */
static cublasStatus_t systems_solve(cublasHandle_t handle, uint32_t name,
                                    const struct blas_shape *shape, int *info,
                                    int count)
{
    cublasStatus_t status = cublas_call(handle, name, shape);

    if (!status)
        memsim_call_result(info, (uint64_t)count * sizeof *info);
    return status;
}

#define SHAPE(...) (&(const struct blas_shape){__VA_ARGS__})
#define SOLVE(name, count, ...)                                                \
    {                                                                          \
        return systems_solve(handle, NAME_OF(#name), SHAPE(__VA_ARGS__), info, \
                             count);                                           \
    }
#define API    cublasStatus_t
#define HANDLE cublasHandle_t handle

#define FAMILY(P, T, type_)                                                    \
    API cublas##P##getrfBatched(HANDLE, int n, T *const a[], int lda,          \
                                int *pivots, int *info, int batch)             \
        SOLVE(cublas##P##getrfBatched, batch, type_, n, n, 0, batch)           \
            API cublas##P##getriBatched(                                       \
                HANDLE, int n, const T *const a[], int lda, const int *pivots, \
                T *const c[], int ldc, int *info, int batch)                   \
                SOLVE(cublas##P##getriBatched, batch, type_, n, n, 0, batch)   \
                    API cublas##P##matinvBatched(                              \
                        HANDLE, int n, const T *const a[], int lda,            \
                        T *const inverse[], int ldi, int *info,                \
                        int batch) SOLVE(cublas##P##matinvBatched, batch,      \
                                         type_, n, n, 0, batch)                \
                        API cublas##P##getrsBatched(                           \
                            HANDLE, cublasOperation_t trans, int n, int nrhs,  \
                            const T *const a[], int lda, const int *pivots,    \
                            T *const b[], int ldb, int *info,                  \
                            int batch) SOLVE(cublas##P##getrsBatched, 1,       \
                                             type_, n, n, nrhs, batch)         \
                            API cublas##P##geqrfBatched(                       \
                                HANDLE, int m, int n, T *const a[], int lda,   \
                                T *const tau[], int *info,                     \
                                int batch) SOLVE(cublas##P##geqrfBatched, 1,   \
                                                 type_, m, n, 0, batch)        \
                                API cublas##P##gelsBatched(                    \
                                    HANDLE, cublasOperation_t trans, int m,    \
                                    int n, int nrhs, T *const a[], int lda,    \
                                    T *const c[], int ldc, int *info,          \
                                    int *device_info, int batch)               \
    {                                                                          \
        memsim_call_result(device_info,                                        \
                           (uint64_t)batch * sizeof *device_info);             \
        return systems_solve(handle, NAME_OF("cublas" #P "gelsBatched"),       \
                             SHAPE(type_, m, n, nrhs, batch), info, 1);        \
    }                                                                          \
    API cublas##P##trsmBatched(HANDLE, cublasSideMode_t side,                  \
                               cublasFillMode_t uplo, cublasOperation_t trans, \
                               cublasDiagType_t diagonal, int m, int n,        \
                               const T *alpha, const T *const a[], int lda,    \
                               T *const b[], int ldb, int batch)               \
    {                                                                          \
        return cublas_call(                                                    \
            handle, NAME_OF("cublas" #P "trsmBatched"),                        \
            SHAPE(type_, m, n, side == CUBLAS_SIDE_LEFT ? m : n, batch));      \
    }

FAMILY(S, float, CUDA_R_32F)
FAMILY(D, double, CUDA_R_64F)
FAMILY(C, cuComplex, CUDA_C_32F)
FAMILY(Z, cuDoubleComplex, CUDA_C_64F)
