/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "capture/core/memory/host.h"
#include "capture/core/work/mem_pool.h"
#include "capture/core/work/stream.h"
#include "capture/core/torch/torch.h"
#include "capture/core/memory/values.h"
#include "capture/cudart/cudart.h"

cudaError_t cudaMalloc(void **p, size_t bytes)
{
    uint64_t address = 0;
    int device = memsim_device_current();
    int rc = memsim_device_open(device);

    if (!p)
        return cudart_result(CORE_INVALID_VALUE);
    if (!rc)
        rc = memsim_capture_forbids();
    if (!rc && bytes)
        rc = memsim_device_malloc(
            device, bytes, TRACE_HOW_MALLOC,
            memsim_torch_calls(__builtin_return_address(0)), &address);
    if (!rc)
        *p = (void *)address;
    return cudart_result(rc);
}

cudaError_t cudaFree(void *p)
{
    struct host_range range;

    if (!p)
        return cudart_result(memsim_device_open(memsim_device_current()));
    int rc = memsim_capture_forbids();
    if (rc)
        return cudart_result(rc);
    if (memsim_host_find((uint64_t)p, &range) && range.kind == HOST_MANAGED)
        return cudart_result(memsim_host_free((uint64_t)p, HOST_MANAGED));
    if (!memsim_pool_free((uint64_t)p, 0))
        return cudaSuccess; /* cudaMallocAsync's may be freed so too */
    memsim_torch_frees(__builtin_return_address(0), (uint64_t)p);
    return cudart_result(memsim_device_free((uint64_t)p, TRACE_HOW_MALLOC));
}

cudaError_t cudaMallocPitch(void **p, size_t *pitch, size_t width,
                            size_t height)
{
    size_t bytes;

    if (!pitch || width > INT32_MAX) /* cudaDeviceProp::memPitch */
        return cudart_result(CORE_INVALID_VALUE);
    *pitch = (width + 511) & ~(size_t)511;
    if (__builtin_mul_overflow(*pitch, height, &bytes))
        return cudart_result(CORE_OUT_OF_MEMORY);
    return cudaMalloc(p, bytes);
}

cudaError_t cudaMallocManaged(void **p, size_t bytes, unsigned int flags)
{
    uint64_t address;

    if (!p || !bytes ||
        (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost))
        return cudart_result(CORE_INVALID_VALUE);
    int rc = memsim_host_malloc(bytes, HOST_MANAGED, flags, &address);
    if (!rc)
        *p = (void *)address;
    return cudart_result(rc);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    NEED(free_bytes && total_bytes);

    uint64_t available, total;
    int device = memsim_device_current();
    int rc = memsim_device_open(device);

    if (rc)
        return cudart_result(rc);
    memsim_device_memory(device, &available, &total);
    *free_bytes = available;
    *total_bytes = total;
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **p, size_t bytes, unsigned int flags)
{
    NEED(p);

    uint64_t address;
    int rc = memsim_capture_forbids();

    if (!rc)
        rc = memsim_host_malloc(bytes, HOST_PINNED, flags, &address);
    if (!rc)
        *p = (void *)address;
    return cudart_result(rc);
}

cudaError_t cudaMallocHost(void **p, size_t bytes)
{
    return cudaHostAlloc(p, bytes, 0);
}

cudaError_t cudaFreeHost(void *p)
{
    return cudart_result(p ? memsim_host_free((uint64_t)p, HOST_PINNED)
                           : CORE_OK);
}

cudaError_t cudaHostRegister(void *p, size_t bytes, unsigned int flags)
{
    return cudart_result(memsim_host_register((uint64_t)p, bytes, flags));
}

cudaError_t cudaHostUnregister(void *p)
{
    return cudart_result(memsim_host_unregister((uint64_t)p));
}

cudaError_t cudaHostGetDevicePointer(void **device, void *host,
                                     unsigned int flags)
{
    struct host_range range;

    (void)flags;
    if (!memsim_host_find((uint64_t)host, &range))
        return cudart_result(CORE_INVALID_VALUE);
    *device = host;
    return cudaSuccess;
}

cudaError_t cudaHostGetFlags(unsigned int *flags, void *host)
{
    struct host_range range;

    if (!memsim_host_find((uint64_t)host, &range))
        return cudart_result(CORE_INVALID_VALUE);
    *flags = range.flags;
    return cudaSuccess;
}

static enum cudaMemoryType host_type(enum host_kind kind)
{
    return kind == HOST_MANAGED ? cudaMemoryTypeManaged : cudaMemoryTypeHost;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *a,
                                     const void *p)
{
    NEED(a);

    struct host_range range;
    int device, rc = memsim_device_fault(memsim_device_current());

    if (rc)
        return cudart_result(rc);
    memset(a, 0, sizeof *a);
    a->type = cudaMemoryTypeUnregistered;
    a->device = -2; /* cudaInvalidDeviceId, as the runtime has it here */
    if (memsim_device_find((uint64_t)p, &device, NULL, NULL)) {
        a->type = cudaMemoryTypeDevice;
        a->device = device;
        a->devicePointer = (void *)p;
    } else if (memsim_host_find((uint64_t)p, &range)) {
        a->type = host_type(range.kind);
        a->device = range.device;
        a->devicePointer = a->hostPointer = (void *)p;
    } else {
        a->hostPointer = (void *)p;
    }
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes,
                       enum cudaMemcpyKind kind)
{
    return cudart_result(
        memsim_copy((uint64_t)to, (uint64_t)from, bytes, (int)kind, 0, true));
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes,
                            enum cudaMemcpyKind kind, cudaStream_t stream)
{
    return cudart_result(memsim_copy((uint64_t)to, (uint64_t)from, bytes,
                                     (int)kind, STREAM(stream), false));
}

cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from,
                           int from_device, size_t bytes)
{
    (void)to_device;
    (void)from_device;
    return cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToDevice);
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from,
                                int from_device, size_t bytes,
                                cudaStream_t stream)
{
    (void)to_device;
    (void)from_device;
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}

static int copy_rows(uint64_t to, size_t to_pitch, uint64_t from,
                     size_t from_pitch, size_t width, size_t height, int kind,
                     uint64_t stream, bool blocking)
{
    int rc = width > to_pitch || width > from_pitch ? CORE_INVALID_PITCH : 0;

    for (size_t row = 0; row < height && !rc; row++)
        rc = memsim_copy(to + row * to_pitch, from + row * from_pitch, width,
                         kind, stream, blocking);
    return rc;
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from,
                         size_t from_pitch, size_t width, size_t height,
                         enum cudaMemcpyKind kind)
{
    return cudart_result(copy_rows((uint64_t)to, to_pitch, (uint64_t)from,
                                   from_pitch, width, height, (int)kind, 0,
                                   true));
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from,
                              size_t from_pitch, size_t width, size_t height,
                              enum cudaMemcpyKind kind, cudaStream_t stream)
{
    return cudart_result(copy_rows((uint64_t)to, to_pitch, (uint64_t)from,
                                   from_pitch, width, height, (int)kind,
                                   STREAM(stream), false));
}

cudaError_t cudaMemset(void *p, int value, size_t bytes)
{
    return cudart_result(
        memsim_set((uint64_t)p, (unsigned char)value, 1, bytes, 0, true));
}

cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes,
                            cudaStream_t stream)
{
    return cudart_result(memsim_set((uint64_t)p, (unsigned char)value, 1, bytes,
                                    STREAM(stream), false));
}
