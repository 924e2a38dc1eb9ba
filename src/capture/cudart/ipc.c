/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/work/ipc.h"

#include "capture/cudart/cudart.h"

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *p)
{
    return cudart_result(
        memsim_ipc_export((uint64_t)p, (unsigned char *)handle->reserved));
}

cudaError_t cudaIpcOpenMemHandle(void **p, cudaIpcMemHandle_t handle,
                                 unsigned int flags)
{
    uint64_t address;
    int rc = flags == cudaIpcMemLazyEnablePeerAccess
                 ? memsim_ipc_open((unsigned char *)handle.reserved, &address)
                 : CORE_INVALID_VALUE;

    if (!rc)
        *p = (void *)address;
    return cudart_result(rc);
}

cudaError_t cudaIpcCloseMemHandle(void *p)
{
    return cudart_result(memsim_ipc_close((uint64_t)p));
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle,
                                  cudaEvent_t event)
{
    return cudart_result(memsim_ipc_export_event(
        (uint64_t)event, (unsigned char *)handle->reserved));
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event,
                                   cudaIpcEventHandle_t handle)
{
    uint64_t opened;
    int rc = memsim_ipc_open_event((unsigned char *)handle.reserved, &opened);

    if (!rc)
        *event = (cudaEvent_t)opened;
    return cudart_result(rc);
}
