/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/work/ipc.h"

#include "capture/driver/driver.h"

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr pointer)
{
    NEED(driver_context());
    return driver_result(
        memsim_ipc_export(pointer, (unsigned char *)handle->reserved));
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *pointer, CUipcMemHandle handle,
                            unsigned int flags)
{
    uint64_t address;

    NEED(driver_context());
    if (flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
        return CUDA_ERROR_INVALID_VALUE;
    int rc = memsim_ipc_open((unsigned char *)handle.reserved, &address);
    if (!rc)
        *pointer = address;
    return driver_result(rc);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr pointer)
{
    NEED(driver_context());
    return driver_result(memsim_ipc_close(pointer));
}

CUresult cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event)
{
    NEED(driver_context());
    return driver_result(memsim_ipc_export_event(
        HANDLE(event), (unsigned char *)handle->reserved));
}

CUresult cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle)
{
    uint64_t opened;

    NEED(driver_context());
    int rc = memsim_ipc_open_event((unsigned char *)handle.reserved, &opened);
    if (!rc)
        *event = (CUevent)opened;
    return driver_result(rc);
}
