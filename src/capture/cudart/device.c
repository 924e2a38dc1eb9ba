/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "capture/core/memory/device_attribute.h"
#include "capture/core/memory/limit.h"
#include "capture/core/work/stream.h"
#include "capture/core/torch/torch.h"
#include "capture/cudart/cudart.h"

#if MEMSIM_CUDA_MAJOR >= 13
#define CUDA_VERSION_HERE 13000
#else
#define CUDA_VERSION_HERE 12040
#endif
#define DRIVER_VERSION 13000 /* one driver serves both */

cudaError_t cudaGetDeviceCount(int *count)
{
    NEED(count);
    memsim_torch_counts(__builtin_return_address(0));
    int rc = memsim_device_ready();
    *count = rc ? 0 : memsim_device_count();
    return cudart_result(rc);
}

/* All GPUs of a run are alike. */
cudaError_t cudaChooseDevice(int *device, const struct cudaDeviceProp *wanted)
{
    NEED(device);
    NEED(wanted);
    int rc = memsim_device_ready();
    if (!rc)
        *device = 0;
    return cudart_result(rc);
}

cudaError_t cudaGetDevice(int *device)
{
    NEED(device);
    int rc = memsim_device_ready();
    if (!rc)
        *device = memsim_device_current();
    return cudart_result(rc);
}

/* Since CUDA 12 it makes the context too. */
cudaError_t cudaSetDevice(int device)
{
    int rc = memsim_device_select(device);

    return cudart_result(rc ? rc : memsim_device_open(device));
}

cudaError_t cudaInitDevice(int device, unsigned int device_flags,
                           unsigned int flags)
{
    (void)device_flags;
    (void)flags;
    return cudart_result(memsim_device_open(device));
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute,
                                   int device)
{
    NEED(value);
    return cudart_result(memsim_attribute(device, (int)attribute, value));
}

static int attribute_get(int device, enum cudaDeviceAttr attribute)
{
    int value = 0;

    memsim_attribute(device, (int)attribute, &value);
    return value;
}

#define GET(name) attribute_get(device, cudaDevAttr##name)

static void properties_limits(struct cudaDeviceProp *p, int device)
{
    p->sharedMemPerBlock = (size_t)GET(MaxSharedMemoryPerBlock);
    p->regsPerBlock = GET(MaxRegistersPerBlock);
    p->warpSize = GET(WarpSize);
    p->memPitch = (size_t)GET(MaxPitch);
    p->maxThreadsPerBlock = GET(MaxThreadsPerBlock);
    p->maxThreadsDim[0] = GET(MaxBlockDimX);
    p->maxThreadsDim[1] = GET(MaxBlockDimY);
    p->maxThreadsDim[2] = GET(MaxBlockDimZ);
    p->maxGridSize[0] = GET(MaxGridDimX);
    p->maxGridSize[1] = GET(MaxGridDimY);
    p->maxGridSize[2] = GET(MaxGridDimZ);
    p->totalConstMem = (size_t)GET(TotalConstantMemory);
    p->textureAlignment = (size_t)GET(TextureAlignment);
    p->texturePitchAlignment = (size_t)GET(TexturePitchAlignment);
    p->surfaceAlignment = (size_t)GET(SurfaceAlignment);
    p->maxTexture1D = GET(MaxTexture1DWidth);
    p->maxTexture2D[0] = GET(MaxTexture2DWidth);
    p->maxTexture2D[1] = GET(MaxTexture2DHeight);
    p->maxTexture3D[0] = GET(MaxTexture3DWidth);
    p->maxTexture3D[1] = GET(MaxTexture3DHeight);
    p->maxTexture3D[2] = GET(MaxTexture3DDepth);
    p->maxThreadsPerMultiProcessor = GET(MaxThreadsPerMultiProcessor);
    p->sharedMemPerMultiprocessor =
        (size_t)GET(MaxSharedMemoryPerMultiprocessor);
    p->regsPerMultiprocessor = GET(MaxRegistersPerMultiprocessor);
    p->sharedMemPerBlockOptin = (size_t)GET(MaxSharedMemoryPerBlockOptin);
    p->maxBlocksPerMultiProcessor = GET(MaxBlocksPerMultiprocessor);
    p->reservedSharedMemPerBlock = (size_t)GET(ReservedSharedMemoryPerBlock);
}

static void properties_abilities(struct cudaDeviceProp *p, int device)
{
    p->canMapHostMemory = GET(CanMapHostMemory);
    p->concurrentKernels = GET(ConcurrentKernels);
    p->ECCEnabled = GET(EccEnabled);
    p->asyncEngineCount = GET(AsyncEngineCount);
    p->unifiedAddressing = GET(UnifiedAddressing);
    p->streamPrioritiesSupported = GET(StreamPrioritiesSupported);
    p->globalL1CacheSupported = GET(GlobalL1CacheSupported);
    p->localL1CacheSupported = GET(LocalL1CacheSupported);
    p->managedMemory = GET(ManagedMemory);
    p->concurrentManagedAccess = GET(ConcurrentManagedAccess);
    p->computePreemptionSupported = GET(ComputePreemptionSupported);
    p->canUseHostPointerForRegisteredMem =
        GET(CanUseHostPointerForRegisteredMem);
    p->cooperativeLaunch = GET(CooperativeLaunch);
    p->hostRegisterSupported = GET(HostRegisterSupported);
    p->memoryPoolsSupported = GET(MemoryPoolsSupported);
    p->memoryPoolSupportedHandleTypes =
        (unsigned)GET(MemoryPoolSupportedHandleTypes);
    p->clusterLaunch = GET(ClusterLaunch);
    p->persistingL2CacheMaxSize = GET(MaxPersistingL2CacheSize);
    p->accessPolicyMaxWindowSize = GET(MaxAccessPolicyWindowSize);
}

#if MEMSIM_CUDA_MAJOR < 13
static void properties_of_12(struct cudaDeviceProp *p, int device)
{
    p->clockRate = GET(ClockRate);
    p->memoryClockRate = GET(MemoryClockRate);
    p->deviceOverlap = GET(GpuOverlap);
    p->computeMode = GET(ComputeMode);
    p->singleToDoublePrecisionPerfRatio = GET(SingleToDoublePrecisionPerfRatio);
}
#endif

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device)
{
    NEED(p);
    int rc = memsim_device_check(device);
    if (rc)
        return cudart_result(rc);
    const struct gpu *gpu = memsim_device_gpu();
    uint64_t free_bytes, total_bytes;
    memset(p, 0, sizeof *p);
    memsim_device_memory(device, &free_bytes, &total_bytes);
    snprintf(p->name, sizeof p->name, "%s", gpu->device_name);
    memsim_attribute_uuid(device, (unsigned char *)p->uuid.bytes);
    p->totalGlobalMem = total_bytes;
    p->major = GET(ComputeCapabilityMajor);
    p->minor = GET(ComputeCapabilityMinor);
    p->multiProcessorCount = GET(MultiProcessorCount);
    p->memoryBusWidth = GET(GlobalMemoryBusWidth);
    p->l2CacheSize = GET(L2CacheSize);
    p->pciBusID = GET(PciBusId);
    properties_limits(p, device);
    properties_abilities(p, device);
#if MEMSIM_CUDA_MAJOR < 13
    properties_of_12(p, device);
#endif
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int length, int device)
{
    int rc = memsim_device_check(device);
    if (rc)
        return cudart_result(rc);
    int n = snprintf(text, (size_t)length, "0000:%02X:00.0",
                     (unsigned)memsim_attribute_bus(device));
    return cudart_result(n < length ? CORE_OK : CORE_INVALID_VALUE);
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *text)
{
    NEED(device && text);

    unsigned domain, bus;

    if (sscanf(text, "%x:%x:", &domain, &bus) != 2 &&
        sscanf(text, "%x:", &bus) != 1)
        return cudart_result(CORE_INVALID_VALUE);
    for (int i = 0; i < memsim_device_count(); i++)
        if (memsim_attribute_bus(i) == (int)bus) {
            *device = i;
            return cudaSuccess;
        }
    return cudart_result(CORE_INVALID_DEVICE);
}

cudaError_t cudaDeviceSynchronize(void)
{
    return cudart_result(memsim_device_synchronize());
}

cudaError_t cudaDeviceReset(void)
{
    return cudart_result(memsim_device_reset(memsim_device_current()));
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    NEED(version);
    *version = DRIVER_VERSION;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    NEED(version);
    *version = CUDA_VERSION_HERE;
    return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    NEED(can);

    int rc = memsim_device_check(device);
    if (!rc)
        rc = memsim_device_check(peer);
    if (!rc)
        *can = device != peer;
    return cudart_result(rc);
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
    return cudart_result(memsim_device_peer_enable(peer, flags));
}

cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
    return cudart_result(memsim_device_peer_disable(peer));
}

cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr which,
                                      int device, int peer)
{
    (void)which;
    return cudaDeviceCanAccessPeer(value, device, peer);
}

cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit)
{
    uint64_t now = 0;
    int rc = value ? memsim_device_open(memsim_device_current())
                   : CORE_INVALID_VALUE;

    if (!rc)
        rc = memsim_limit_get(limit, &now);
    if (!rc)
        *value = now;
    return cudart_result(rc);
}

cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
    int rc = memsim_device_open(memsim_device_current());

    return cudart_result(rc ? rc : memsim_limit_set(limit, value));
}
