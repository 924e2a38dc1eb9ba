/* SPDX-License-Identifier: Apache-2.0
 * What the driver knows of an address. */
#include <string.h>

#include "capture/core/memory/host.h"
#include "capture/core/memory/vmm.h"
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
    if (place->on_device) /* of maps side by side, the one */
        memsim_vmm_map_find(address, &place->start, &place->bytes);
    if (place->on_device)
        return true;
    if (!memsim_host_find(address, &place->host))
        return false;
    place->device = place->host.device;
    place->start = place->host.address;
    place->bytes = place->host.bytes;
    return true;
}

static bool is_managed(const struct place *place)
{
    return !place->on_device && place->host.kind == HOST_MANAGED;
}

static uint64_t read_context(const struct place *place)
{
    return HANDLE(driver_context_primary(place->device));
}

static uint64_t read_type(const struct place *place)
{
    return place->on_device || is_managed(place) ? CU_MEMORYTYPE_DEVICE
                                                 : CU_MEMORYTYPE_HOST;
}

static uint64_t read_address(const struct place *place)
{
    return place->address;
}

static uint64_t read_host_address(const struct place *place)
{
    return place->on_device ? 0 : place->address;
}

/* The driver never gives an id twice; ours tells live allocations apart, which
 * is what caches of IPC handles ask it for. */
static uint64_t read_start(const struct place *place)
{
    return place->start;
}

static uint64_t read_bytes(const struct place *place)
{
    return place->bytes;
}

static uint64_t read_managed(const struct place *place)
{
    return is_managed(place);
}

static uint64_t read_device(const struct place *place)
{
    return (uint64_t)place->device;
}

static uint64_t read_on_device(const struct place *place)
{
    return place->on_device;
}

static uint64_t read_one(const struct place *place)
{
    (void)place;
    return 1;
}

static uint64_t read_zero(const struct place *place)
{
    (void)place;
    return 0;
}

static uint64_t read_access(const struct place *place)
{
    (void)place;
    return CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
}

#define ROW(name, type, read)                                                  \
    {                                                                          \
        CU_POINTER_ATTRIBUTE_##name, sizeof(type), read                        \
    }
static const struct row {
    CUpointer_attribute attribute;
    size_t bytes;
    uint64_t (*read)(const struct place *place);
} rows[] = {
    ROW(CONTEXT, CUcontext, read_context),
    ROW(MEMORY_TYPE, CUmemorytype, read_type),
    ROW(DEVICE_POINTER, CUdeviceptr, read_address),
    ROW(HOST_POINTER, void *, read_host_address),
    ROW(SYNC_MEMOPS, int, read_zero),
    ROW(BUFFER_ID, unsigned long long, read_start),
    ROW(IS_MANAGED, int, read_managed),
    ROW(DEVICE_ORDINAL, int, read_device),
    ROW(IS_LEGACY_CUDA_IPC_CAPABLE, int, read_on_device),
    ROW(RANGE_START_ADDR, CUdeviceptr, read_start),
    ROW(RANGE_SIZE, size_t, read_bytes),
    ROW(MAPPED, int, read_one),
    ROW(ALLOWED_HANDLE_TYPES, unsigned long long, read_zero),
    ROW(IS_GPU_DIRECT_RDMA_CAPABLE, int, read_zero),
    ROW(ACCESS_FLAGS, int, read_access),
    ROW(MEMPOOL_HANDLE, CUmemoryPool, read_zero),
};
#undef ROW

static const struct row *row_find(CUpointer_attribute attribute)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].attribute == attribute)
            return &rows[i];
    return NULL;
}

/* Little-endian: the low bytes are the value, whatever its width. */
static void row_write(const struct row *row, uint64_t value, void *data)
{
    memcpy(data, &value, row->bytes);
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute,
                               CUdeviceptr pointer)
{
    const struct row *row = row_find(attribute);
    struct place place;

    NEED(driver_ready());
    if (!data || !row || !place_find(pointer, &place))
        return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_POINTER_ATTRIBUTE_HOST_POINTER && place.on_device)
        return CUDA_ERROR_INVALID_VALUE;
    row_write(row, row->read(&place), data);
    return CUDA_SUCCESS;
}

/* Of an unknown pointer each attribute is zero, but for the device, which is
 * none; that is no error here. */
CUresult cuPointerGetAttributes(unsigned int count,
                                CUpointer_attribute *attributes, void **data,
                                CUdeviceptr pointer)
{
    struct place place;

    NEED(driver_ready());
    bool known = place_find(pointer, &place);
    for (unsigned i = 0; i < count; i++) {
        const struct row *row = row_find(attributes[i]);
        uint64_t none =
            attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL ? -2ul : 0;

        if (!row)
            return CUDA_ERROR_INVALID_VALUE;
        row_write(row, known ? row->read(&place) : none, data[i]);
    }
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

    NEED_PLACE(free_bytes && total_bytes);
    NEED(driver_context());
    memsim_device_memory(memsim_device_current(), &available, &total);
    *free_bytes = available;
    *total_bytes = total;
    return CUDA_SUCCESS;
}
