/* SPDX-License-Identifier: Apache-2.0
 * Stream-ordered allocation, as the driver has it. */
#include "capture/core/work/mem_pool.h"

#include "capture/driver/driver.h"

static CUresult allocate_from(CUdeviceptr *pointer, size_t bytes, uint64_t pool,
                              CUstream stream)
{
    uint64_t address;

    NEED(driver_context());
    if (!pointer || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    int rc = memsim_pool_malloc(pool, bytes, HANDLE(stream), false, &address);
    if (!rc)
        *pointer = address;
    return driver_result(rc);
}

CUresult cuMemAllocAsync(CUdeviceptr *pointer, size_t bytes, CUstream stream)
{
    return allocate_from(pointer, bytes, 0, stream);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t bytes,
                                 CUmemoryPool pool, CUstream stream)
{
    return pool ? allocate_from(pointer, bytes, HANDLE(pool), stream)
                : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream)
{
    NEED(driver_context());
    return driver_result(memsim_pool_free(pointer, HANDLE(stream)));
}

static CUresult location_check(const CUmemLocation *location)
{
    return location->type == CU_MEM_LOCATION_TYPE_DEVICE
               ? CUDA_SUCCESS
               : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *p)
{
    uint64_t handle;

    NEED(driver_ready());
    if (!pool || !p || p->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    NEED(location_check(&p->location));
    int rc = memsim_pool_create(p->location.id, p->maxSize, &handle);
    if (!rc)
        *pool = (CUmemoryPool)handle;
    return driver_result(rc);
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    NEED(driver_ready());
    return driver_result(memsim_pool_destroy(HANDLE(pool)));
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
    NEED_PLACE(pool);

    uint64_t handle;

    NEED(driver_ready());
    NEED(driver_result(memsim_pool_default(device, &handle)));
    *pool = (CUmemoryPool)handle;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
    NEED_PLACE(pool);

    uint64_t handle;

    NEED(driver_ready());
    NEED(driver_result(memsim_pool_current(device, &handle)));
    *pool = (CUmemoryPool)handle;
    return CUDA_SUCCESS;
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
    NEED(driver_ready());
    return driver_result(memsim_pool_select(device, HANDLE(pool)));
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep_bytes)
{
    NEED(driver_ready());
    return driver_result(memsim_pool_trim(HANDLE(pool), keep_bytes));
}

/* The first three are ints, the others 64-bit words. */
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
                               void *value)
{
    NEED_PLACE(value);

    uint64_t word =
        attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES
            ? (uint64_t) * (int *)value
            : *(uint64_t *)value;

    NEED(driver_ready());
    return driver_result(
        memsim_pool_set(HANDLE(pool), (enum pool_attribute)attribute, word));
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
                               void *value)
{
    uint64_t word;

    NEED(driver_ready());
    NEED(driver_result(
        memsim_pool_get(HANDLE(pool), (enum pool_attribute)attribute, &word)));
    if (attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES)
        *(int *)value = (int)word;
    else
        *(uint64_t *)value = word;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *rights,
                            size_t count)
{
    int device;

    NEED(driver_ready());
    NEED(driver_result(memsim_pool_device(HANDLE(pool), &device)));
    for (size_t i = 0; i < count; i++)
        if (rights[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
            rights[i].location.id >= memsim_device_count())
            return CUDA_ERROR_INVALID_DEVICE;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool pool,
                            CUmemLocation *location)
{
    int device;

    NEED(driver_ready());
    NEED(driver_result(memsim_pool_device(HANDLE(pool), &device)));
    *flags = location->id == device ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                    : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}
