/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/cudnn/tensor.h"

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *descriptor)
{
    return cudnn_object_create(CLASS_TENSOR, sizeof(struct tensor), descriptor);
}

cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t descriptor)
{
    return cudnn_object_destroy(CLASS_TENSOR, descriptor);
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t *descriptor)
{
    return cudnn_object_create(CLASS_FILTER, sizeof(struct tensor), descriptor);
}

cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t descriptor)
{
    return cudnn_object_destroy(CLASS_FILTER, descriptor);
}

static struct tensor *tensor_get(const void *descriptor)
{
    return cudnn_object_get(CLASS_TENSOR, descriptor);
}

static struct tensor *filter_get(const void *descriptor)
{
    return cudnn_object_get(CLASS_FILTER, descriptor);
}

struct shape tensor_shape(cudnnTensorDescriptor_t descriptor)
{
    const struct tensor *tensor = tensor_get(descriptor);

    return tensor ? tensor->shape : (struct shape){0};
}

struct shape filter_shape(cudnnFilterDescriptor_t descriptor)
{
    const struct tensor *filter = filter_get(descriptor);

    return filter ? filter->shape : (struct shape){0};
}

static bool are_positive(int count, const int dims[])
{
    for (int i = 0; i < count; i++)
        if (dims[i] <= 0)
            return false;
    return true;
}

static cudnnStatus_t tensor_set(struct tensor *tensor, cudnnDataType_t type,
                                cudnnTensorFormat_t format, int count,
                                const int dims[], const int strides[])
{
    if (!tensor || !dims || !cudnn_type_bytes(type) || count < 1)
        return CUDNN_STATUS_BAD_PARAM;
    if (count > CUDNN_DIM_MAX)
        return CUDNN_STATUS_NOT_SUPPORTED;
    if (!are_positive(count, dims))
        return CUDNN_STATUS_BAD_PARAM;
    tensor->format = format;
    shape_fill(&tensor->shape, type, format, count, dims);
    for (int i = 0; strides && i < count; i++)
        tensor->shape.strides[i] = strides[i];
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t tensor_fill(cudnnTensorDescriptor_t descriptor,
                          cudnnDataType_t type, int count, const int dims[])
{
    return tensor_set(tensor_get(descriptor), type, CUDNN_TENSOR_NCHW, count,
                      dims, NULL);
}

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t descriptor,
                                         cudnnDataType_t type, int count,
                                         const int dims[], const int strides[])
{
    if (!strides)
        return CUDNN_STATUS_BAD_PARAM;
    return tensor_set(tensor_get(descriptor), type, CUDNN_TENSOR_NCHW, count,
                      dims, strides);
}

cudnnStatus_t cudnnSetTensorNdDescriptorEx(cudnnTensorDescriptor_t descriptor,
                                           cudnnTensorFormat_t format,
                                           cudnnDataType_t type, int count,
                                           const int dims[])
{
    return tensor_set(tensor_get(descriptor), type, format, count, dims, NULL);
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t descriptor,
                                         cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c,
                                         int h, int w)
{
    return tensor_set(tensor_get(descriptor), type, format, 4,
                      (const int[]){n, c, h, w}, NULL);
}

cudnnStatus_t cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t descriptor,
                                           cudnnDataType_t type, int n, int c,
                                           int h, int w, int n_stride,
                                           int c_stride, int h_stride,
                                           int w_stride)
{
    return tensor_set(tensor_get(descriptor), type, CUDNN_TENSOR_NCHW, 4,
                      (const int[]){n, c, h, w},
                      (const int[]){n_stride, c_stride, h_stride, w_stride});
}

/* Up to REQUESTED of NUMBERS; OUT may be NULL. */
static void numbers_get(const int64_t *numbers, int count, int requested,
                        int out[])
{
    for (int i = 0; out && i < count && i < requested; i++)
        out[i] = (int)numbers[i];
}

cudnnStatus_t cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t handle,
                                         int requested, cudnnDataType_t *type,
                                         int *count, int dims[], int strides[])
{
    const struct tensor *tensor = tensor_get(handle);

    if (!tensor)
        return CUDNN_STATUS_BAD_PARAM;
    const struct shape *shape = &tensor->shape;
    if (type)
        *type = shape->type;
    if (count)
        *count = shape->count;
    numbers_get(shape->dims, shape->count, requested, dims);
    numbers_get(shape->strides, shape->count, requested, strides);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetTensor4dDescriptor(const cudnnTensorDescriptor_t handle,
                                         cudnnDataType_t *type, int *n, int *c,
                                         int *h, int *w, int *n_stride,
                                         int *c_stride, int *h_stride,
                                         int *w_stride)
{
    int *const dims[] = {n, c, h, w};
    int *const strides[] = {n_stride, c_stride, h_stride, w_stride};
    const struct tensor *tensor = tensor_get(handle);

    if (!tensor || tensor->shape.count != 4)
        return CUDNN_STATUS_BAD_PARAM;
    if (type)
        *type = tensor->shape.type;
    for (int i = 0; i < 4; i++) {
        if (dims[i])
            *dims[i] = (int)tensor->shape.dims[i];
        if (strides[i])
            *strides[i] = (int)tensor->shape.strides[i];
    }
    return CUDNN_STATUS_SUCCESS;
}

/* From the first element to the last, gaps included. */
cudnnStatus_t cudnnGetTensorSizeInBytes(const cudnnTensorDescriptor_t handle,
                                        size_t *bytes)
{
    const struct tensor *tensor = tensor_get(handle);
    size_t last = 0;

    if (!tensor || !bytes)
        return CUDNN_STATUS_BAD_PARAM;
    const struct shape *shape = &tensor->shape;
    for (int i = 0; i < shape->count; i++)
        last += (size_t)(shape->dims[i] - 1) * (size_t)shape->strides[i];
    *bytes = (last + 1) * cudnn_type_bytes(shape->type);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t descriptor,
                                         cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int count,
                                         const int dims[])
{
    return tensor_set(filter_get(descriptor), type, format, count, dims, NULL);
}

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t descriptor,
                                         cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k,
                                         int c, int h, int w)
{
    return tensor_set(filter_get(descriptor), type, format, 4,
                      (const int[]){k, c, h, w}, NULL);
}

cudnnStatus_t cudnnGetFilterNdDescriptor(const cudnnFilterDescriptor_t handle,
                                         int requested, cudnnDataType_t *type,
                                         cudnnTensorFormat_t *format,
                                         int *count, int dims[])
{
    const struct tensor *filter = filter_get(handle);

    if (!filter)
        return CUDNN_STATUS_BAD_PARAM;
    if (type)
        *type = filter->shape.type;
    if (format)
        *format = filter->format;
    if (count)
        *count = filter->shape.count;
    numbers_get(filter->shape.dims, filter->shape.count, requested, dims);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetFilterSizeInBytes(const cudnnFilterDescriptor_t handle,
                                        size_t *bytes)
{
    const struct tensor *filter = filter_get(handle);

    if (!filter || !bytes)
        return CUDNN_STATUS_BAD_PARAM;
    *bytes = shape_bytes(&filter->shape);
    return CUDNN_STATUS_SUCCESS;
}
