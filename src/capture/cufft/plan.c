/* SPDX-License-Identifier: Apache-2.0
 * cuFFT plans. What a plan's work area takes is a model: the cuFFT
 * documentation (section "Fourier Transform Setup", cuFFT API reference) gives
 * the range, 1 to 8 times batch * n[0] * ... * n[rank-1] complex elements; the
 * lower end is taken where every size is a product of 2, 3, 5 and 7, for which
 * there are direct kernels, and the upper end where one is not. */
#include "capture/cufft/cufft_fake.h"

#include "capture/core/memory/device.h"
#include "capture/core/base/handle.h"
#include "capture/core/base/pages.h"
#include "capture/core/work/stream.h"

#if MEMSIM_CUDA_MAJOR >= 13
static const int version[] = {12, 0, 0};
#else
static const int version[] = {11, 2, 1};
#endif

#define PLANS_MAX 65536 /* handles are small integers */

static struct plan **plans; /* by handle - 1 */
static _Atomic uint32_t plan_count;

struct plan *plan_get(cufftHandle handle)
{
    if (!plans || handle < 1 || (uint32_t)handle > plan_count)
        return NULL;
    return memsim_handle_get(HANDLE_CUFFT, plans[handle - 1]);
}

static const char taker[] = "cufft plan";

/* What the library takes once, and what a plan takes beside its work area. */
static int plan_take(int device)
{
    const struct gpu *gpu = memsim_device_gpu();

    return memsim_device_library_kernels(device, "cufft", gpu->cufft_bytes)
               ? CORE_OUT_OF_MEMORY
               : memsim_device_library_object(device, taker,
                                              gpu->cufft_plan_bytes);
}

cufftResult cufftCreate(cufftHandle *handle)
{
    if (!plans)
        plans = memsim_pages_reserve(0, PLANS_MAX * sizeof *plans);
    int device = memsim_device_current();
    int rc = memsim_device_open(device);
    if (rc || !plans)
        return CUFFT_SETUP_FAILED;
    if (plan_take(device))
        return CUFFT_ALLOC_FAILED;
    uint32_t i = plan_count;
    for (uint32_t k = 0; k < plan_count; k++)
        if (!plan_get((cufftHandle)(k + 1)))
            i = k;
    struct plan *plan = memsim_handle_new(HANDLE_CUFFT, sizeof *plan);
    if (!plan || i == PLANS_MAX)
        return CUFFT_ALLOC_FAILED;
    plan->device = device;
    plan->automatic = 1;
    plans[i] = plan;
    if (i == plan_count)
        plan_count++;
    *handle = (cufftHandle)(i + 1);
    return CUFFT_SUCCESS;
}

static void work_free(struct plan *plan)
{
    if (plan->work)
        memsim_device_free(plan->work, TRACE_HOW_MALLOC);
    plan->work = 0;
}

cufftResult cufftDestroy(cufftHandle handle)
{
    struct plan *plan = plan_get(handle);

    if (!plan)
        return CUFFT_INVALID_PLAN;
    work_free(plan);
    memsim_device_library_object_end(plan->device, taker);
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

/* The caller's area takes the place of the plan's own. */
cufftResult cufftSetWorkArea(cufftHandle handle, void *area)
{
    struct plan *plan = plan_get(handle);

    if (!plan)
        return CUFFT_INVALID_PLAN;
    if (area)
        work_free(plan);
    return CUFFT_SUCCESS;
}

static long long *property_place(cufftHandle handle, cufftProperty property)
{
    struct plan *plan = plan_get(handle);
    size_t count =
        plan ? sizeof plan->properties / sizeof *plan->properties : 0;

    return (size_t)property - 1 < count ? &plan->properties[property - 1]
                                        : NULL;
}

cufftResult cufftSetPlanPropertyInt64(cufftHandle handle,
                                      cufftProperty property,
                                      const long long value)
{
    long long *place = property_place(handle, property);

    if (place)
        *place = value;
    return place ? CUFFT_SUCCESS : CUFFT_INVALID_VALUE;
}

cufftResult cufftGetPlanPropertyInt64(cufftHandle handle,
                                      cufftProperty property, long long *value)
{
    const long long *place = property_place(handle, property);

    if (place)
        *value = *place;
    return place ? CUFFT_SUCCESS : CUFFT_INVALID_VALUE;
}

cufftResult cufftResetPlanProperty(cufftHandle handle, cufftProperty property)
{
    return cufftSetPlanPropertyInt64(handle, property, 0);
}

cufftResult cufftGetVersion(int *value)
{
    *value = version[0] * 1000 + version[1] * 100 + version[2];
    return CUFFT_SUCCESS;
}

cufftResult cufftGetProperty(libraryPropertyType type, int *value)
{
    if ((unsigned)type > PATCH_LEVEL)
        return CUFFT_INVALID_VALUE;
    *value = version[type];
    return CUFFT_SUCCESS;
}

static int is_smooth(int64_t n)
{
    for (int64_t p = 2; p <= 7; p++)
        while (n % p == 0)
            n /= p;
    return n == 1;
}

static uint64_t complex_bytes(cudaDataType type)
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

cufftResult shape_work(const struct fft_shape *shape, uint64_t *bytes)
{
    uint64_t elements = (uint64_t)shape->batch, factor = 1;

    if (shape->rank < 1 || shape->rank > RANK_MAX || shape->batch < 1)
        return CUFFT_INVALID_VALUE;
    for (int i = 0; i < shape->rank; i++) {
        if (shape->n[i] < 1)
            return CUFFT_INVALID_SIZE;
        elements *= (uint64_t)shape->n[i];
        if (!is_smooth(shape->n[i]))
            factor = 8;
    }
    *bytes = elements * factor * complex_bytes(shape->type);
    return CUFFT_SUCCESS;
}

cufftResult plan_make(struct plan *plan, const struct fft_shape *shape,
                      size_t *bytes)
{
    uint64_t wanted = 0;
    cufftResult result = shape_work(shape, &wanted);

    if (!plan)
        return CUFFT_INVALID_PLAN;
    if (result)
        return result;
    if (plan->shape.rank) /* made before: a plan is made once */
        return CUFFT_INVALID_PLAN;
    plan->shape = *shape;
    plan->work_bytes = wanted;
    if (bytes)
        *bytes = wanted;
    if (!plan->automatic)
        return CUFFT_SUCCESS;
    return memsim_device_malloc(plan->device, wanted, TRACE_HOW_MALLOC, false,
                                &plan->work)
               ? CUFFT_ALLOC_FAILED
               : CUFFT_SUCCESS;
}
