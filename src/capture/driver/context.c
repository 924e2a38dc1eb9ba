/* SPDX-License-Identifier: Apache-2.0
 * Contexts: each device's primary one, those that programs make themselves,
 * and every thread's stack of them. */
#include "capture/core/base/handle.h"
#include "capture/core/memory/limit.h"
#include "capture/core/work/stream.h"
#include "capture/driver/driver.h"
#include "common/trace/session.h"

struct context {
    int device;
    unsigned flags;
    bool primary;
};

#define STACK_MAX 32

static CUcontext primaries[SESSION_DEVICES];
static unsigned primary_flags[SESSION_DEVICES];

/* What this thread pushed; the current context's device is the core's. */
static _Thread_local CUcontext stack[STACK_MAX];
static _Thread_local int depth;

static struct context *context_get(CUcontext handle)
{
    return memsim_handle_get(HANDLE_CONTEXT, handle);
}

static CUcontext context_new(int device, unsigned flags, bool primary)
{
    struct context *context =
        memsim_handle_new(HANDLE_CONTEXT, sizeof *context);

    if (context)
        *context = (struct context){device, flags, primary};
    return (CUcontext)context;
}

CUcontext driver_context_primary(int device)
{
    CUcontext made, none = NULL;

    if (primaries[device])
        return primaries[device];
    made = context_new(device, 0, true);
    if (!__atomic_compare_exchange_n(&primaries[device], &none, made, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        memsim_handle_free(HANDLE_CONTEXT, made);
    return primaries[device];
}

/* The top of this thread's stack, or the primary that the runtime bound. */
static CUcontext current_get(void)
{
    if (!memsim_device_is_bound())
        return NULL;
    int device = memsim_device_current();
    const struct context *top = depth ? context_get(stack[depth - 1]) : NULL;
    return top && top->device == device ? stack[depth - 1]
                                        : driver_context_primary(device);
}

static CUresult current_set(CUcontext handle)
{
    const struct context *context = context_get(handle);

    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    memsim_device_select(context->device);
    memsim_device_bind(true);
    return CUDA_SUCCESS;
}

CUresult driver_context(void)
{
    NEED(driver_ready());
    if (!memsim_device_is_bound())
        return CUDA_ERROR_INVALID_CONTEXT;
    return driver_result(memsim_device_fault(memsim_device_current()));
}

/* Opens DEVICE without binding it to this thread. */
static CUresult open_unbound(int device)
{
    bool bound = memsim_device_is_bound();
    int rc = memsim_device_open(device);

    memsim_device_bind(bound);
    return driver_result(rc);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    NEED(driver_ready());
    if (!context)
        return CUDA_ERROR_INVALID_VALUE;
    NEED(open_unbound(device));
    *context = driver_context_primary(device);
    return *context ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult driver_device(CUdevice device)
{
    NEED(driver_ready());
    return device < 0 || device >= memsim_device_count()
               ? CUDA_ERROR_INVALID_DEVICE
               : CUDA_SUCCESS;
}

/* The runtime holds the context too, so it stays. */
CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    NEED(driver_device(device));
    return primaries[device] ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
    NEED(driver_device(device));
    return driver_result(memsim_device_reset(device));
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned int flags)
{
    NEED(driver_device(device));
    primary_flags[device] = flags;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags,
                                    int *active)
{
    NEED_PLACE(flags && active);
    NEED(driver_device(device));
    *flags = primary_flags[device];
    *active = memsim_device_is_open(device);
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    NEED(driver_ready());
    if (!context)
        return CUDA_ERROR_INVALID_VALUE;
    *context = current_get();
    return CUDA_SUCCESS;
}

/* Replaces the top of the stack; NULL takes it away. */
CUresult cuCtxSetCurrent(CUcontext context)
{
    NEED(driver_ready());
    if (!context) {
        depth -= depth > 0;
        memsim_device_bind(false);
        return CUDA_SUCCESS;
    }
    NEED(current_set(context));
    if (!depth)
        depth = 1;
    stack[depth - 1] = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext context)
{
    NEED(driver_ready());
    CUcontext below = current_get();
    if (depth >= STACK_MAX - 1)
        return CUDA_ERROR_INVALID_VALUE;
    NEED(current_set(context));
    if (!depth && below)
        stack[depth++] = below; /* the runtime's binding is an entry too */
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext *context)
{
    NEED(driver_context());
    if (context)
        *context = current_get();
    depth -= depth > 0;
    if (!depth) {
        memsim_device_bind(false);
        return CUDA_SUCCESS;
    }
    return current_set(stack[depth - 1]);
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    NEED_PLACE(device);
    NEED(driver_context());
    *device = memsim_device_current();
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext handle)
{
    NEED_PLACE(device);

    const struct context *context = context_get(handle);

    if (!handle)
        return cuCtxGetDevice(device);
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    *device = context->device;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned int *flags)
{
    NEED_PLACE(flags);
    NEED(driver_context());
    const struct context *context = context_get(current_get());
    *flags = context && !context->primary
                 ? context->flags
                 : primary_flags[memsim_device_current()];
    return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext handle, unsigned long long *id)
{
    NEED_PLACE(id);

    CUcontext found = handle ? handle : current_get();

    if (!context_get(found))
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *id = HANDLE(found);
    return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext context, unsigned int *version)
{
    NEED_PLACE(version);
    if (context && !context_get(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    *version = 3020; /* what a context of cuCtxCreate_v2 and later says */
    return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
    NEED(driver_context());
    return driver_result(memsim_device_synchronize());
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    NEED(driver_context());
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
{
    uint64_t now;

    NEED(driver_context());
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    NEED(driver_result(memsim_limit_get(limit, &now)));
    *value = now;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
    NEED(driver_context());
    return driver_result(memsim_limit_set(limit, value));
}

CUresult cuCtxGetCacheConfig(CUfunc_cache *config)
{
    NEED_PLACE(config);
    NEED(driver_context());
    *config = CU_FUNC_CACHE_PREFER_NONE;
    return CUDA_SUCCESS;
}

/* A context beside the primary one costs a GPU what the first one does. */
static CUresult context_create(CUcontext *context, unsigned flags,
                               CUdevice device)
{
    NEED_PLACE(context);
    NEED(driver_device(device));
    NEED(open_unbound(device));
    bool bound = memsim_device_is_bound();
    CUcontext made = context_new(device, flags, false);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    int rc = memsim_device_library(device, "second context",
                                   memsim_device_gpu()->context_bytes);
    memsim_device_bind(bound); /* the primary context is not below this one */
    if (rc) {
        memsim_handle_free(HANDLE_CONTEXT, made);
        return driver_result(rc);
    }
    *context = made;
    return cuCtxPushCurrent(made);
}

CUresult cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *params,
                        unsigned int flags, CUdevice device)
{
    (void)params;
    return context_create(context, flags, device);
}

CUresult cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *affinity,
                        int count, unsigned int flags, CUdevice device);
CUresult cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *affinity,
                        int count, unsigned int flags, CUdevice device)
{
    (void)affinity;
    (void)count;
    return context_create(context, flags, device);
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags,
                        CUdevice device);
CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
    return context_create(context, flags, device);
}

CUresult cuCtxDestroy(CUcontext handle)
{
    const struct context *context = context_get(handle);

    if (!context || context->primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (current_get() == handle)
        cuCtxPopCurrent(NULL);
    return driver_result(memsim_handle_free(HANDLE_CONTEXT, handle));
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
    const struct context *context = context_get(peer);

    NEED(driver_context());
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    return driver_result(memsim_device_peer_enable(context->device, flags));
}

CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
    const struct context *context = context_get(peer);

    NEED(driver_context());
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    return driver_result(memsim_device_peer_disable(context->device));
}
