/* SPDX-License-Identifier: Apache-2.0
 * Taps of the driver's calls that launch kernels and graphs, and order work;
 * and of the one by which the runtime finds all of them. */
#include <cuda.h>
#include <stdio.h>
#include <string.h>

#include "capture/core/run/record.h"
#include "capture/core/torch/torch.h"
#include "capture/driver/launch.h"
#include "capture/real/card.h"
#include "capture/real/tap.h"

#define HANDLE(handle) ((uint64_t)(handle))

/* --- launches ------------------------------------------------------------- */

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function,
                          void **arguments, void **extra)
{
    REAL_WORK(cuLaunchKernelEx, (config, function, arguments, extra),
              tap_name(function), config->hStream, {
                  const struct kernel_launch l =
                      driver_launch(config, arguments);
                  tap_launch(&call, function, &l);
              });
}

#define CONFIG                                                                 \
    {                                                                          \
        .gridDimX = grid_x, .gridDimY = grid_y, .gridDimZ = grid_z,            \
        .blockDimX = block_x, .blockDimY = block_y, .blockDimZ = block_z,      \
        .sharedMemBytes = shared_bytes, .hStream = stream,                     \
    }

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x,
                        unsigned int grid_y, unsigned int grid_z,
                        unsigned int block_x, unsigned int block_y,
                        unsigned int block_z, unsigned int shared_bytes,
                        CUstream stream, void **arguments, void **extra)
{
    REAL_WORK(cuLaunchKernel,
              (function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
               shared_bytes, stream, arguments, extra),
              tap_name(function), stream, {
                  const CUlaunchConfig config = CONFIG;
                  const struct kernel_launch l =
                      driver_launch(&config, arguments);
                  tap_launch(&call, function, &l);
              });
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x,
                                   unsigned int grid_y, unsigned int grid_z,
                                   unsigned int block_x, unsigned int block_y,
                                   unsigned int block_z,
                                   unsigned int shared_bytes, CUstream stream,
                                   void **arguments)
{
    REAL_WORK(cuLaunchCooperativeKernel,
              (function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
               shared_bytes, stream, arguments),
              tap_name(function), stream, {
                  const CUlaunchConfig config = CONFIG;
                  const struct kernel_launch l =
                      driver_launch(&config, arguments);
                  tap_launch(&call, function, &l);
              });
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    REAL_TAP(cuGraphLaunch, (exec, stream),
             tap_graph(&call, exec, HANDLE(stream)));
}

/* --- streams -------------------------------------------------------------- */

#define CREATED(flags_, priority_)                                             \
    torch_observe();                                                           \
    TAP_ON(&call, *stream, STREAM_CREATE, .flags = flags_,                    \
            .priority = (uint64_t)(int64_t)(priority_))

CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
    REAL_TAP(cuStreamCreate, (stream, flags), CREATED(flags, 0));
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags,
                                    int priority)
{
    REAL_TAP(cuStreamCreateWithPriority, (stream, flags, priority),
             CREATED(flags, priority));
}

CUresult cuStreamDestroy(CUstream stream)
{
    REAL_TAP(cuStreamDestroy, (stream), TAP_ON(&call, stream, STREAM_DESTROY));
}

CUresult cuStreamSynchronize(CUstream stream)
{
    REAL_TAP(cuStreamSynchronize, (stream),
             TAP_ON(&call, stream, SYNC_STREAM));
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
    REAL_TAP(cuStreamWaitEvent, (stream, event, flags),
             TAP_ON(&call, stream, STREAM_WAIT, .event = HANDLE(event)));
}

/* Its name has a second version that takes a context. */
#undef cuCtxSynchronize
CUresult cuCtxSynchronize(void);
CUresult cuCtxSynchronize(void)
{
    REAL_TAP(cuCtxSynchronize, (), TAP(&call, SYNC_DEVICE));
}

/* --- events --------------------------------------------------------------- */

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
    REAL_TAP(cuEventCreate, (event, flags),
             TAP(&call, EVENT_CREATE, .event = HANDLE(*event),
                  .flags = flags));
}

CUresult cuEventDestroy(CUevent event)
{
    REAL_TAP(cuEventDestroy, (event),
             TAP(&call, EVENT_DESTROY, .event = HANDLE(event)));
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    REAL_TAP(cuEventRecord, (event, stream),
             TAP_ON(&call, stream, EVENT_RECORD, .event = HANDLE(event)));
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream,
                                unsigned int flags)
{
    REAL_TAP(cuEventRecordWithFlags, (event, stream, flags),
             TAP_ON(&call, stream, EVENT_RECORD, .event = HANDLE(event)));
}

CUresult cuEventSynchronize(CUevent event)
{
    REAL_TAP(cuEventSynchronize, (event),
             TAP(&call, SYNC_EVENT, .event = HANDLE(event)));
}

/* --- finding functions ---------------------------------------------------- */

#define NAME_MAX_BYTES 128

/* The tap of the function FOUND, which the driver gave for NAME: one of NAME's
 * forms is exported at that address. Where none is, and NAME has but one form,
 * it is that. NULL: it is not tapped. */
static void *tap_for(const char *name, const void *found, bool per_thread)
{
    static const char *const forms[] = {"", "_v2", "_v3", "_v4"};
    char whole[NAME_MAX_BYTES + 8];
    int exported = 0;

    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        snprintf(whole, sizeof whole, "%s%s", name, forms[i]);
        void *real = real_look_up(whole);
        exported += real != NULL;
        if (real == found)
            return real_tap(whole);
    }
    if (exported != 1 || per_thread)
        return NULL;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        snprintf(whole, sizeof whole, "%s%s", name, forms[i]);
        if (real_look_up(whole))
            return real_tap(whole);
    }
    return NULL;
}

static void function_tap(const char *name, void **function, cuuint64_t flags)
{
    void *tap = NULL;

    if (function && *function && strlen(name) < NAME_MAX_BYTES)
        tap = tap_for(name, *function,
                      flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
    if (tap)
        *function = tap;
}

CUresult cuGetProcAddress(const char *name, void **function, int version,
                          cuuint64_t flags,
                          CUdriverProcAddressQueryResult *status)
{
    REAL_CALL(cuGetProcAddress, (name, function, version, flags, status),
              if (!rc) function_tap(name, function, flags));
}

#undef cuGetProcAddress
CUresult cuGetProcAddress(const char *name, void **function, int version,
                          cuuint64_t flags);
CUresult cuGetProcAddress(const char *name, void **function, int version,
                          cuuint64_t flags)
{
    REAL_CALL(cuGetProcAddress, (name, function, version, flags),
              if (!rc) function_tap(name, function, flags));
}
