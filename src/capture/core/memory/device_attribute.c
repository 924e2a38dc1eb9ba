/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/memory/device_attribute.h"

#include <driver_types.h>
#include <stddef.h>
#include <string.h>

#include "capture/core/memory/device.h"

/* A row is a constant, or a 32- or 64-bit field of struct gpu times a factor
 * (given as a divisor where it is negative). */
struct row {
    int attribute;
    int value; /* the constant, or the factor */
    uint16_t offset, bytes;
};

#define IS(name, constant)  {cudaDevAttr##name, constant, 0, 0}
#define OF(name, field)     OF_TIMES(name, field, 1)
#define OF_TIMES(name, field, factor)                                          \
    {cudaDevAttr##name, factor, offsetof(struct gpu, field),                   \
     sizeof(((struct gpu *)0)->field)}

/* Constants: the CUDA C Programming Guide's table of technical specifications,
 * compute capability 6.0 and later; the rest is what a Linux server without
 * MPS, display or NUMA-attached GPU says. */
static const struct row rows[] = {
    OF(MaxThreadsPerBlock, max_threads_per_block),
    IS(MaxBlockDimX, 1024),
    IS(MaxBlockDimY, 1024),
    IS(MaxBlockDimZ, 64),
    IS(MaxGridDimX, 2147483647),
    IS(MaxGridDimY, 65535),
    IS(MaxGridDimZ, 65535),
    OF(MaxSharedMemoryPerBlock, shared_per_block_bytes),
    IS(TotalConstantMemory, 65536),
    OF(WarpSize, warp_size),
    IS(MaxPitch, 2147483647),
    OF(MaxRegistersPerBlock, registers_per_block),
    OF_TIMES(ClockRate, clock_boost_mhz, 1000),
    IS(TextureAlignment, 512),
    IS(GpuOverlap, 1),
    OF(MultiProcessorCount, sm_count),
    IS(KernelExecTimeout, 0),
    IS(Integrated, 0),
    IS(CanMapHostMemory, 1),
    IS(ComputeMode, 0),
    IS(MaxTexture1DWidth, 131072),
    IS(MaxTexture2DWidth, 131072),
    IS(MaxTexture2DHeight, 65536),
    IS(MaxTexture3DWidth, 16384),
    IS(MaxTexture3DHeight, 16384),
    IS(MaxTexture3DDepth, 16384),
    IS(MaxTexture2DLayeredWidth, 32768),
    IS(MaxTexture2DLayeredHeight, 32768),
    IS(MaxTexture2DLayeredLayers, 2048),
    IS(SurfaceAlignment, 512),
    IS(ConcurrentKernels, 1),
    OF(EccEnabled, ecc),
    IS(PciDeviceId, 0),
    IS(TccDriver, 0),
    OF_TIMES(MemoryClockRate, clock_memory_mhz, 1000),
    OF(GlobalMemoryBusWidth, memory_bus_bits),
    OF(L2CacheSize, l2_bytes),
    OF(MaxThreadsPerMultiProcessor, max_threads_per_sm),
    OF(AsyncEngineCount, copy_engines),
    IS(UnifiedAddressing, 1),
    IS(MaxTexture1DLayeredWidth, 32768),
    IS(MaxTexture1DLayeredLayers, 2048),
    IS(MaxTexture2DGatherWidth, 32768),
    IS(MaxTexture2DGatherHeight, 32768),
    IS(MaxTexture3DWidthAlt, 8192),
    IS(MaxTexture3DHeightAlt, 8192),
    IS(MaxTexture3DDepthAlt, 32768),
    IS(PciDomainId, 0),
    IS(TexturePitchAlignment, 32),
    IS(MaxTextureCubemapWidth, 32768),
    IS(MaxTextureCubemapLayeredWidth, 32768),
    IS(MaxTextureCubemapLayeredLayers, 2046),
    IS(MaxSurface1DWidth, 32768),
    IS(MaxSurface2DWidth, 131072),
    IS(MaxSurface2DHeight, 65536),
    IS(MaxSurface3DWidth, 16384),
    IS(MaxSurface3DHeight, 16384),
    IS(MaxSurface3DDepth, 16384),
    IS(MaxSurface1DLayeredWidth, 32768),
    IS(MaxSurface1DLayeredLayers, 2048),
    IS(MaxSurface2DLayeredWidth, 32768),
    IS(MaxSurface2DLayeredHeight, 32768),
    IS(MaxSurface2DLayeredLayers, 2048),
    IS(MaxSurfaceCubemapWidth, 32768),
    IS(MaxSurfaceCubemapLayeredWidth, 32768),
    IS(MaxSurfaceCubemapLayeredLayers, 2046),
    IS(MaxTexture1DLinearWidth, 268435456),
    IS(MaxTexture2DLinearWidth, 131072),
    IS(MaxTexture2DLinearHeight, 65000),
    IS(MaxTexture2DLinearPitch, 2097120),
    IS(MaxTexture2DMipmappedWidth, 32768),
    IS(MaxTexture2DMipmappedHeight, 32768),
    OF(ComputeCapabilityMajor, capability_major),
    OF(ComputeCapabilityMinor, capability_minor),
    IS(MaxTexture1DMipmappedWidth, 32768),
    IS(StreamPrioritiesSupported, 1),
    IS(GlobalL1CacheSupported, 1),
    IS(LocalL1CacheSupported, 1),
    OF(MaxSharedMemoryPerMultiprocessor, shared_per_sm_bytes),
    OF(MaxRegistersPerMultiprocessor, registers_per_sm),
    IS(ManagedMemory, 1),
    IS(IsMultiGpuBoard, 0),
    IS(HostNativeAtomicSupported, 0),
    IS(SingleToDoublePrecisionPerfRatio, 2),
    IS(PageableMemoryAccess, 0),
    IS(ConcurrentManagedAccess, 1),
    IS(ComputePreemptionSupported, 1),
    IS(CanUseHostPointerForRegisteredMem, 1),
    IS(CooperativeLaunch, 1),
    OF(MaxSharedMemoryPerBlockOptin, shared_per_block_optin_bytes),
    IS(CanFlushRemoteWrites, 0),
    IS(HostRegisterSupported, 1),
    IS(PageableMemoryAccessUsesHostPageTables, 0),
    IS(DirectManagedMemAccessFromHost, 0),
    OF(MaxBlocksPerMultiprocessor, max_blocks_per_sm),
    OF(ReservedSharedMemoryPerBlock, shared_reserved_bytes),
    IS(SparseCudaArraySupported, 1),
    IS(HostRegisterReadOnlySupported, 1),
    IS(TimelineSemaphoreInteropSupported, 1),
    IS(MemoryPoolsSupported, 1),
    IS(MemoryPoolSupportedHandleTypes, 1),
    IS(DeferredMappingCudaArraySupported, 1),
    IS(IpcEventSupport, 1),
    IS(NumaConfig, 0),
    IS(NumaId, -1),
    IS(MpsEnabled, 0),
    /* The driver's alone: names are its CU_DEVICE_ATTRIBUTE_...'s. */
    {44 /* can gather from 2D textures */, 1, 0, 0},
    {92 /* stream memory operations of version 1: none since CUDA 12 */, 0, 0,
     0},
    {93 /* of 64 bits, of that version */, 0, 0, 0},
    {94 /* waits for NOR, of that version */, 0, 0, 0},
    {102 /* virtual memory management */, 1, 0, 0},
    {103 /* POSIX file descriptors as handles */, 1, 0, 0},
    {104 /* Win32 handles */, 0, 0, 0},
    {105 /* Win32 KMT handles */, 0, 0, 0},
    {128 /* fabric handles: need a node's import and export service */, 0, 0,
     0},
    {132 /* multicast: needs NVSwitch */, 0, 0, 0},
};

/* What an H200 (9.0, driver 580) answers and GPUs of other capabilities may
 * not: what OTHERS answer, or UNKNOWN, where nothing says it. */
#define UNKNOWN INT32_MIN

static const struct hopper_row {
    int attribute, hopper, others;
} hopper_rows[] = {
    {96 /* cooperative launches on several GPUs */, 1, UNKNOWN},
    {107 /* compressible memory */, 1, UNKNOWN},
    {cudaDevAttrMaxAccessPolicyWindowSize, 134217728, 134213632},
    {110 /* GPUDirect RDMA of mapped memory */, 1, 0},
    {cudaDevAttrGPUDirectRDMASupported, 1, 0},
    {cudaDevAttrGPUDirectRDMAFlushWritesOptions, 1, 0},
    {cudaDevAttrGPUDirectRDMAWritesOrdering, 100, 0},
    {122 /* stream memory operations of 64 bits */, 1, UNKNOWN},
    {123 /* waits for NOR on streams */, 1, UNKNOWN},
    {124 /* DMA-BUF */, 1, UNKNOWN},
    {127 /* tensor maps: from 9.0 on */, 1, 0},
    {129 /* unified function pointers */, 1, UNKNOWN},
    {cudaDevAttrHostNumaId, 0, -1},
    {135, 0, UNKNOWN},
    {136, 0, UNKNOWN},
    {137, 0, UNKNOWN},
    {138, 0, UNKNOWN},
    {141, 1, UNKNOWN},
    {142, 1, UNKNOWN},
    {143, 0, UNKNOWN},
    {144, 1, UNKNOWN},
    {145, 1, UNKNOWN},
    {146, 0, UNKNOWN},
    {147, 0, UNKNOWN},
};

static int64_t of_hopper(const struct hopper_row *row)
{
    bool is_hopper = memsim_device_gpu()->capability_major == 9;
    int value = is_hopper ? row->hopper : row->others;

    return value == UNKNOWN ? INT64_MIN : value;
}

/* How much of the L2 cache can be set aside: 5/8 on an H200; 30 of an A100's 40
 * MB (CUDA C++ Best Practices Guide, "L2 Set-Aside"); else assumed. */
static int64_t persisting_bytes(const struct gpu *gpu)
{
    if (gpu->capability_major == 9)
        return (int64_t)(gpu->l2_bytes / 8 * 5);
    return (int64_t)(gpu->capability_major == 8 && gpu->capability_minor == 0
                         ? gpu->l2_bytes / 4 * 3
                         : gpu->l2_bytes / 2);
}

static int64_t field_read(const struct gpu *gpu, const struct row *row)
{
    uint64_t value = 0;

    memcpy(&value, (const char *)gpu + row->offset, row->bytes);
    return row->value < 0 ? (int64_t)value / -row->value
                          : (int64_t)value * row->value;
}

/* Those that depend on the capability or on which device it is. */
static int64_t derive_attribute(int device, int attribute)
{
    uint32_t major = memsim_device_gpu()->capability_major;

    switch (attribute) {
    case cudaDevAttrPciBusId:
    case cudaDevAttrMultiGpuBoardGroupID:
        return attribute == cudaDevAttrPciBusId ? memsim_attribute_bus(device)
                                                : device;
    case cudaDevAttrClusterLaunch:
        return major >= 9;
    case cudaDevAttrMemSyncDomainCount:
        return major >= 9 ? 4 : 1;
    case cudaDevAttrMaxPersistingL2CacheSize:
        return persisting_bytes(memsim_device_gpu());
    default:
        for (size_t i = 0; i < sizeof hopper_rows / sizeof *hopper_rows; i++)
            if (hopper_rows[i].attribute == attribute)
                return of_hopper(&hopper_rows[i]);
        return INT64_MIN;
    }
}

int memsim_attribute(int device, int attribute, int *value)
{
    int rc = memsim_device_check(device);
    if (rc)
        return rc;
    int64_t found = derive_attribute(device, attribute);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].attribute == attribute)
            found = rows[i].bytes ? field_read(memsim_device_gpu(), &rows[i])
                                  : rows[i].value;
    if (found == INT64_MIN)
        return CORE_INVALID_VALUE;
    *value = found > INT32_MAX ? INT32_MAX : (int)found;
    return CORE_OK;
}

int memsim_attribute_bus(int device)
{
    return memsim_device_physical(device) + 1;
}

void memsim_attribute_uuid(int device, unsigned char uuid[16])
{
    memsim_card_uuid(memsim_device_physical(device), uuid);
}

/* Ends in the GPU's number: CUDA_VISIBLE_DEVICES is read by that. */
void memsim_card_uuid(int card, unsigned char uuid[16])
{
    memset(uuid, 0, 16);
    memcpy(uuid, "memsim GPU", 10);
    uuid[15] = (unsigned char)card;
}
