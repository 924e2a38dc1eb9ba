/* SPDX-License-Identifier: Apache-2.0
 * cuFFT plans. What a plan's work area takes is a model: the cuFFT
 * documentation (section "Fourier Transform Setup", cuFFT API reference) gives
 * the range, 1 to 8 times batch * n[0] * ... * n[rank-1] complex elements; the
 * lower end is taken where every size is a product of 2, 3, 5 and 7, for which
 * there are direct kernels, and the upper end where one is not. */
#include <cufft.h>
#include <cufftXt.h>
#include <stdint.h>
#include <stdio.h>

#include "capture/core/device.h"
#include "capture/core/handle.h"
#include "capture/core/kernel.h"
#include "capture/core/pages.h"
#include "capture/core/record.h"
#include "capture/core/stream.h"

#if MEMSIM_CUDA_MAJOR >= 13
#define VERSION 12000
#else
#define VERSION 11201
#endif

#define PLANS_MAX 65536 /* handles are small integers */
#define RANK_MAX  3

struct plan {
    int device, rank, automatic;
    int64_t n[RANK_MAX], batch;
    uint64_t stream, work_bytes, work; /* work: the area, where it is ours */
    int type;                          /* cudaDataType of the execution */
};

static struct plan **plans; /* by handle - 1 */
static _Atomic uint32_t plan_count;

static struct plan *plan_get(cufftHandle handle)
{
    if (!plans || handle < 1 || (uint32_t)handle > plan_count)
        return NULL;
    return memsim_handle_get(HANDLE_CUFFT, plans[handle - 1]);
}

cufftResult cufftCreate(cufftHandle *handle)
{
    if (!plans)
        plans = memsim_pages_reserve(0, PLANS_MAX * sizeof *plans);
    int rc = memsim_device_open(memsim_device_current());
    if (rc || !plans)
        return CUFFT_SETUP_FAILED;
    uint32_t i = plan_count;
    for (uint32_t k = 0; k < plan_count; k++)
        if (!plan_get((cufftHandle)(k + 1)))
            i = k;
    struct plan *plan = memsim_handle_new(HANDLE_CUFFT, sizeof *plan);
    if (!plan || i == PLANS_MAX)
        return CUFFT_ALLOC_FAILED;
    plan->device = memsim_device_current();
    plan->automatic = 1;
    plans[i] = plan;
    if (i == plan_count)
        plan_count++;
    *handle = (cufftHandle)(i + 1);
    return CUFFT_SUCCESS;
}

cufftResult cufftDestroy(cufftHandle handle)
{
    struct plan *plan = plan_get(handle);

    if (!plan)
        return CUFFT_INVALID_PLAN;
    if (plan->work)
        memsim_device_free(plan->work, TRACE_HOW_MALLOC);
    memsim_handle_free(HANDLE_CUFFT, plan);
    return CUFFT_SUCCESS;
}

cufftResult cufftSetAutoAllocation(cufftHandle handle, int automatic)
{
    struct plan *plan = plan_get(handle);

    if (!plan)
        return CUFFT_INVALID_PLAN;
    plan->automatic = automatic;
    return CUFFT_SUCCESS;
}

cufftResult cufftSetStream(cufftHandle handle, cudaStream_t stream)
{
    struct plan *plan = plan_get(handle);

    if (!plan)
        return CUFFT_INVALID_PLAN;
    plan->stream = (uint64_t)stream;
    return CUFFT_SUCCESS;
}

cufftResult cufftSetWorkArea(cufftHandle handle, void *area)
{
    (void)area;
    return plan_get(handle) ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}

cufftResult cufftGetSize(cufftHandle handle, size_t *bytes)
{
    const struct plan *plan = plan_get(handle);

    if (!plan)
        return CUFFT_INVALID_PLAN;
    *bytes = plan->work_bytes;
    return CUFFT_SUCCESS;
}

cufftResult cufftGetVersion(int *version)
{
    *version = VERSION;
    return CUFFT_SUCCESS;
}

static int is_smooth(int64_t n)
{
    for (int64_t p = 2; p <= 7; p++)
        while (n % p == 0)
            n /= p;
    return n == 1;
}

static uint64_t complex_bytes(int type)
{
    switch (type) {
    case CUDA_C_64F:
        return 16;
    case CUDA_C_16F:
    case CUDA_C_16BF:
        return 4;
    default:
        return 8;
    }
}

static uint64_t work_bytes(const struct plan *plan)
{
    uint64_t elements = (uint64_t)plan->batch, factor = 1;

    for (int i = 0; i < plan->rank; i++) {
        elements *= (uint64_t)plan->n[i];
        if (!is_smooth(plan->n[i]))
            factor = 8;
    }
    return elements * factor * complex_bytes(plan->type);
}

static cufftResult plan_make(struct plan *plan, size_t *bytes)
{
    plan->work_bytes = work_bytes(plan);
    *bytes = plan->work_bytes;
    if (!plan->automatic || !plan->work_bytes)
        return CUFFT_SUCCESS;
    return memsim_device_malloc(plan->device, plan->work_bytes,
                                TRACE_HOW_MALLOC, false, &plan->work)
               ? CUFFT_ALLOC_FAILED
               : CUFFT_SUCCESS;
}

cufftResult cufftXtMakePlanMany(cufftHandle handle, int rank, long long *n,
                                long long *in_embed, long long in_stride,
                                long long in_distance,
                                cudaDataType in_type, long long *out_embed,
                                long long out_stride, long long out_distance,
                                cudaDataType out_type, long long batch,
                                size_t *bytes, cudaDataType type)
{
    struct plan *plan = plan_get(handle);

    (void)in_embed, (void)in_stride, (void)in_distance, (void)in_type;
    (void)out_embed, (void)out_stride, (void)out_distance, (void)out_type;
    if (!plan)
        return CUFFT_INVALID_PLAN;
    if (rank < 1 || rank > RANK_MAX || batch < 1)
        return CUFFT_INVALID_VALUE;
    plan->rank = rank;
    plan->batch = batch;
    plan->type = (int)type;
    for (int i = 0; i < rank; i++) {
        if (n[i] < 1)
            return CUFFT_INVALID_SIZE;
        plan->n[i] = n[i];
    }
    return plan_make(plan, bytes);
}

cufftResult cufftXtExec(cufftHandle handle, void *input, void *output,
                        int direction)
{
    const struct plan *plan = plan_get(handle);
    int device;

    (void)input;
    (void)output;
    if (!plan)
        return CUFFT_INVALID_PLAN;
    if (memsim_stream_device(plan->stream, &device))
        return CUFFT_EXEC_FAILED;
    memsim_kernel_count(device);
    RECORD(LIBRARY_CALL, NAME_OF("cufftXtExec"), (uint64_t)device,
           plan->stream, plan->work_bytes, (uint64_t)plan->rank,
           (uint64_t)plan->n[0], (uint64_t)plan->n[1], (uint64_t)plan->n[2],
           (uint64_t)plan->batch, (uint64_t)(int64_t)direction);
    return CUFFT_SUCCESS;
}
