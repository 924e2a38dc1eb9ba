/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/cublas/cublas.h"

#include "capture/core/memory/device.h"
#include "capture/core/base/handle.h"
#include "capture/core/work/library.h"
#include "capture/core/run/record.h"
#include "capture/core/work/stream.h"

#if MEMSIM_CUDA_MAJOR >= 13
#define VERSION_MAJOR 13
#define VERSION_MINOR 1
#define VERSION_PATCH 0
#else
#define VERSION_MAJOR 12
#define VERSION_MINOR 4
#define VERSION_PATCH 5
#endif

struct cublas *cublas_get(cublasHandle_t handle)
{
    return memsim_handle_get(HANDLE_CUBLAS, handle);
}

cublasStatus_t cublas_status(int rc)
{
    switch (rc) {
    case CORE_OK:
        return CUBLAS_STATUS_SUCCESS;
    case CORE_OUT_OF_MEMORY:
        return CUBLAS_STATUS_ALLOC_FAILED;
    case CORE_INVALID_VALUE:
        return CUBLAS_STATUS_INVALID_VALUE;
    case CORE_NOT_SUPPORTED:
        return CUBLAS_STATUS_NOT_SUPPORTED;
    case CORE_NO_DEVICE:
    case CORE_NOT_INITIALIZED:
        return CUBLAS_STATUS_NOT_INITIALIZED;
    default:
        return CUBLAS_STATUS_EXECUTION_FAILED;
    }
}

/* Every handle has a workspace of its own, also where the user gives it one:
 * "the default workspace pool allocated during the cuBLAS context creation"
 * (cuBLAS documentation, cublasSetWorkspace). */
static const char pool[] = "cublas";

cublasStatus_t cublasCreate(cublasHandle_t *handle)
{
    int device = memsim_device_current();
    int rc = memsim_device_open(device);

    if (rc)
        return cublas_status(rc);
    if (memsim_device_library_object(device, pool,
                                     memsim_device_gpu()->cublas_bytes))
        return CUBLAS_STATUS_ALLOC_FAILED;
    struct cublas *c = memsim_handle_new(HANDLE_CUBLAS, sizeof *c);
    if (!c)
        return CUBLAS_STATUS_ALLOC_FAILED;
    c->device = device;
    *handle = (cublasHandle_t)c;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t handle)
{
    const struct cublas *c = cublas_get(handle);

    if (!c)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    memsim_device_library_object_end(c->device, pool);
    memsim_handle_free(HANDLE_CUBLAS, handle);
    return CUBLAS_STATUS_SUCCESS;
}

#define LIBRARY_STATUS    cublasStatus_t
#define LIBRARY_HANDLE    cublasHandle_t
#define LIBRARY_GET       cublas_get
#define LIBRARY_OK        CUBLAS_STATUS_SUCCESS
#define LIBRARY_NO_HANDLE CUBLAS_STATUS_NOT_INITIALIZED

LIBRARY_FIELD(cublasSetPointerMode, cublasGetPointerMode, cublasPointerMode_t,
              pointer_mode)
LIBRARY_FIELD(cublasSetAtomicsMode, cublasGetAtomicsMode, cublasAtomicsMode_t,
              atomics)
LIBRARY_FIELD(cublasSetMathMode, cublasGetMathMode, cublasMath_t, math_mode)
LIBRARY_FIELD(cublasSetSmCountTarget, cublasGetSmCountTarget, int, sm_target)

/* A new stream takes the library's own workspace again (cuBLAS documentation,
 * cublasSetStream). */
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream)
{
    struct cublas *c = cublas_get(handle);
    int device;

    if (!c)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (memsim_stream_given((uint64_t)stream, &device, __func__))
        return CUBLAS_STATUS_MAPPING_ERROR;
    c->stream = (uint64_t)stream;
    c->workspace_bytes = 0;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetStream(cublasHandle_t handle, cudaStream_t *stream)
{
    const struct cublas *c = cublas_get(handle);

    if (!c)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    *stream = (cudaStream_t)c->stream;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void *workspace,
                                  size_t bytes)
{
    struct cublas *c = cublas_get(handle);

    if (!c)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (workspace && (uint64_t)workspace % 256)
        return CUBLAS_STATUS_INVALID_VALUE;
    c->workspace_bytes = bytes;
    RECORD(LIBRARY_CALL, .name = NAME_OF("cublasSetWorkspace"),
           .device = (uint64_t)c->device, .stream = c->stream,
           .workspace_bytes = bytes, .a = (uint64_t)workspace);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetVersion(cublasHandle_t handle, int *version)
{
    (void)handle;
    *version = VERSION_MAJOR * 10000 + VERSION_MINOR * 100 + VERSION_PATCH;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetProperty(libraryPropertyType type, int *value)
{
    static const int values[] = {VERSION_MAJOR, VERSION_MINOR, VERSION_PATCH};

    if ((unsigned)type > PATCH_LEVEL)
        return CUBLAS_STATUS_INVALID_VALUE;
    *value = values[type];
    return CUBLAS_STATUS_SUCCESS;
}

size_t cublasGetCudartVersion(void)
{
    return VERSION_MAJOR * 1000;
}

#define S(name) [CUBLAS_STATUS_##name] = "CUBLAS_STATUS_" #name
static const char *const status_names[] = {
    S(SUCCESS),          S(NOT_INITIALIZED), S(ALLOC_FAILED),
    S(INVALID_VALUE),    S(ARCH_MISMATCH),   S(MAPPING_ERROR),
    S(EXECUTION_FAILED), S(INTERNAL_ERROR),  S(NOT_SUPPORTED),
    S(LICENSE_ERROR),
};
#undef S

const char *cublasGetStatusName(cublasStatus_t status)
{
    size_t count = sizeof status_names / sizeof *status_names;

    return (size_t)status < count && status_names[status]
               ? status_names[status]
               : "CUBLAS_STATUS_UNKNOWN";
}

const char *cublasGetStatusString(cublasStatus_t status)
{
    return cublasGetStatusName(status);
}
