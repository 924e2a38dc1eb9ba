/* SPDX-License-Identifier: Apache-2.0
 * Taps of the runtime's calls that launch kernels and graphs, and order work.
 */
#include <cuda_runtime_api.h>

#include "capture/core/run/record.h"
#include "capture/core/torch/torch.h"
#include "capture/core/work/kernel.h"
#include "capture/cudart/launch.h"
#include "capture/real/tap.h"

#define HANDLE(handle) ((uint64_t)(handle))

/* crt/host_runtime.h declares these for C++ only. */
void __cudaRegisterFunction(void **handle, const char *host, char *device,
                            const char *name, int thread_limit, void *tid,
                            void *bid, void *block, void *grid, int *warps);
cudaError_t __cudaGetKernel(void **kernel, const void *host);
cudaError_t __cudaLaunchKernel(void *kernel, dim3 grid, dim3 block,
                               void **arguments, size_t shared,
                               cudaStream_t stream);

/* --- kernels -------------------------------------------------------------- */

CORE_API void __cudaRegisterFunction(void **handle, const char *host,
                                     char *device, const char *name,
                                     int thread_limit, void *tid, void *bid,
                                     void *block, void *grid, int *warps)
{
    memsim_kernel_register(host, name, NULL);
    REAL_FUNCTION(__cudaRegisterFunction)
    (handle, host, device, name, thread_limit, tid, bid, block, grid, warps);
}

CORE_API cudaError_t __cudaGetKernel(void **kernel, const void *host)
{
    REAL_TAP(__cudaGetKernel, (kernel, host), tap_kernel_of(*kernel, host));
}

#define LAUNCH(function)                                                       \
    const struct kernel_launch l =                                             \
        cudart_launch(grid, block, arguments, shared, stream);                 \
    tap_launch(&call, function, &l)

CORE_API cudaError_t __cudaLaunchKernel(void *kernel, dim3 grid, dim3 block,
                                        void **arguments, size_t shared,
                                        cudaStream_t stream)
{
    REAL_WORK(__cudaLaunchKernel,
              (kernel, grid, block, arguments, shared, stream),
              tap_name(kernel), stream,
              LAUNCH(kernel));
}

cudaError_t cudaLaunchKernel(const void *host, dim3 grid, dim3 block,
                             void **arguments, size_t shared,
                             cudaStream_t stream)
{
    REAL_WORK(cudaLaunchKernel,
              (host, grid, block, arguments, shared, stream),
              tap_name(host), stream,
              LAUNCH(host));
}

cudaError_t cudaLaunchCooperativeKernel(const void *host, dim3 grid, dim3 block,
                                        void **arguments, size_t shared,
                                        cudaStream_t stream)
{
    REAL_WORK(cudaLaunchCooperativeKernel,
              (host, grid, block, arguments, shared, stream),
              tap_name(host), stream,
              LAUNCH(host));
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config,
                                const void *host, void **arguments)
{
    REAL_WORK(cudaLaunchKernelExC, (config, host, arguments), tap_name(host),
              config->stream, {
                  const struct kernel_launch l = cudart_launch(
                      config->gridDim, config->blockDim, arguments,
                      config->dynamicSmemBytes, config->stream);
                  tap_launch(&call, host, &l);
              });
}

/* --- graphs --------------------------------------------------------------- */

cudaError_t cudaStreamBeginCapture(cudaStream_t stream,
                                   enum cudaStreamCaptureMode mode)
{
    REAL_TAP(cudaStreamBeginCapture, (stream, mode),
             tap_capture(HANDLE(stream)));
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    REAL_CALL(cudaStreamEndCapture, (stream, graph),
              tap_captured(HANDLE(stream), rc ? NULL : *graph));
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                 unsigned long long flags)
{
    REAL_TAP(cudaGraphInstantiate, (exec, graph, flags),
             tap_instantiated(&call, *exec, graph));
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec,
                                          cudaGraph_t graph,
                                          unsigned long long flags)
{
    REAL_TAP(cudaGraphInstantiateWithFlags, (exec, graph, flags),
             tap_instantiated(&call, *exec, graph));
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    REAL_TAP(cudaGraphLaunch, (exec, stream),
             tap_graph(&call, exec, HANDLE(stream)));
}

/* --- streams -------------------------------------------------------------- */

#define CREATED(flags_, priority_)                                             \
    torch_observe();                                                           \
    TAP_ON(&call, *stream, STREAM_CREATE, .flags = flags_,                    \
            .priority = (uint64_t)(int64_t)(priority_))

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    REAL_TAP(cudaStreamCreate, (stream), CREATED(0, 0));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
    REAL_TAP(cudaStreamCreateWithFlags, (stream, flags), CREATED(flags, 0));
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream,
                                         unsigned int flags, int priority)
{
    REAL_TAP(cudaStreamCreateWithPriority, (stream, flags, priority),
             CREATED(flags, priority));
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    REAL_TAP(cudaStreamDestroy, (stream),
             TAP_ON(&call, stream, STREAM_DESTROY));
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    REAL_TAP(cudaStreamSynchronize, (stream),
             TAP_ON(&call, stream, SYNC_STREAM));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned int flags)
{
    REAL_TAP(cudaStreamWaitEvent, (stream, event, flags),
             TAP_ON(&call, stream, STREAM_WAIT, .event = HANDLE(event)));
}

cudaError_t cudaDeviceSynchronize(void)
{
    REAL_TAP(cudaDeviceSynchronize, (), tap_synchronized(&call));
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function,
                               void *data)
{
    REAL_TAP(cudaLaunchHostFunc, (stream, function, data),
             TAP_ON(&call, stream, HOST_FUNCTION));
}

/* --- events --------------------------------------------------------------- */

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    REAL_TAP(cudaEventCreate, (event),
             TAP(&call, EVENT_CREATE, .event = HANDLE(*event)));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
    REAL_TAP(cudaEventCreateWithFlags, (event, flags),
             TAP(&call, EVENT_CREATE, .event = HANDLE(*event),
                  .flags = flags));
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    REAL_TAP(cudaEventDestroy, (event),
             TAP(&call, EVENT_DESTROY, .event = HANDLE(event)));
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    REAL_TAP(cudaEventRecord, (event, stream),
             TAP_ON(&call, stream, EVENT_RECORD, .event = HANDLE(event)));
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream,
                                     unsigned int flags)
{
    REAL_TAP(cudaEventRecordWithFlags, (event, stream, flags),
             TAP_ON(&call, stream, EVENT_RECORD, .event = HANDLE(event)));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    REAL_TAP(cudaEventSynchronize, (event),
             TAP(&call, SYNC_EVENT, .event = HANDLE(event)));
}
