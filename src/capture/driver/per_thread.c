/* SPDX-License-Identifier: Apache-2.0
 * The calls as programs built for one default stream per thread know them:
 * where they say no stream, the thread's own is meant. */
#define __CUDA_API_VERSION_INTERNAL
#include "capture/driver/driver.h"

#define OWN(stream) ((stream) ? (stream) : CU_STREAM_PER_THREAD)

/* NAME with SUFFIX calls NAME with the arguments given here. */
#define PER_THREAD(name, suffix, parameters, ...)                              \
    CUresult name##suffix parameters;                                          \
    CUresult name##suffix parameters                                           \
    {                                                                          \
        return name(__VA_ARGS__);                                              \
    }

PER_THREAD(cuMemcpyAsync, _ptsz,
           (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream s), to,
           from, bytes, OWN(s))
PER_THREAD(cuMemcpyHtoDAsync_v2, _ptsz,
           (CUdeviceptr to, const void *from, size_t bytes, CUstream s), to,
           from, bytes, OWN(s))
PER_THREAD(cuMemcpyDtoHAsync_v2, _ptsz,
           (void *to, CUdeviceptr from, size_t bytes, CUstream s), to, from,
           bytes, OWN(s))
PER_THREAD(cuMemcpyDtoDAsync_v2, _ptsz,
           (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream s), to,
           from, bytes, OWN(s))
PER_THREAD(cuMemcpy, _ptds, (CUdeviceptr to, CUdeviceptr from, size_t bytes),
           to, from, bytes)
PER_THREAD(cuMemcpyHtoD_v2, _ptds,
           (CUdeviceptr to, const void *from, size_t bytes), to, from, bytes)
PER_THREAD(cuMemcpyDtoH_v2, _ptds, (void *to, CUdeviceptr from, size_t bytes),
           to, from, bytes)
PER_THREAD(cuMemcpyDtoD_v2, _ptds,
           (CUdeviceptr to, CUdeviceptr from, size_t bytes), to, from, bytes)
PER_THREAD(cuMemsetD8Async, _ptsz,
           (CUdeviceptr p, unsigned char value, size_t count, CUstream s), p,
           value, count, OWN(s))
PER_THREAD(cuMemsetD16Async, _ptsz,
           (CUdeviceptr p, unsigned short value, size_t count, CUstream s), p,
           value, count, OWN(s))
PER_THREAD(cuMemsetD32Async, _ptsz,
           (CUdeviceptr p, unsigned int value, size_t count, CUstream s), p,
           value, count, OWN(s))
PER_THREAD(cuMemsetD8_v2, _ptds,
           (CUdeviceptr p, unsigned char value, size_t count), p, value, count)
PER_THREAD(cuMemsetD16_v2, _ptds,
           (CUdeviceptr p, unsigned short value, size_t count), p, value, count)
PER_THREAD(cuMemsetD32_v2, _ptds,
           (CUdeviceptr p, unsigned int value, size_t count), p, value, count)
PER_THREAD(cuMemAllocAsync, _ptsz, (CUdeviceptr * p, size_t bytes, CUstream s),
           p, bytes, OWN(s))
PER_THREAD(cuMemAllocFromPoolAsync, _ptsz,
           (CUdeviceptr * p, size_t bytes, CUmemoryPool pool, CUstream s), p,
           bytes, pool, OWN(s))
PER_THREAD(cuMemFreeAsync, _ptsz, (CUdeviceptr p, CUstream s), p, OWN(s))
PER_THREAD(cuStreamSynchronize, _ptsz, (CUstream s), OWN(s))
PER_THREAD(cuStreamQuery, _ptsz, (CUstream s), OWN(s))
PER_THREAD(cuStreamWaitEvent, _ptsz,
           (CUstream s, CUevent event, unsigned int flags), OWN(s), event,
           flags)
PER_THREAD(cuEventRecord, _ptsz, (CUevent event, CUstream s), event, OWN(s))
PER_THREAD(cuEventRecordWithFlags, _ptsz,
           (CUevent event, CUstream s, unsigned int flags), event, OWN(s),
           flags)
PER_THREAD(cuStreamIsCapturing, _ptsz,
           (CUstream s, CUstreamCaptureStatus *status), OWN(s), status)
PER_THREAD(cuStreamBeginCapture_v2, _ptsz,
           (CUstream s, CUstreamCaptureMode mode), OWN(s), mode)
PER_THREAD(cuStreamEndCapture, _ptsz, (CUstream s, CUgraph *graph), OWN(s),
           graph)
PER_THREAD(cuGraphLaunch, _ptsz, (CUgraphExec exec, CUstream s), exec, OWN(s))
PER_THREAD(cuGraphUpload, _ptsz, (CUgraphExec exec, CUstream s), exec, OWN(s))
PER_THREAD(cuLaunchHostFunc, _ptsz, (CUstream s, CUhostFn function, void *data),
           OWN(s), function, data)
PER_THREAD(cuLaunchKernel, _ptsz,
           (CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
            unsigned int bx, unsigned int by, unsigned int bz,
            unsigned int shared, CUstream s, void **arguments, void **extra),
           f, gx, gy, gz, bx, by, bz, shared, OWN(s), arguments, extra)
PER_THREAD(cuLaunchCooperativeKernel, _ptsz,
           (CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
            unsigned int bx, unsigned int by, unsigned int bz,
            unsigned int shared, CUstream s, void **arguments),
           f, gx, gy, gz, bx, by, bz, shared, OWN(s), arguments)

CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction f,
                               void **arguments, void **extra);
CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction f,
                               void **arguments, void **extra)
{
    CUlaunchConfig own = *config;

    own.hStream = OWN(config->hStream);
    return cuLaunchKernelEx(&own, f, arguments, extra);
}
