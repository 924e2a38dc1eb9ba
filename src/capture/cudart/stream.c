/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/torch/torch.h"
#include "capture/core/work/stream.h"
#include "capture/core/work/submit.h"
#include "capture/cudart/cudart.h"

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream,
                                         unsigned int flags, int priority)
{
    NEED(stream);

    uint64_t handle;
    int rc = memsim_stream_create(flags, priority, &handle);

    if (!rc)
        *stream = (cudaStream_t)handle;
    return cudart_result(rc);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
    return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    return cudaStreamCreateWithPriority(stream, cudaStreamDefault, 0);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    return cudart_result(memsim_stream_destroy(STREAM(stream)));
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    return cudart_result(memsim_stream_synchronize(STREAM(stream)));
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    return cudart_result(memsim_stream_query(STREAM(stream)));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned int flags)
{
    return cudart_result(
        flags & ~(unsigned)cudaEventWaitExternal
            ? CORE_INVALID_VALUE
            : memsim_stream_wait(STREAM(stream), (uint64_t)event,
                                 flags & cudaEventWaitExternal));
}

/* What HANDLE is: the default streams have no flags and priority 0. */
static int stream_describe(cudaStream_t handle, struct stream *stream)
{
    const struct stream *found = memsim_stream_get(STREAM(handle));

    *stream = (struct stream){.id = STREAM(handle)};
    if (found)
        *stream = *found;
    return memsim_stream_device(STREAM(handle), &stream->device);
}

cudaError_t cudaStreamGetPriority(cudaStream_t handle, int *priority)
{
    NEED(priority);

    struct stream stream;
    int rc = stream_describe(handle, &stream);

    if (!rc)
        *priority = stream.priority;
    return cudart_result(rc);
}

cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned int *flags)
{
    NEED(flags);

    struct stream stream;
    int rc = stream_describe(handle, &stream);

    if (!rc)
        *flags = stream.flags;
    return cudart_result(rc);
}

cudaError_t cudaStreamGetId(cudaStream_t handle, unsigned long long *id)
{
    NEED(id);

    struct stream stream;
    int rc = stream_describe(handle, &stream);

    if (!rc)
        *id = stream.id;
    return cudart_result(rc);
}

#if MEMSIM_CUDA_MAJOR >= 13
cudaError_t cudaStreamGetDevice(cudaStream_t handle, int *device)
{
    NEED(device);

    struct stream stream;
    int rc = stream_describe(handle, &stream);

    if (!rc)
        *device = stream.device;
    return cudart_result(rc);
}
#endif

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function,
                               void *data)
{
    NEED(function);
    return cudart_result(memsim_stream_call(STREAM(stream), function, data));
}

/* The device has finished by now, so the callback can run here and now. */
cudaError_t cudaStreamAddCallback(cudaStream_t stream,
                                  cudaStreamCallback_t callback, void *data,
                                  unsigned int flags)
{
    NEED(callback);

    int device;
    int rc = memsim_stream_device(STREAM(stream), &device);

    (void)flags;
    if (!rc && memsim_capture_holds(STREAM(stream)))
        rc = CORE_CAPTURE_UNSUPPORTED;
    if (rc)
        return cudart_result(rc);
    SUBMIT(HOST_FUNCTION, .device = (uint64_t)device, .stream = STREAM(stream));
    callback(stream, cudaSuccess, data);
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
    NEED(event);

    uint64_t handle;
    int rc = memsim_event_create(flags, &handle);

    if (!rc)
        *event = (cudaEvent_t)handle;
    return cudart_result(rc);
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    return cudart_result(memsim_event_destroy((uint64_t)event));
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    memsim_torch_defers(__builtin_return_address(0));
    return cudart_result(
        memsim_event_record((uint64_t)event, STREAM(stream), false));
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream,
                                     unsigned int flags)
{
    return cudart_result(
        flags & ~(unsigned)cudaEventRecordExternal
            ? CORE_INVALID_VALUE
            : memsim_event_record((uint64_t)event, STREAM(stream),
                                  flags & cudaEventRecordExternal));
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    return cudart_result(memsim_event_query(
        (uint64_t)event, memsim_torch_asks(__builtin_return_address(0))));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    return cudart_result(memsim_event_synchronize((uint64_t)event));
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    return cudart_result(
        memsim_event_elapsed((uint64_t)start, (uint64_t)end, ms));
}
