/* SPDX-License-Identifier: Apache-2.0
 * The spatial transformer: affine_grid and grid_sample. */
#include "capture/cudnn/tensor.h"

/* The data that the program passes is of no use to a fake. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

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
    uint64_t grid = grid_bytes(&transformer->output);
    const uint64_t bytes[] = {backward ? grid : 0, backward ? 0 : grid};
    shape_describe(&detail, "y", &transformer->output);
    return cudnn_pass_record(handle, name, bytes, &detail);
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
    uint64_t inputs = shape_bytes(&x) + grid_bytes(&transformer->output);
    uint64_t output = shape_bytes(&y);
    const uint64_t bytes[] = {backward ? inputs + output : inputs,
                              backward ? inputs : output};
    shape_describe(&detail, "x", &x);
    shape_describe(&detail, "y", &y);
    return cudnn_pass_record(handle, name, bytes, &detail);
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
