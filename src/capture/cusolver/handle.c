/* SPDX-License-Identifier: Apache-2.0
 * Handles, parameter objects, and what they remember. */
#include "capture/cusolver/cusolver.h"

#include "capture/core/memory/device.h"
#include "capture/core/base/handle.h"
#include "capture/core/work/library.h"

#if MEMSIM_CUDA_MAJOR >= 13
static const int version[] = {12, 0, 4};
#else
static const int version[] = {11, 6, 1};
#endif

/* The tuning of a Jacobi method, and what the last one is said to have done.
 * cuSOLVER's defaults are 100 sweeps, sorted, machine precision. */
struct jacobi {
    double tolerance;
    int max_sweeps, sort;
};

struct cusolver *cusolver_get(cusolverDnHandle_t handle)
{
    return memsim_handle_get(HANDLE_CUSOLVER, handle);
}

static const char taker[] = "cusolver handle";

static int handle_take(int device)
{
    const struct gpu *gpu = memsim_device_gpu();
    int rc = memsim_device_library(device, "cusolver",
                                   gpu->cusolver_first_bytes);

    return rc ? rc
              : memsim_device_library_object(device, taker,
                                             gpu->cusolver_bytes);
}

cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t *handle)
{
    int device = memsim_device_current();

    if (!handle)
        return CUSOLVER_STATUS_INVALID_VALUE;
    if (memsim_device_open(device))
        return CUSOLVER_STATUS_NOT_INITIALIZED;
    if (handle_take(device))
        return CUSOLVER_STATUS_ALLOC_FAILED;
    struct cusolver *c = memsim_handle_new(HANDLE_CUSOLVER, sizeof *c);
    if (!c)
        return CUSOLVER_STATUS_ALLOC_FAILED;
    c->device = device;
    c->deterministic = CUSOLVER_DETERMINISTIC_RESULTS;
    c->math = CUSOLVER_DEFAULT_MATH;
    *handle = (cusolverDnHandle_t)c;
    return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t handle)
{
    const struct cusolver *c = cusolver_get(handle);

    if (c)
        memsim_device_library_object_end(c->device, taker);
    return memsim_handle_free(HANDLE_CUSOLVER, handle)
               ? CUSOLVER_STATUS_NOT_INITIALIZED
               : CUSOLVER_STATUS_SUCCESS;
}

#define LIBRARY_STATUS    cusolverStatus_t
#define LIBRARY_HANDLE    cusolverDnHandle_t
#define LIBRARY_GET       cusolver_get
#define LIBRARY_OK        CUSOLVER_STATUS_SUCCESS
#define LIBRARY_NO_HANDLE CUSOLVER_STATUS_NOT_INITIALIZED

LIBRARY_STREAM(cusolverDnSetStream, cusolverDnGetStream)
LIBRARY_FIELD(cusolverDnSetDeterministicMode, cusolverDnGetDeterministicMode,
              cusolverDeterministicMode_t, deterministic)
LIBRARY_FIELD(cusolverDnSetMathMode, cusolverDnGetMathMode, cusolverMathMode_t,
              math)
LIBRARY_FIELD(cusolverDnSetEmulationStrategy, cusolverDnGetEmulationStrategy,
              cudaEmulationStrategy_t, emulation)

cusolverStatus_t cusolverGetProperty(libraryPropertyType type, int *value)
{
    if ((unsigned)type > PATCH_LEVEL)
        return CUSOLVER_STATUS_INVALID_VALUE;
    *value = version[type];
    return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverGetVersion(int *value)
{
    *value = version[0] * 1000 + version[1] * 100 + version[2];
    return CUSOLVER_STATUS_SUCCESS;
}

static void *object_new(size_t bytes)
{
    return memsim_handle_new(HANDLE_DESCRIPTOR, bytes);
}

static cusolverStatus_t object_free(void *object)
{
    return memsim_handle_free(HANDLE_DESCRIPTOR, object)
               ? CUSOLVER_STATUS_INVALID_VALUE
               : CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnCreateParams(cusolverDnParams_t *params)
{
    *params = object_new(sizeof(int));
    return *params ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_ALLOC_FAILED;
}

cusolverStatus_t cusolverDnDestroyParams(cusolverDnParams_t params)
{
    return object_free(params);
}

cusolverStatus_t cusolverDnSetAdvOptions(cusolverDnParams_t params,
                                         cusolverDnFunction_t function,
                                         cusolverAlgMode_t algorithm)
{
    (void)function;
    (void)algorithm;
    return memsim_handle_get(HANDLE_DESCRIPTOR, params)
               ? CUSOLVER_STATUS_SUCCESS
               : CUSOLVER_STATUS_INVALID_VALUE;
}

static struct jacobi *jacobi_new(void)
{
    struct jacobi *j = object_new(sizeof *j);

    if (j)
        *j = (struct jacobi){.max_sweeps = 100, .sort = 1};
    return j;
}

#define JACOBI_SET(field)                                                      \
    {                                                                          \
        struct jacobi *j = memsim_handle_get(HANDLE_DESCRIPTOR, info);         \
                                                                               \
        if (!j)                                                                \
            return CUSOLVER_STATUS_INVALID_VALUE;                              \
        j->field = value;                                                      \
        return CUSOLVER_STATUS_SUCCESS;                                        \
    }

/* The result of a method that converged in one sweep, exactly. */
#define JACOBI_RESULT(result)                                                  \
    {                                                                          \
        if (!cusolver_get(handle) ||                                           \
            !memsim_handle_get(HANDLE_DESCRIPTOR, info))                       \
            return CUSOLVER_STATUS_INVALID_VALUE;                              \
        *value = result;                                                       \
        return CUSOLVER_STATUS_SUCCESS;                                        \
    }

#define JACOBI(Name, name, T)                                                  \
    cusolverStatus_t cusolverDnCreate##Name##Info(T *info)                     \
    {                                                                          \
        *info = (T)jacobi_new();                                               \
        return *info ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_ALLOC_FAILED; \
    }                                                                          \
    cusolverStatus_t cusolverDnDestroy##Name##Info(T info)                     \
    {                                                                          \
        return object_free(info);                                              \
    }                                                                          \
    cusolverStatus_t cusolverDnX##name##SetTolerance(                          \
        T info, double value) JACOBI_SET(tolerance)                            \
        cusolverStatus_t cusolverDnX##name##SetMaxSweeps(                      \
            T info, int value) JACOBI_SET(max_sweeps)                          \
            cusolverStatus_t cusolverDnX##name##SetSortEig(T info, int value)  \
                JACOBI_SET(sort)                                               \
                    cusolverStatus_t cusolverDnX##name##GetResidual(           \
                        cusolverDnHandle_t handle, T info, double *value)      \
                        JACOBI_RESULT(0)                                       \
                            cusolverStatus_t cusolverDnX##name##GetSweeps(     \
                                cusolverDnHandle_t handle, T info, int *value) \
                                JACOBI_RESULT(1)

JACOBI(Syevj, syevj, syevjInfo_t)
JACOBI(Gesvdj, gesvdj, gesvdjInfo_t)
