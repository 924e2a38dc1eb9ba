/* SPDX-License-Identifier: Apache-2.0
 * Initialisation, and what the driver says of each GPU without a context. */
#include <stdio.h>
#include <string.h>

#include "capture/core/memory/device_attribute.h"
#include "capture/core/diagnose/misuse.h"
#include "capture/core/run/process.h"
#include "capture/driver/driver.h"

CUresult driver_result_of(int rc, const char *function)
{
    if (rc)
        memsim_misuse_call(function);
    return rc >= CORE_INVALID_CONFIGURATION && rc <= CORE_INVALID_DIRECTION
               ? CUDA_ERROR_INVALID_VALUE
               : (CUresult)rc;
}

CUresult driver_ready(void)
{
    if (memsim_process_forked())
        return (CUresult)memsim_device_ready();
    return memsim_device_started() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult cuInit(unsigned int flags)
{
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    return (CUresult)memsim_device_ready();
}

CUresult cuDriverGetVersion(int *version)
{
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = DRIVER_VERSION;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
    NEED_PLACE(count);
    NEED(driver_ready());
    *count = memsim_device_count();
    return CUDA_SUCCESS;
}

/* A CUdevice is the number of the GPU, as this process counts them. */
CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    NEED_PLACE(device);
    NEED(driver_device(ordinal));
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
    NEED(driver_device(device));
    if (!name || length <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    snprintf(name, (size_t)length, "%s", memsim_device_gpu()->device_name);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    NEED_PLACE(uuid);
    NEED(driver_device(device));
    memsim_attribute_uuid(device, (unsigned char *)uuid->bytes);
    return CUDA_SUCCESS;
}

#undef cuDeviceGetUuid
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device);
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    return cuDeviceGetUuid_v2(uuid, device);
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device)
{
    uint64_t available, total;

    NEED_PLACE(bytes);
    NEED(driver_device(device));
    memsim_device_memory(device, &available, &total);
    *bytes = total;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute,
                              CUdevice device)
{
    NEED(driver_device(device));
    return driver_result(memsim_attribute(device, (int)attribute, value));
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
    NEED_PLACE(major && minor);
    NEED(driver_device(device));
    *major = (int)memsim_device_gpu()->capability_major;
    *minor = (int)memsim_device_gpu()->capability_minor;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *text, int length, CUdevice device)
{
    NEED(driver_device(device));
    int n = snprintf(text, (size_t)length, "0000:%02X:00.0",
                     (unsigned)memsim_attribute_bus(device));
    return n < length ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *text)
{
    NEED_PLACE(device && text);

    unsigned domain, bus;

    NEED(driver_ready());
    if (sscanf(text, "%x:%x:", &domain, &bus) != 2 &&
        sscanf(text, "%x:", &bus) != 1)
        return CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < memsim_device_count(); i++)
        if (memsim_attribute_bus(i) == (int)bus) {
            *device = i;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    NEED_PLACE(can);
    NEED(driver_device(device));
    NEED(driver_device(peer));
    *can = device != peer;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute,
                                 CUdevice device, CUdevice peer)
{
    NEED_PLACE(value);
    (void)attribute;
    return cuDeviceCanAccessPeer(value, device, peer);
}
