/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/work/stream.h"

#include "capture/core/work/submit.h"
#include "capture/driver/driver.h"

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags,
                                    int priority)
{
    uint64_t handle;

    NEED(driver_context());
    if (!stream || flags > CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    int rc = memsim_stream_create(flags, priority, &handle);
    if (!rc)
        *stream = (CUstream)handle;
    return driver_result(rc);
}

CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
    return cuStreamCreateWithPriority(stream, flags, 0);
}

CUresult cuStreamDestroy(CUstream stream)
{
    NEED(driver_ready());
    return driver_result(memsim_stream_destroy(HANDLE(stream)));
}

CUresult cuStreamSynchronize(CUstream stream)
{
    NEED(driver_context());
    return driver_result(memsim_stream_synchronize(HANDLE(stream)));
}

CUresult cuStreamQuery(CUstream stream)
{
    NEED(driver_context());
    return driver_result(memsim_stream_query(HANDLE(stream)));
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
    NEED(driver_context());
    if (flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    return driver_result(memsim_stream_wait(HANDLE(stream), HANDLE(event),
                                            flags & CU_EVENT_WAIT_EXTERNAL));
}

/* What HANDLE is: the default streams have no flags and priority 0. */
static CUresult stream_describe(CUstream handle, struct stream *stream)
{
    const struct stream *found = memsim_stream_get(HANDLE(handle));

    NEED(driver_context());
    *stream = (struct stream){.id = HANDLE(handle)};
    if (found)
        *stream = *found;
    return driver_result(memsim_stream_device(HANDLE(handle), &stream->device));
}

CUresult cuStreamGetPriority(CUstream handle, int *priority)
{
    NEED_PLACE(priority);

    struct stream stream;

    NEED(stream_describe(handle, &stream));
    *priority = stream.priority;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream handle, unsigned int *flags)
{
    NEED_PLACE(flags);

    struct stream stream;

    NEED(stream_describe(handle, &stream));
    *flags = stream.flags;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream handle, unsigned long long *id)
{
    NEED_PLACE(id);

    struct stream stream;

    NEED(stream_describe(handle, &stream));
    *id = stream.id;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetDevice(CUstream handle, CUdevice *device)
{
    NEED_PLACE(device);

    struct stream stream;

    NEED(stream_describe(handle, &stream));
    *device = stream.device;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext *context)
{
    NEED_PLACE(context);

    struct stream stream;

    NEED(stream_describe(handle, &stream));
    *context = driver_context_primary(stream.device);
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx_v2(CUstream handle, CUcontext *context,
                           CUgreenCtx *green)
{
    NEED_PLACE(context);
    NEED(cuStreamGetCtx(handle, context));
    if (green)
        *green = NULL;
    return CUDA_SUCCESS;
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data)
{
    NEED_PLACE(function);
    NEED(driver_context());
    return driver_result(memsim_stream_call(HANDLE(stream), function, data));
}

/* The device has finished by now, so the callback can run here and now. */
CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback,
                             void *data, unsigned int flags)
{
    NEED_PLACE(callback);

    int device;

    NEED(driver_context());
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    NEED(driver_result(memsim_stream_device(HANDLE(stream), &device)));
    if (memsim_capture_holds(HANDLE(stream)))
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    SUBMIT(HOST_FUNCTION, .device = (uint64_t)device, .stream = HANDLE(stream));
    callback(stream, CUDA_SUCCESS, data);
    return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
    uint64_t handle;

    NEED(driver_context());
    if (!event)
        return CUDA_ERROR_INVALID_VALUE;
    int rc = memsim_event_create(flags, &handle);
    if (!rc)
        *event = (CUevent)handle;
    return driver_result(rc);
}

CUresult cuEventDestroy(CUevent event)
{
    NEED(driver_ready());
    return driver_result(memsim_event_destroy(HANDLE(event)));
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    NEED(driver_context());
    return driver_result(
        memsim_event_record(HANDLE(event), HANDLE(stream), false));
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream,
                                unsigned int flags)
{
    NEED(driver_context());
    if (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    return driver_result(memsim_event_record(HANDLE(event), HANDLE(stream),
                                             flags & CU_EVENT_RECORD_EXTERNAL));
}

CUresult cuEventQuery(CUevent event)
{
    NEED(driver_ready());
    return driver_result(memsim_event_query(HANDLE(event), false));
}

CUresult cuEventSynchronize(CUevent event)
{
    NEED(driver_ready());
    return driver_result(memsim_event_synchronize(HANDLE(event)));
}

CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
    NEED(driver_ready());
    return driver_result(memsim_event_elapsed(HANDLE(start), HANDLE(end), ms));
}

#undef cuEventElapsedTime
CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end);
CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
    return cuEventElapsedTime_v2(ms, start, end);
}
