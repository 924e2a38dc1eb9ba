/* SPDX-License-Identifier: Apache-2.0
 * What the driver knows of an address. */
#include "capture/core/host.h"
#include "capture/driver/driver.h"

struct place {
    uint64_t address, start, bytes;
    int device;
    bool on_device;
    struct host_range host;
};

static bool place_find(uint64_t address, struct place *place)
{
    *place = (struct place){.address = address};
    place->on_device = memsim_device_find(address, &place->device,
                                          &place->start, &place->bytes);
    if (place->on_device)
        return true;
    if (!memsim_host_find(address, &place->host))
        return false;
    place->device = place->host.device;
    place->start = place->host.address;
    place->bytes = place->host.bytes;
    return true;
}

/* Ids as the driver gives them: never used twice for one address. Ours tell
 * live allocations apart, which is what IPC caches ask them for. */
static CUresult place_read(const struct place *place,
                           CUpointer_attribute attribute, void *data)
{
    bool managed = !place->on_device && place->host.kind == HOST_MANAGED;

    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)data = driver_context_primary(place->device);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)data = place->on_device || managed ? CU_MEMORYTYPE_DEVICE
                                                        : CU_MEMORYTYPE_HOST;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)data = place->address;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        *(void **)data = place->on_device ? NULL : (void *)place->address;
        return place->on_device ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        *(unsigned *)data = 0;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        *(unsigned long long *)data = place->start;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned *)data = managed;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)data = place->device;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        *(unsigned *)data = place->on_device;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(CUdeviceptr *)data = place->start;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t *)data = place->bytes;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *(unsigned *)data = 1;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        *(unsigned long long *)data = 0;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        *(unsigned *)data = 0;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        *(unsigned *)data = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *(CUmemoryPool *)data = NULL;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute,
                               CUdeviceptr pointer)
{
    struct place place;

    NEED(driver_ready());
    if (!data || !place_find(pointer, &place))
        return CUDA_ERROR_INVALID_VALUE;
    return place_read(&place, attribute, data);
}

/* Of an unknown pointer each attribute is zero, and that is no error here. */
CUresult cuPointerGetAttributes(unsigned int count,
                                CUpointer_attribute *attributes, void **data,
                                CUdeviceptr pointer)
{
    struct place place;

    NEED(driver_ready());
    bool known = place_find(pointer, &place);
    for (unsigned i = 0; i < count; i++)
        if (known && place_read(&place, attributes[i], data[i]) ==
                         CUDA_ERROR_INVALID_VALUE &&
            attributes[i] != CU_POINTER_ATTRIBUTE_HOST_POINTER)
            return CUDA_ERROR_INVALID_VALUE;
        else if (!known)
            *(unsigned *)data[i] =
                attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL ? -2u : 0;
    return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute,
                               CUdeviceptr pointer)
{
    struct place place;

    (void)value;
    NEED(driver_ready());
    return attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS &&
                   place_find(pointer, &place)
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemGetAddressRange(CUdeviceptr *start, size_t *bytes,
                              CUdeviceptr pointer)
{
    struct place place;

    NEED(driver_context());
    if (!place_find(pointer, &place))
        return CUDA_ERROR_NOT_FOUND;
    if (start)
        *start = place.start;
    if (bytes)
        *bytes = place.bytes;
    return CUDA_SUCCESS;
}

CUresult cuMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    uint64_t available, total;

    NEED(driver_context());
    memsim_device_memory(memsim_device_current(), &available, &total);
    *free_bytes = available;
    *total_bytes = total;
    return CUDA_SUCCESS;
}
