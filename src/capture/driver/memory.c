/* SPDX-License-Identifier: Apache-2.0
 * Device and host memory by the driver's calls. */
#include "capture/core/memory/host.h"
#include "capture/core/work/mem_pool.h"
#include "capture/core/work/stream.h"
#include "capture/driver/driver.h"

#define PITCH_BYTES 512

CUresult cuMemAlloc(CUdeviceptr *pointer, size_t bytes)
{
    uint64_t address;

    NEED(driver_context());
    if (!pointer || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    NEED(driver_result(memsim_capture_forbids()));
    int rc = memsim_device_malloc(memsim_device_current(), bytes,
                                  TRACE_HOW_MALLOC, false, &address);
    if (!rc)
        *pointer = address;
    return driver_result(rc);
}

CUresult cuMemAllocPitch(CUdeviceptr *pointer, size_t *pitch, size_t width,
                         size_t height, unsigned int element)
{
    if (!pitch || !width || !height ||
        (element != 4 && element != 8 && element != 16))
        return CUDA_ERROR_INVALID_VALUE;
    size_t bytes;

    *pitch = (width + PITCH_BYTES - 1) & ~(size_t)(PITCH_BYTES - 1);
    if (*pitch < width || __builtin_mul_overflow(*pitch, height, &bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return cuMemAlloc(pointer, bytes);
}

CUresult cuMemFree(CUdeviceptr pointer)
{
    struct host_range range;

    NEED(driver_context());
    NEED(driver_result(memsim_capture_forbids()));
    if (memsim_host_find(pointer, &range) && range.kind == HOST_MANAGED)
        return driver_result(memsim_host_free(pointer, HOST_MANAGED));
    if (pointer && !memsim_pool_free(pointer, 0))
        return CUDA_SUCCESS; /* cuMemAllocAsync's may be freed so too */
    return driver_result(memsim_device_free(pointer, TRACE_HOW_MALLOC));
}

CUresult cuMemAllocManaged(CUdeviceptr *pointer, size_t bytes,
                           unsigned int flags)
{
    uint64_t address;

    NEED(driver_context());
    if (!pointer || !bytes || !flags || flags > CU_MEM_ATTACH_SINGLE)
        return CUDA_ERROR_INVALID_VALUE;
    int rc = memsim_host_malloc(bytes, HOST_MANAGED, flags, &address);
    if (!rc)
        *pointer = address;
    return driver_result(rc);
}

CUresult cuMemHostAlloc(void **pointer, size_t bytes, unsigned int flags)
{
    uint64_t address;

    NEED(driver_context());
    if (!pointer)
        return CUDA_ERROR_INVALID_VALUE;
    NEED(driver_result(memsim_capture_forbids()));
    int rc = memsim_host_malloc(bytes, HOST_PINNED, flags, &address);
    if (!rc)
        *pointer = (void *)address;
    return driver_result(rc);
}

CUresult cuMemAllocHost(void **pointer, size_t bytes)
{
    return cuMemHostAlloc(pointer, bytes, 0);
}

CUresult cuMemFreeHost(void *pointer)
{
    NEED(driver_context());
    return driver_result(memsim_host_free((uint64_t)pointer, HOST_PINNED));
}

CUresult cuMemHostRegister(void *pointer, size_t bytes, unsigned int flags)
{
    NEED(driver_context());
    return driver_result(memsim_host_register((uint64_t)pointer, bytes, flags));
}

CUresult cuMemHostUnregister(void *pointer)
{
    NEED(driver_context());
    return driver_result(memsim_host_unregister((uint64_t)pointer));
}

CUresult cuMemHostGetDevicePointer(CUdeviceptr *device, void *host,
                                   unsigned int flags)
{
    struct host_range range;

    NEED(driver_context());
    if (flags || !memsim_host_find((uint64_t)host, &range))
        return CUDA_ERROR_INVALID_VALUE;
    *device = (CUdeviceptr)host;
    return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned int *flags, void *host)
{
    struct host_range range;

    NEED(driver_context());
    if (!memsim_host_find((uint64_t)host, &range))
        return CUDA_ERROR_INVALID_VALUE;
    *flags = range.flags;
    return CUDA_SUCCESS;
}
