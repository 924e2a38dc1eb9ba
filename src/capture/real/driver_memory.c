/* SPDX-License-Identifier: Apache-2.0
 * Taps of the driver's calls that give and take memory, copy and set it: those
 * of libraries that have the runtime linked into them, and of programs that use
 * the driver directly. */
#include <cuda.h>
#include <string.h>

#include "capture/core/memory/device.h"
#include "capture/core/memory/host.h"
#include "capture/core/run/record.h"
#include "capture/core/torch/torch.h"
#include "capture/real/card.h"
#include "capture/real/tap.h"

#define HANDLE(handle) ((uint64_t)(handle))

/* --- memory --------------------------------------------------------------- */

/* The body of a tap that allocates BYTES, at *PLACE. */
#define ALLOCATE(name, arguments, place, bytes, how)                           \
    struct real_call call;                                                     \
    real_enter(&call);                                                         \
    int device = call.outer ? card_current() : -1;                             \
    CUresult rc = device >= 0 && card_is_full(device, bytes)                   \
                      ? CUDA_ERROR_OUT_OF_MEMORY                               \
                      : REAL_FUNCTION(name) arguments;                         \
    if (device >= 0 && !rc)                                                    \
        card_give(device, HANDLE(*place), bytes, how, false);                  \
    else if (device >= 0 && rc == CUDA_ERROR_OUT_OF_MEMORY)                    \
        card_refuse(device, bytes, how, false);                                \
    real_leave(&call);                                                         \
    return rc

CUresult cuMemAlloc(CUdeviceptr *p, size_t bytes)
{
    ALLOCATE(cuMemAlloc, (p, bytes), p, bytes, TRACE_HOW_MALLOC);
}

CUresult cuMemFree(CUdeviceptr p)
{
    card_look_before(p);
    REAL_TAP(cuMemFree, (p), card_take_back(p));
}

/* Of PyTorch's expandable segments: a handle, not an address. */
CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                     const CUmemAllocationProp *property,
                     unsigned long long flags)
{
    torch_observe();
    ALLOCATE(cuMemCreate, (handle, bytes, property, flags), handle, bytes,
             TRACE_HOW_VMM);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    card_look_before(handle);
    REAL_TAP(cuMemRelease, (handle), card_take_back(handle));
}

CUresult cuMemGetInfo(size_t *available, size_t *total)
{
    REAL_TAP(cuMemGetInfo, (available, total),
             card_show(card_current(), available, total));
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device)
{
    size_t available = 0;

    REAL_TAP(cuDeviceTotalMem, (bytes, device),
             card_show(device, &available, bytes));
}

CUresult cuMemHostAlloc(void **p, size_t bytes, unsigned int flags)
{
    REAL_TAP(cuMemHostAlloc, (p, bytes, flags),
             tap_host(*p, bytes, HOST_PINNED, flags));
}

CUresult cuMemAllocHost(void **p, size_t bytes)
{
    REAL_TAP(cuMemAllocHost, (p, bytes),
             tap_host(*p, bytes, HOST_PINNED, 0));
}

CUresult cuMemFreeHost(void *p)
{
    REAL_TAP(cuMemFreeHost, (p), host_real_take_back(HANDLE(p)));
}

/* --- copies --------------------------------------------------------------- */

#define COPY(to, from, direction, stream, blocking)                            \
    tap_copy(&call, HANDLE(to), HANDLE(from), bytes, direction,               \
              HANDLE(stream), blocking)

CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t bytes)
{
    REAL_TAP(cuMemcpyHtoD, (to, from, bytes),
             COPY(to, from, TRACE_HOST_TO_DEVICE, NULL, true));
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes,
                           CUstream stream)
{
    REAL_TAP(cuMemcpyHtoDAsync, (to, from, bytes, stream),
             COPY(to, from, TRACE_HOST_TO_DEVICE, stream, false));
}

CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t bytes)
{
    REAL_TAP(cuMemcpyDtoH, (to, from, bytes),
             COPY(to, from, TRACE_DEVICE_TO_HOST, NULL, true));
}

CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes,
                           CUstream stream)
{
    REAL_TAP(cuMemcpyDtoHAsync, (to, from, bytes, stream),
             COPY(to, from, TRACE_DEVICE_TO_HOST, stream, false));
}

CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    REAL_TAP(cuMemcpyDtoD, (to, from, bytes),
             COPY(to, from, TRACE_DEVICE_TO_DEVICE, NULL, true));
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                           CUstream stream)
{
    REAL_TAP(cuMemcpyDtoDAsync, (to, from, bytes, stream),
             COPY(to, from, TRACE_DEVICE_TO_DEVICE, stream, false));
}

#define BY_ADDRESS 4 /* cudaMemcpyDefault */

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    REAL_TAP(cuMemcpy, (to, from, bytes),
             COPY(to, from, BY_ADDRESS, NULL, true));
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                       CUstream stream)
{
    REAL_TAP(cuMemcpyAsync, (to, from, bytes, stream),
             COPY(to, from, BY_ADDRESS, stream, false));
}

/* --- sets ----------------------------------------------------------------- */

#define SET(unit, stream, blocking)                                            \
    tap_set(&call, p, value, (unit)*count, HANDLE(stream), blocking)

CUresult cuMemsetD8(CUdeviceptr p, unsigned char value, size_t count)
{
    REAL_TAP(cuMemsetD8, (p, value, count), SET(1, NULL, true));
}

CUresult cuMemsetD16(CUdeviceptr p, unsigned short value, size_t count)
{
    REAL_TAP(cuMemsetD16, (p, value, count), SET(2, NULL, true));
}

CUresult cuMemsetD32(CUdeviceptr p, unsigned int value, size_t count)
{
    REAL_TAP(cuMemsetD32, (p, value, count), SET(4, NULL, true));
}

CUresult cuMemsetD8Async(CUdeviceptr p, unsigned char value, size_t count,
                         CUstream stream)
{
    REAL_TAP(cuMemsetD8Async, (p, value, count, stream), SET(1, stream, false));
}

CUresult cuMemsetD16Async(CUdeviceptr p, unsigned short value, size_t count,
                          CUstream stream)
{
    REAL_TAP(cuMemsetD16Async, (p, value, count, stream),
             SET(2, stream, false));
}

CUresult cuMemsetD32Async(CUdeviceptr p, unsigned int value, size_t count,
                          CUstream stream)
{
    REAL_TAP(cuMemsetD32Async, (p, value, count, stream),
             SET(4, stream, false));
}
