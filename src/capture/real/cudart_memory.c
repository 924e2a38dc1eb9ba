/* SPDX-License-Identifier: Apache-2.0
 * Taps of the runtime's calls that give and take memory, copy and set it. */
#include <cuda_runtime_api.h>

#include "capture/core/memory/host.h"
#include "capture/core/run/process.h"
#include "capture/core/run/record.h"
#include "capture/core/torch/torch.h"
#include "capture/real/card.h"
#include "capture/real/tap.h"

#define HANDLE(handle) ((uint64_t)(handle))
#define PAGE           UINT64_C(4096)

/* CUDA gives the host whole pages. */
static uint64_t round_to_pages(uint64_t bytes)
{
    return (bytes + PAGE - 1) & ~(PAGE - 1);
}

/* --- the device's memory -------------------------------------------------- */

/* The device that the outermost CALL is about to allocate on, whose context is
 * there: its size is known only before the allocation. */
static int device_open(const struct real_call *call)
{
    if (!call->outer)
        return -1;
    int device = card_current();
    if (device < 0 && !REAL_FUNCTION(cudaFree)(NULL))
        device = card_current();
    return device;
}

cudaError_t cudaMalloc(void **p, size_t bytes)
{
    struct real_call call;
    bool retries = memsim_torch_calls(__builtin_return_address(0));

    real_enter(&call);
    int device = device_open(&call);
    cudaError_t rc = device >= 0 && card_is_full(device, bytes)
                         ? cudaErrorMemoryAllocation
                         : REAL_FUNCTION(cudaMalloc)(p, bytes);
    if (call.outer && !rc)
        card_give(device, HANDLE(*p), bytes, TRACE_HOW_MALLOC, retries);
    else if (call.outer && rc == cudaErrorMemoryAllocation)
        card_refuse(device, bytes, TRACE_HOW_MALLOC, retries);
    real_leave(&call);
    return rc;
}

cudaError_t cudaFree(void *p)
{
    if (p)
        memsim_torch_frees(__builtin_return_address(0), HANDLE(p));
    if (p)
        card_look_before(HANDLE(p));
    REAL_TAP(cudaFree, (p), {
        if (p)
            card_take_back(HANDLE(p));
        else
            card_current();
    });
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
    REAL_TAP(cudaMemGetInfo, (available, total),
             card_show(card_current(), available, total));
}

/* --- the host's memory ---------------------------------------------------- */

cudaError_t cudaHostAlloc(void **p, size_t bytes, unsigned int flags)
{
    REAL_TAP(cudaHostAlloc, (p, bytes, flags),
             tap_host(*p, round_to_pages(bytes), HOST_PINNED, flags));
}

cudaError_t cudaMallocHost(void **p, size_t bytes)
{
    REAL_TAP(cudaMallocHost, (p, bytes),
             tap_host(*p, round_to_pages(bytes), HOST_PINNED, 0));
}

cudaError_t cudaFreeHost(void *p)
{
    REAL_TAP(cudaFreeHost, (p), host_real_take_back(HANDLE(p)));
}

cudaError_t cudaHostRegister(void *p, size_t bytes, unsigned int flags)
{
    REAL_TAP(cudaHostRegister, (p, bytes, flags),
             tap_host(p, bytes, HOST_REGISTERED, flags));
}

cudaError_t cudaHostUnregister(void *p)
{
    REAL_TAP(cudaHostUnregister, (p), host_real_take_back(HANDLE(p)));
}

cudaError_t cudaMallocManaged(void **p, size_t bytes, unsigned int flags)
{
    REAL_TAP(cudaMallocManaged, (p, bytes, flags),
             tap_host(*p, round_to_pages(bytes), HOST_MANAGED, flags));
}

/* --- copies, sets --------------------------------------------------------- */

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes,
                       enum cudaMemcpyKind kind)
{
    REAL_TAP(cudaMemcpy, (to, from, bytes, kind),
             tap_copy(&call, HANDLE(to), HANDLE(from), bytes, (int)kind, 0,
                       true));
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes,
                            enum cudaMemcpyKind kind, cudaStream_t stream)
{
    REAL_TAP(cudaMemcpyAsync, (to, from, bytes, kind, stream),
             tap_copy(&call, HANDLE(to), HANDLE(from), bytes, (int)kind,
                       HANDLE(stream), false));
}

cudaError_t cudaMemset(void *p, int value, size_t bytes)
{
    REAL_TAP(cudaMemset, (p, value, bytes),
             tap_set(&call, HANDLE(p), (unsigned char)value, bytes, 0, true));
}

cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes,
                            cudaStream_t stream)
{
    REAL_TAP(cudaMemsetAsync, (p, value, bytes, stream),
             tap_set(&call, HANDLE(p), (unsigned char)value, bytes,
                      HANDLE(stream), false));
}

/* --- what a smaller card would say ---------------------------------------- */

static void total_show(size_t *total)
{
    size_t available = 0;

    card_show(0, &available, total);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device)
{
    REAL_TAP(cudaGetDeviceProperties, (p, device),
             total_show(&p->totalGlobalMem));
}

/* CUDA 12's name; what both have begins alike. */
cudaError_t cudaGetDeviceProperties_v2(struct cudaDeviceProp *p, int device);
CORE_API cudaError_t cudaGetDeviceProperties_v2(struct cudaDeviceProp *p,
                                                int device)
{
    REAL_TAP(cudaGetDeviceProperties_v2, (p, device),
             total_show(&p->totalGlobalMem));
}

cudaError_t cudaGetDeviceCount(int *count)
{
    memsim_torch_counts(__builtin_return_address(0));
    REAL_CALL(cudaGetDeviceCount, (count), {
        if (rc == cudaErrorInsufficientDriver)
            memsim_note("the driver is older than the program's CUDA "
                        "libraries: install a newer one, or libraries for an "
                        "older CUDA");
    });
}
