/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/base/handle.h"
#include "capture/cudnn/cudnn.h"

cudnnStatus_t cudnn_status(int rc)
{
    switch (rc) {
    case CORE_OK:
        return CUDNN_STATUS_SUCCESS;
    case CORE_OUT_OF_MEMORY:
        return CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
    case CORE_INVALID_VALUE:
    case CORE_INVALID_HANDLE:
        return CUDNN_STATUS_BAD_PARAM;
    default:
        return CUDNN_STATUS_NOT_INITIALIZED;
    }
}

void *cudnn_object_get(enum cudnn_class class, const void *object)
{
    uint32_t *found = memsim_handle_get(HANDLE_DESCRIPTOR, object);

    return found && *found == (uint32_t) class ? found : NULL;
}

cudnnStatus_t cudnn_object_create(enum cudnn_class class, size_t bytes,
                                  void *object)
{
    if (!object)
        return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    uint32_t *new = memsim_handle_new(HANDLE_DESCRIPTOR, bytes);
    if (!new)
        return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    *new = (uint32_t) class;
    *(void **)object = new;
    return CUDNN_STATUS_SUCCESS;
}

/* Destroying NULL succeeds, as in cuDNN. */
cudnnStatus_t cudnn_object_destroy(enum cudnn_class class, void *object)
{
    if (!object)
        return CUDNN_STATUS_SUCCESS;
    if (!cudnn_object_get(class, object))
        return CUDNN_STATUS_BAD_PARAM;
    return cudnn_status(memsim_handle_free(HANDLE_DESCRIPTOR, object));
}

static const struct type {
    const char *name;
    uint32_t bytes;
} types[] = {
    [CUDNN_DATA_FLOAT] = {"float", 4},
    [CUDNN_DATA_DOUBLE] = {"double", 8},
    [CUDNN_DATA_HALF] = {"half", 2},
    [CUDNN_DATA_INT8] = {"int8", 1},
    [CUDNN_DATA_INT32] = {"int32", 4},
    [CUDNN_DATA_INT8x4] = {"int8x4", 4},
    [CUDNN_DATA_UINT8] = {"uint8", 1},
    [CUDNN_DATA_UINT8x4] = {"uint8x4", 4},
    [CUDNN_DATA_INT8x32] = {"int8x32", 32},
    [CUDNN_DATA_BFLOAT16] = {"bfloat16", 2},
    [CUDNN_DATA_INT64] = {"int64", 8},
    [CUDNN_DATA_BOOLEAN] = {"boolean", 1},
    [CUDNN_DATA_FP8_E4M3] = {"fp8_e4m3", 1},
    [CUDNN_DATA_FP8_E5M2] = {"fp8_e5m2", 1},
    [CUDNN_DATA_FAST_FLOAT_FOR_FP8] = {"fast_float_for_fp8", 4},
    [CUDNN_DATA_FP8_E8M0] = {"fp8_e8m0", 1},
    [CUDNN_DATA_FP4_E2M1] = {"fp4_e2m1", 1},
    [CUDNN_DATA_INT4] = {"int4", 1},
    [CUDNN_DATA_UINT4] = {"uint4", 1},
    [CUDNN_DATA_UINT32] = {"uint32", 4},
    [CUDNN_DATA_COMPLEX_FP32] = {"complex64", 8},
    [CUDNN_DATA_COMPLEX_FP64] = {"complex128", 16},
};

static const struct type *type_find(cudnnDataType_t type)
{
    static const struct type none = {"?", 0};

    return (size_t)type < sizeof types / sizeof *types ? &types[type] : &none;
}

uint32_t cudnn_type_bytes(cudnnDataType_t type)
{
    return type_find(type)->bytes;
}

const char *cudnn_type_name(cudnnDataType_t type)
{
    return type_find(type)->name;
}
