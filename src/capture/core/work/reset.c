/* SPDX-License-Identifier: Apache-2.0
 * The end of a device's primary context: cudaDeviceReset "explicitly destroys
 * and cleans up all resources associated with the current device in the current
 * process" (CUDA runtime API manual, Device Management). What cuMemCreate gave
 * belongs to no context, and stays. */
#include "capture/core/work/stream_capture.h"
#include "capture/core/memory/device.h"
#include "capture/core/base/handle.h"
#include "capture/core/memory/host.h"
#include "capture/core/work/ipc.h"
#include "capture/core/work/kernel.h"
#include "capture/core/memory/limit.h"
#include "capture/core/work/mem_pool.h"
#include "capture/core/run/process.h"
#include "capture/core/work/submit.h"
#include "capture/core/work/stream.h"

static void stream_end(void *handle, void *device)
{
    const struct stream *stream = handle;

    if (stream->device != *(const int *)device)
        return;
    capture_forget_stream(stream);
    SUBMIT(STREAM_DESTROY, .device = (uint64_t)stream->device,
           .stream = (uint64_t)handle);
    memsim_handle_free(HANDLE_STREAM, handle);
}

static void event_end(void *handle, void *device)
{
    const struct event *event = handle;

    if (event->device != *(const int *)device)
        return;
    SUBMIT(EVENT_DESTROY, .device = (uint64_t)event->device,
           .event = (uint64_t)handle);
    memsim_handle_free(HANDLE_EVENT, handle);
}

int memsim_device_reset(int device)
{
    if (memsim_process_forked())
        return CORE_NOT_INITIALIZED;
    if (!memsim_device_is_open(device))
        return CORE_OK;
    int rc = memsim_device_fault(device);
    if (!rc)
        rc = memsim_capture_forbids();
    if (rc)
        return rc;
    memsim_handle_each(HANDLE_STREAM, stream_end, &device);
    memsim_handle_each(HANDLE_EVENT, event_end, &device);
    pool_reset(device);
    ipc_reset(device);
    host_reset(device);
    device_peer_reset(device);
    kernel_reset(device);
    limit_reset(device);
    device_close(device);
    return CORE_OK;
}
