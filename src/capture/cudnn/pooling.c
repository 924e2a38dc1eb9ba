/* SPDX-License-Identifier: Apache-2.0
 * Pooling, which torch does by cuDNN for quantized tensors only. */
#include "capture/cudnn/calls.h"

/* The data that the program passes is of no use to a fake. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

struct pooling {
    uint32_t class; /* CLASS_POOLING */
    cudnnPoolingMode_t mode;
    cudnnNanPropagation_t nan;
    int64_t window[2], pad[2], stride[2];
};

cudnnStatus_t cudnnCreatePoolingDescriptor(cudnnPoolingDescriptor_t *handle)
{
    return cudnn_object_create(CLASS_POOLING, sizeof(struct pooling), handle);
}

cudnnStatus_t cudnnDestroyPoolingDescriptor(cudnnPoolingDescriptor_t handle)
{
    return cudnn_object_destroy(CLASS_POOLING, handle);
}

cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t handle,
                                          cudnnPoolingMode_t mode,
                                          cudnnNanPropagation_t nan,
                                          int window_h, int window_w, int pad_h,
                                          int pad_w, int stride_h, int stride_w)
{
    struct pooling *pooling = cudnn_object_get(CLASS_POOLING, handle);

    if (!pooling || window_h < 1 || window_w < 1 || stride_h < 1 ||
        stride_w < 1)
        return CUDNN_STATUS_BAD_PARAM;
    *pooling = (struct pooling){.class = CLASS_POOLING,
                                .mode = mode,
                                .nan = nan,
                                .window = {window_h, window_w},
                                .pad = {pad_h, pad_w},
                                .stride = {stride_h, stride_w}};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetPooling2dDescriptor(
    const cudnnPoolingDescriptor_t handle, cudnnPoolingMode_t *mode,
    cudnnNanPropagation_t *nan, int *window_h, int *window_w, int *pad_h,
    int *pad_w, int *stride_h, int *stride_w)
{
    const struct pooling *pooling = cudnn_object_get(CLASS_POOLING, handle);

    if (!pooling || !mode || !nan || !window_h || !window_w || !pad_h ||
        !pad_w || !stride_h || !stride_w)
        return CUDNN_STATUS_BAD_PARAM;
    *mode = pooling->mode;
    *nan = pooling->nan;
    *window_h = (int)pooling->window[0];
    *window_w = (int)pooling->window[1];
    *pad_h = (int)pooling->pad[0];
    *pad_w = (int)pooling->pad[1];
    *stride_h = (int)pooling->stride[0];
    *stride_w = (int)pooling->stride[1];
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnPoolingForward(cudnnHandle_t handle,
                                  const cudnnPoolingDescriptor_t descriptor,
                                  const void *alpha,
                                  const cudnnTensorDescriptor_t x_descriptor,
                                  const void *x_data, const void *beta,
                                  const cudnnTensorDescriptor_t y_descriptor,
                                  void *y_data)
{
    const struct pooling *pooling = cudnn_object_get(CLASS_POOLING, descriptor);
    const struct shape x = tensor_shape(x_descriptor);
    const struct shape y = tensor_shape(y_descriptor);
    const struct cudnn *cudnn = cudnn_get(handle);
    struct cudnn_call call = {.name = 0};

    if (!cudnn || !pooling || !x.count || !y.count)
        return CUDNN_STATUS_BAD_PARAM;
    pooling_call_fill(&call, &x, &y, pooling->window);
    cudnn_call_record(cudnn, &call);
    return CUDNN_STATUS_SUCCESS;
}
