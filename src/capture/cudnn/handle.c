/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/memory/device.h"
#include "capture/core/base/handle.h"
#include "capture/core/work/library.h"
#include "capture/cudnn/cudnn.h"

struct cudnn *cudnn_get(cudnnHandle_t handle)
{
    return memsim_handle_get(HANDLE_CUDNN, handle);
}

cudnnStatus_t cudnn_pass_record(cudnnHandle_t handle, uint32_t name,
                                const uint64_t bytes[2],
                                const struct text *detail)
{
    const struct cudnn *cudnn = cudnn_get(handle);
    struct cudnn_call call = {
        .name = name, .values = {bytes[0], bytes[1]}, .detail = *detail};

    if (!cudnn)
        return CUDNN_STATUS_BAD_PARAM;
    cudnn_call_record(cudnn, &call);
    return CUDNN_STATUS_SUCCESS;
}

static const char taker[] = "cudnn";

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
    int device = memsim_device_current();
    int rc = memsim_device_open(device);

    if (!handle)
        return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    if (rc)
        return cudnn_status(rc);
    if (memsim_device_library_object(device, taker,
                                     memsim_device_gpu()->cudnn_bytes))
        return CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
    struct cudnn *cudnn = memsim_handle_new(HANDLE_CUDNN, sizeof *cudnn);
    if (!cudnn)
        return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    cudnn->device = device;
    *handle = (cudnnHandle_t)cudnn;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    const struct cudnn *cudnn = cudnn_get(handle);

    if (cudnn)
        memsim_device_library_object_end(cudnn->device, taker);
    return cudnn_status(memsim_handle_free(HANDLE_CUDNN, handle));
}

#define LIBRARY_STATUS    cudnnStatus_t
#define LIBRARY_HANDLE    cudnnHandle_t
#define LIBRARY_GET       cudnn_get
#define LIBRARY_OK        CUDNN_STATUS_SUCCESS
#define LIBRARY_NO_HANDLE CUDNN_STATUS_BAD_PARAM

LIBRARY_STREAM(cudnnSetStream, cudnnGetStream)

cudnnStatus_t cudnnQueryRuntimeError(cudnnHandle_t handle,
                                     cudnnStatus_t *status,
                                     cudnnErrQueryMode_t mode,
                                     cudnnRuntimeTag_t *tag)
{
    (void)mode;
    (void)tag;
    if (!cudnn_get(handle) || !status)
        return CUDNN_STATUS_BAD_PARAM;
    *status = CUDNN_STATUS_SUCCESS;
    return CUDNN_STATUS_SUCCESS;
}

/* cuDNN's texts are its codes' names. */
#define S(code)                                                                \
    {                                                                          \
        code, #code                                                            \
    }
static const struct text_of {
    cudnnStatus_t code;
    const char *text;
} texts[] = {
    S(CUDNN_STATUS_SUCCESS),
    S(CUDNN_STATUS_NOT_INITIALIZED),
    S(CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH),
    S(CUDNN_STATUS_DEPRECATED),
    S(CUDNN_STATUS_BAD_PARAM),
    S(CUDNN_STATUS_BAD_PARAM_NULL_POINTER),
    S(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED),
    S(CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND),
    S(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT),
    S(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH),
    S(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE),
    S(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE),
    S(CUDNN_STATUS_NOT_SUPPORTED),
    S(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN),
    S(CUDNN_STATUS_NOT_SUPPORTED_SHAPE),
    S(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE),
    S(CUDNN_STATUS_NOT_SUPPORTED_LAYOUT),
    S(CUDNN_STATUS_INTERNAL_ERROR),
    S(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED),
    S(CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED),
    S(CUDNN_STATUS_EXECUTION_FAILED),
};
#undef S

const char *cudnnGetErrorString(cudnnStatus_t status)
{
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].code == status)
            return texts[i].text;
    return "CUDNN_UNKNOWN_STATUS";
}

/* The text of the last error: there is never more to say than its code. */
void cudnnGetLastErrorString(char *message, size_t max_size)
{
    if (message && max_size)
        *message = '\0';
}

size_t cudnnGetMaxDeviceVersion(void)
{
    return CUDNN_MAX_DEVICE_VERSION;
}

size_t cudnnGetCudartVersion(void)
{
    return CUDART_VERSION;
}
