/* SPDX-License-Identifier: Apache-2.0
 * Calls that bring a number back: dot products, norms, sums, places of the
 * largest. The number is not known; it reads as zero (or as the first place),
 * on the host or on the device as the pointer mode says. */
#include "capture/cublas/cublas.h"

#include "capture/core/work/stream_capture.h"
#include "capture/core/base/datatype.h"
#include "capture/core/work/kernel.h"
#include "capture/core/run/record.h"
#include "capture/core/work/submit.h"
#include "capture/core/work/stream.h"
#include "capture/core/memory/values.h"

static cublasStatus_t call_reduce(cublasHandle_t handle, uint32_t name,
                                  int64_t n, void *result, uint64_t bytes,
                                  uint64_t value)
{
    const struct cublas *c = cublas_get(handle);
    const uint64_t number[2] = {value, 0};
    const uint64_t unit = bytes < sizeof value ? bytes : sizeof value;
    const uint64_t step[STEP_WORDS] = {(uint64_t)result, value, unit,
                                       bytes / unit};
    int device;

    if (!c)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    int rc = memsim_stream_given(c->stream, &device, __func__);
    if (rc)
        return cublas_status(rc);
    memsim_kernel_count(device);
    if (!memsim_capture_step(c->stream, STEP_SET, step))
        memsim_values_copy((uint64_t)result, (uint64_t)number, bytes);
    SUBMIT(LIBRARY_CALL, .name = name, .device = (uint64_t)device,
           .stream = c->stream, .workspace_bytes = c->workspace_bytes,
           .a = (uint64_t)n, .b = bytes);
    return CUBLAS_STATUS_SUCCESS;
}

#define ONE(name, T, R)                                                        \
    cublasStatus_t name(cublasHandle_t handle, int n, const T *x, int incx,    \
                        R *result)                                             \
    {                                                                          \
        (void)x;                                                               \
        (void)incx;                                                            \
        return call_reduce(handle, NAME_OF(#name), n, result, sizeof *result,  \
                           0);                                                 \
    }
#define TWO(name, T)                                                           \
    cublasStatus_t name(cublasHandle_t handle, int n, const T *x, int incx,    \
                        const T *y, int incy, T *result)                       \
    {                                                                          \
        (void)x;                                                               \
        (void)incx;                                                            \
        (void)y;                                                               \
        (void)incy;                                                            \
        return call_reduce(handle, NAME_OF(#name), n, result, sizeof *result,  \
                           0);                                                 \
    }
#define PLACE(name, T)                                                         \
    cublasStatus_t name(cublasHandle_t handle, int n, const T *x, int incx,    \
                        int *result)                                           \
    {                                                                          \
        (void)x;                                                               \
        (void)incx;                                                            \
        return call_reduce(handle, NAME_OF(#name), n, result, sizeof *result,  \
                           n > 0);                                             \
    }

TWO(cublasSdot, float)
TWO(cublasDdot, double)
TWO(cublasCdotu, cuComplex)
TWO(cublasCdotc, cuComplex)
TWO(cublasZdotu, cuDoubleComplex)
TWO(cublasZdotc, cuDoubleComplex)
ONE(cublasSnrm2, float, float)
ONE(cublasDnrm2, double, double)
ONE(cublasScnrm2, cuComplex, float)
ONE(cublasDznrm2, cuDoubleComplex, double)
ONE(cublasSasum, float, float)
ONE(cublasDasum, double, double)
ONE(cublasScasum, cuComplex, float)
ONE(cublasDzasum, cuDoubleComplex, double)
PLACE(cublasIsamax, float)
PLACE(cublasIdamax, double)
PLACE(cublasIcamax, cuComplex)
PLACE(cublasIzamax, cuDoubleComplex)
PLACE(cublasIsamin, float)
PLACE(cublasIdamin, double)
PLACE(cublasIcamin, cuComplex)
PLACE(cublasIzamin, cuDoubleComplex)

cublasStatus_t cublasDotEx(cublasHandle_t handle, int n, const void *x,
                           cudaDataType x_type, int incx, const void *y,
                           cudaDataType y_type, int incy, void *result,
                           cudaDataType result_type,
                           cudaDataType execution_type)
{
    (void)x, (void)x_type, (void)incx, (void)y, (void)y_type, (void)incy;
    (void)execution_type;
    return call_reduce(handle, NAME_OF("cublasDotEx"), n, result,
                       datatype_bytes(result_type), 0);
}
