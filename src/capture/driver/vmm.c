/* SPDX-License-Identifier: Apache-2.0
 * Virtual memory management, as the driver has it. */
#include "capture/core/memory/vmm.h"

#include <string.h>

#include "capture/core/base/handle.h"
#include "capture/core/torch/torch.h"
#include "capture/driver/driver.h"

/* Of what a program may ask for: the GPU's own memory, shared by descriptor
 * or not at all. */
static CUresult properties_check(const CUmemAllocationProp *p)
{
    unsigned types = (unsigned)p->requestedHandleTypes;

    if (p->type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (p->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (types & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED; /* a fabric, or Windows */
    return p->location.id >= 0 && p->location.id < memsim_device_count()
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuMemGetAllocationGranularity(size_t *granularity,
                                       const CUmemAllocationProp *properties,
                                       CUmemAllocationGranularity_flags option)
{
    (void)option; /* the least and the recommended one are the same */
    NEED(driver_ready());
    if (!granularity || !properties)
        return CUDA_ERROR_INVALID_VALUE;
    NEED(properties_check(properties));
    *granularity = VMM_GRANULE_BYTES;
    return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes,
                             size_t alignment, CUdeviceptr want,
                             unsigned long long flags)
{
    uint64_t found;

    NEED(driver_ready());
    if (!address || flags)
        return CUDA_ERROR_INVALID_VALUE;
    int rc = memsim_vmm_reserve(bytes, alignment, want, &found);
    if (!rc)
        *address = found;
    return driver_result(rc);
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes)
{
    NEED(driver_ready());
    return driver_result(memsim_vmm_unreserve(address, bytes));
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                     const CUmemAllocationProp *properties,
                     unsigned long long flags)
{
    uint64_t made;

    NEED(driver_ready());
    if (!handle || !properties || flags)
        return CUDA_ERROR_INVALID_VALUE;
    NEED(properties_check(properties));
    int rc = memsim_vmm_create(
        properties->location.id, bytes, properties->requestedHandleTypes,
        memsim_torch_calls(__builtin_return_address(0)), &made);
    if (!rc)
        *handle = made;
    return driver_result(rc);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    NEED(driver_ready());
    return driver_result(memsim_vmm_release(handle));
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    NEED(driver_ready());
    return flags
               ? CUDA_ERROR_INVALID_VALUE
               : driver_result(memsim_vmm_map(address, bytes, offset, handle));
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes)
{
    NEED(driver_ready());
    return driver_result(memsim_vmm_unmap(address, bytes));
}

/* One right for the whole GPU: peers get it with the owner. */
CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes,
                        const CUmemAccessDesc *rights, size_t count)
{
    bool allowed = false;

    NEED(driver_ready());
    if (!rights || !count)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        allowed |= rights[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return driver_result(memsim_vmm_access(address, bytes, allowed));
}

CUresult cuMemGetAccess(unsigned long long *flags,
                        const CUmemLocation *location, CUdeviceptr address)
{
    NEED(driver_ready());
    if (!flags || !location)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = memsim_vmm_accessible(address) ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                            : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle,
                                     void *address)
{
    NEED(driver_ready());
    const struct vmm_physical *found = memsim_vmm_retain((uint64_t)address);
    if (!found)
        return CUDA_ERROR_INVALID_VALUE;
    *handle = (uint64_t)found;
    return CUDA_SUCCESS;
}

CUresult
cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *properties,
                                       CUmemGenericAllocationHandle handle)
{
    const struct vmm_physical *found =
        memsim_handle_get(HANDLE_PHYSICAL, (void *)handle);

    NEED(driver_ready());
    if (!found)
        return CUDA_ERROR_INVALID_VALUE;
    memset(properties, 0, sizeof *properties);
    properties->type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties->requestedHandleTypes =
        (CUmemAllocationHandleType)found->handle_types;
    properties->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties->location.id = found->device;
    return CUDA_SUCCESS;
}

CUresult cuMemExportToShareableHandle(void *out,
                                      CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type,
                                      unsigned long long flags)
{
    NEED(driver_ready());
    if (!out || flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    return driver_result(memsim_vmm_export(handle, out));
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle,
                                        void *fd,
                                        CUmemAllocationHandleType type)
{
    uint64_t made;

    NEED(driver_ready());
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    int rc = memsim_vmm_import((int)(intptr_t)fd, &made);
    if (!rc)
        *handle = made;
    return driver_result(rc);
}
