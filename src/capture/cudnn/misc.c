/* SPDX-License-Identifier: Apache-2.0
 * The smaller operations that torch calls: activation descriptors, pooling
 * (quantized tensors), the spatial transformer (affine_grid, grid_sample). */
#include "capture/cudnn/tensor.h"

/* The data that the program passes is of no use to a fake. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

struct activation {
    uint32_t class; /* CLASS_ACTIVATION */
    cudnnActivationMode_t mode;
    cudnnNanPropagation_t nan;
    double coefficient;
};

cudnnStatus_t
cudnnCreateActivationDescriptor(cudnnActivationDescriptor_t *handle)
{
    return cudnn_object_create(CLASS_ACTIVATION, sizeof(struct activation),
                               handle);
}

cudnnStatus_t
cudnnDestroyActivationDescriptor(cudnnActivationDescriptor_t handle)
{
    return cudnn_object_destroy(CLASS_ACTIVATION, handle);
}

cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t handle,
                                           cudnnActivationMode_t mode,
                                           cudnnNanPropagation_t nan,
                                           double coefficient)
{
    struct activation *a = cudnn_object_get(CLASS_ACTIVATION, handle);

    if (!a || (unsigned)mode > CUDNN_ACTIVATION_SWISH)
        return CUDNN_STATUS_BAD_PARAM;
    a->mode = mode;
    a->nan = nan;
    a->coefficient = coefficient;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnGetActivationDescriptor(const cudnnActivationDescriptor_t handle,
                             cudnnActivationMode_t *mode,
                             cudnnNanPropagation_t *nan, double *coefficient)
{
    const struct activation *a = cudnn_object_get(CLASS_ACTIVATION, handle);

    if (!a || !mode || !nan || !coefficient)
        return CUDNN_STATUS_BAD_PARAM;
    *mode = a->mode;
    *nan = a->nan;
    *coefficient = a->coefficient;
    return CUDNN_STATUS_SUCCESS;
}

struct pooling {
    uint32_t class; /* CLASS_POOLING */
    cudnnPoolingMode_t mode;
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
                                .window = {window_h, window_w},
                                .pad = {pad_h, pad_w},
                                .stride = {stride_h, stride_w}};
    return CUDNN_STATUS_SUCCESS;
}

/* Values of a pass over memory: bytes read, bytes written. */
static cudnnStatus_t pass_record(cudnnHandle_t handle, uint32_t name,
                                 uint64_t read_bytes, uint64_t written_bytes,
                                 struct text *detail)
{
    const struct cudnn *cudnn = cudnn_get(handle);
    struct cudnn_call call = {
        .name = name, .values = {read_bytes, written_bytes}, .detail = *detail};

    if (!cudnn)
        return CUDNN_STATUS_BAD_PARAM;
    cudnn_call_record(cudnn, &call);
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
    struct text detail = {0};

    if (!pooling || !x.count || !y.count)
        return CUDNN_STATUS_BAD_PARAM;
    shape_describe(&detail, "x", &x);
    shape_describe(&detail, "y", &y);
    text_add_numbers(&detail, "window", pooling->window, 2);
    return pass_record(handle, NAME_OF("pooling forward"), shape_bytes(&x),
                       shape_bytes(&y), &detail);
}

struct transformer {
    uint32_t class; /* CLASS_TRANSFORMER */
    struct shape output;
};

cudnnStatus_t cudnnCreateSpatialTransformerDescriptor(
    cudnnSpatialTransformerDescriptor_t *handle)
{
    return cudnn_object_create(CLASS_TRANSFORMER, sizeof(struct transformer),
                               handle);
}

cudnnStatus_t cudnnDestroySpatialTransformerDescriptor(
    cudnnSpatialTransformerDescriptor_t handle)
{
    return cudnn_object_destroy(CLASS_TRANSFORMER, handle);
}

static struct transformer *
transformer_get(cudnnSpatialTransformerDescriptor_t handle)
{
    return cudnn_object_get(CLASS_TRANSFORMER, handle);
}

cudnnStatus_t cudnnSetSpatialTransformerNdDescriptor(
    cudnnSpatialTransformerDescriptor_t handle, cudnnSamplerType_t sampler,
    cudnnDataType_t type, const int count, const int dims[])
{
    struct transformer *transformer = transformer_get(handle);

    if (!transformer || !dims || count < 1 || count > CUDNN_DIM_MAX ||
        !cudnn_type_bytes(type))
        return CUDNN_STATUS_BAD_PARAM;
    shape_fill(&transformer->output, type, CUDNN_TENSOR_NCHW, count, dims);
    return CUDNN_STATUS_SUCCESS;
}

/* A grid has two coordinates for each point of each image. */
static uint64_t grid_bytes(const struct shape *output)
{
    uint64_t points =
        output->count == 4
            ? (uint64_t)(output->dims[0] * output->dims[2] * output->dims[3])
            : 0;

    return 2 * points * cudnn_type_bytes(output->type);
}

static cudnnStatus_t grid_record(cudnnHandle_t handle, uint32_t name,
                                 cudnnSpatialTransformerDescriptor_t descriptor,
                                 bool backward)
{
    const struct transformer *transformer = transformer_get(descriptor);
    struct text detail = {0};

    if (!transformer || !transformer->output.count)
        return CUDNN_STATUS_BAD_PARAM;
    uint64_t bytes = grid_bytes(&transformer->output);
    shape_describe(&detail, "y", &transformer->output);
    return pass_record(handle, name, backward ? bytes : 0, backward ? 0 : bytes,
                       &detail);
}

cudnnStatus_t cudnnSpatialTfGridGeneratorForward(
    cudnnHandle_t handle, const cudnnSpatialTransformerDescriptor_t descriptor,
    const void *theta, void *grid)
{
    return grid_record(handle, NAME_OF("grid forward"), descriptor, false);
}

cudnnStatus_t cudnnSpatialTfGridGeneratorBackward(
    cudnnHandle_t handle, const cudnnSpatialTransformerDescriptor_t descriptor,
    const void *grid, void *theta)
{
    return grid_record(handle, NAME_OF("grid backward"), descriptor, true);
}

static cudnnStatus_t
sampler_record(cudnnHandle_t handle, uint32_t name,
               cudnnSpatialTransformerDescriptor_t descriptor,
               cudnnTensorDescriptor_t x_descriptor,
               cudnnTensorDescriptor_t y_descriptor, bool backward)
{
    const struct transformer *transformer = transformer_get(descriptor);
    const struct shape x = tensor_shape(x_descriptor);
    const struct shape y = tensor_shape(y_descriptor);
    struct text detail = {0};

    if (!transformer || !x.count || !y.count)
        return CUDNN_STATUS_BAD_PARAM;
    uint64_t grid = grid_bytes(&transformer->output);
    shape_describe(&detail, "x", &x);
    shape_describe(&detail, "y", &y);
    return pass_record(
        handle, name, shape_bytes(&x) + grid + (backward ? shape_bytes(&y) : 0),
        backward ? shape_bytes(&x) + grid : shape_bytes(&y), &detail);
}

cudnnStatus_t cudnnSpatialTfSamplerForward(
    cudnnHandle_t handle, cudnnSpatialTransformerDescriptor_t descriptor,
    const void *alpha, const cudnnTensorDescriptor_t x, const void *x_data,
    const void *grid, const void *beta, cudnnTensorDescriptor_t y, void *y_data)
{
    return sampler_record(handle, NAME_OF("sampler forward"), descriptor, x, y,
                          false);
}

cudnnStatus_t cudnnSpatialTfSamplerBackward(
    cudnnHandle_t handle, cudnnSpatialTransformerDescriptor_t descriptor,
    const void *alpha, const cudnnTensorDescriptor_t x, const void *x_data,
    const void *beta, const cudnnTensorDescriptor_t dx, void *dx_data,
    const void *alpha_grid, const cudnnTensorDescriptor_t dy,
    const void *dy_data, const void *grid, const void *beta_grid,
    void *grid_gradient)
{
    return sampler_record(handle, NAME_OF("sampler backward"), descriptor, x,
                          dy, true);
}
