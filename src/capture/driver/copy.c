/* SPDX-License-Identifier: Apache-2.0
 * Copies and sets. The widths of a set differ in nothing but the unit. */
#include "capture/core/work/stream.h"
#include "capture/driver/driver.h"

enum { DEFAULT = 4 }; /* cudaMemcpyDefault: told from the addresses */

static CUresult memory_copy(uint64_t to, uint64_t from, size_t bytes,
                            int direction, CUstream stream, bool blocking)
{
    NEED(driver_context());
    return driver_result(
        memsim_copy(to, from, bytes, direction, HANDLE(stream), blocking));
}

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    return memory_copy(to, from, bytes, DEFAULT, NULL, true);
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                       CUstream stream)
{
    return memory_copy(to, from, bytes, DEFAULT, stream, false);
}

CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t bytes)
{
    return memory_copy(to, (uint64_t)from, bytes, TRACE_HOST_TO_DEVICE, NULL,
                       true);
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes,
                           CUstream stream)
{
    return memory_copy(to, (uint64_t)from, bytes, TRACE_HOST_TO_DEVICE, stream,
                       false);
}

CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t bytes)
{
    return memory_copy((uint64_t)to, from, bytes, TRACE_DEVICE_TO_HOST, NULL,
                       true);
}

CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes,
                           CUstream stream)
{
    return memory_copy((uint64_t)to, from, bytes, TRACE_DEVICE_TO_HOST, stream,
                       false);
}

CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    return memory_copy(to, from, bytes, TRACE_DEVICE_TO_DEVICE, NULL, true);
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                           CUstream stream)
{
    return memory_copy(to, from, bytes, TRACE_DEVICE_TO_DEVICE, stream, false);
}

CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                      CUcontext from_context, size_t bytes)
{
    (void)to_context;
    (void)from_context;
    return cuMemcpyDtoD(to, from, bytes);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context,
                           CUdeviceptr from, CUcontext from_context,
                           size_t bytes, CUstream stream)
{
    (void)to_context;
    (void)from_context;
    return cuMemcpyDtoDAsync(to, from, bytes, stream);
}

/* One side of a copy in two dimensions: its first byte; 0 for arrays. */
static uint64_t copy_side(CUmemorytype type, const void *host,
                          CUdeviceptr device, size_t x, size_t y, size_t pitch)
{
    uint64_t base = type == CU_MEMORYTYPE_HOST    ? (uint64_t)host
                    : type == CU_MEMORYTYPE_ARRAY ? 0
                                                  : device;

    return base ? base + y * pitch + x : 0;
}

static CUresult copy_2d(const CUDA_MEMCPY2D *c, CUstream stream, bool blocking)
{
    NEED_PLACE(c);

    uint64_t from = copy_side(c->srcMemoryType, c->srcHost, c->srcDevice,
                              c->srcXInBytes, c->srcY, c->srcPitch);
    uint64_t to = copy_side(c->dstMemoryType, c->dstHost, c->dstDevice,
                            c->dstXInBytes, c->dstY, c->dstPitch);
    size_t from_pitch = c->srcPitch ? c->srcPitch : c->WidthInBytes;
    size_t to_pitch = c->dstPitch ? c->dstPitch : c->WidthInBytes;

    if (!from || !to)
        return CUDA_ERROR_NOT_SUPPORTED;
    for (size_t row = 0; row < c->Height; row++)
        NEED(memory_copy(to + row * to_pitch, from + row * from_pitch,
                         c->WidthInBytes, DEFAULT, stream, blocking));
    return CUDA_SUCCESS;
}

CUresult cuMemcpy2D(const CUDA_MEMCPY2D *c)
{
    return copy_2d(c, NULL, true);
}

CUresult cuMemcpy2DUnaligned(const CUDA_MEMCPY2D *c)
{
    return copy_2d(c, NULL, true);
}

CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D *c, CUstream stream)
{
    return copy_2d(c, stream, false);
}

/* A set of HEIGHT rows of COUNT units each. */
struct fill {
    CUdeviceptr pointer;
    size_t pitch;
    uint64_t value, unit;
    size_t count, height;
};

static CUresult memory_set(const struct fill *fill, CUstream stream,
                           bool blocking)
{
    NEED(driver_context());
    if (fill->pointer % fill->unit ||
        (fill->height > 1 && fill->pitch < fill->count * fill->unit))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t row = 0; row < fill->height; row++)
        NEED(driver_result(memsim_set(fill->pointer + row * fill->pitch,
                                      fill->value, fill->unit, fill->count,
                                      HANDLE(stream), blocking)));
    return CUDA_SUCCESS;
}

#define SETS(bits, type)                                                       \
    CUresult cuMemsetD##bits##_v2(CUdeviceptr pointer, type value,             \
                                  size_t count)                                \
    {                                                                          \
        const struct fill fill = {pointer, 0, value, bits / 8, count, 1};      \
        return memory_set(&fill, NULL, true);                                  \
    }                                                                          \
    CUresult cuMemsetD##bits##Async(CUdeviceptr pointer, type value,           \
                                    size_t count, CUstream stream)             \
    {                                                                          \
        const struct fill fill = {pointer, 0, value, bits / 8, count, 1};      \
        return memory_set(&fill, stream, false);                               \
    }                                                                          \
    CUresult cuMemsetD2D##bits##_v2(CUdeviceptr pointer, size_t pitch,         \
                                    type value, size_t width, size_t height)   \
    {                                                                          \
        const struct fill fill = {pointer,  pitch, value,                      \
                                  bits / 8, width, height};                    \
        return memory_set(&fill, NULL, true);                                  \
    }                                                                          \
    CUresult cuMemsetD2D##bits##Async(CUdeviceptr pointer, size_t pitch,       \
                                      type value, size_t width, size_t height, \
                                      CUstream stream)                         \
    {                                                                          \
        const struct fill fill = {pointer,  pitch, value,                      \
                                  bits / 8, width, height};                    \
        return memory_set(&fill, stream, false);                               \
    }

SETS(8, unsigned char)
SETS(16, unsigned short)
SETS(32, unsigned int)
