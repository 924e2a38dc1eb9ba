/* SPDX-License-Identifier: Apache-2.0
 * Batch normalization by the classic API, which is how torch does it. */
#include "capture/core/work/library_call.h"
#include "capture/cudnn/calls.h"

/* The data that the program passes is of no use to a fake. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* Workspace and reserve space of plain batch normalization. No measurement of
 * them is known; a fused activation's mask, one bit an element in whole words,
 * is the only content that the reference mentions for the reserve space. */
static size_t reserve_bytes(cudnnBatchNormOps_t ops, const struct shape *x)
{
    return ops == CUDNN_BATCHNORM_OPS_BN
               ? 0
               : (shape_elements(x) + 31) / 32 * sizeof(uint32_t);
}

cudnnStatus_t
cudnnDeriveBNTensorDescriptor(cudnnTensorDescriptor_t derived,
                              const cudnnTensorDescriptor_t descriptor,
                              cudnnBatchNormMode_t mode)
{
    const struct shape x = tensor_shape(descriptor);
    int dims[CUDNN_DIM_MAX];

    if (x.count < 2)
        return CUDNN_STATUS_BAD_PARAM;
    for (int i = 0; i < x.count; i++)
        dims[i] = i == 1 || (mode == CUDNN_BATCHNORM_PER_ACTIVATION && i)
                      ? (int)x.dims[i]
                      : 1;
    return tensor_fill(derived,
                       x.type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE
                                                   : CUDNN_DATA_FLOAT,
                       x.count, dims);
}

cudnnStatus_t cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops,
    const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t z,
    const cudnnTensorDescriptor_t y, const cudnnTensorDescriptor_t scale,
    const cudnnActivationDescriptor_t activation, size_t *bytes)
{
    if (!cudnn_get(handle) || !tensor_shape(x).count || !bytes)
        return CUDNN_STATUS_BAD_PARAM;
    *bytes = 0;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetBatchNormalizationBackwardExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops,
    const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t y,
    const cudnnTensorDescriptor_t dy, const cudnnTensorDescriptor_t dz,
    const cudnnTensorDescriptor_t dx, const cudnnTensorDescriptor_t scale,
    const cudnnActivationDescriptor_t activation, size_t *bytes)
{
    return cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
        handle, mode, ops, x, dz, y, scale, activation, bytes);
}

cudnnStatus_t cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops,
    const cudnnActivationDescriptor_t activation,
    const cudnnTensorDescriptor_t descriptor, size_t *bytes)
{
    const struct shape x = tensor_shape(descriptor);

    if (!cudnn_get(handle) || !x.count || !bytes)
        return CUDNN_STATUS_BAD_PARAM;
    *bytes = reserve_bytes(ops, &x);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t norm_record(cudnnHandle_t handle, enum norm_kind kind,
                                 cudnnTensorDescriptor_t descriptor,
                                 unsigned mode, unsigned ops,
                                 size_t workspace_bytes)
{
    const struct cudnn *cudnn = cudnn_get(handle);
    const struct shape x = tensor_shape(descriptor);
    struct cudnn_call call = {.workspace_bytes = workspace_bytes};

    if (!cudnn || !x.count)
        return CUDNN_STATUS_BAD_PARAM;
    norm_call_fill(&call, kind, &x, mode, ops);
    cudnn_call_record(cudnn, &call);
    return CUDNN_STATUS_SUCCESS;
}

/* The running statistics, of a number or two for each channel, are in place of
 * what the program knows. */
static void statistics_forget(cudnnHandle_t handle,
                              const cudnnTensorDescriptor_t scale,
                              const void *mean, const void *variance)
{
    const struct cudnn *cudnn = cudnn_get(handle);
    const struct shape shape = tensor_shape(scale);

    if (!cudnn || !shape.count)
        return;
    memsim_call_writes(cudnn->stream, (uint64_t)mean, shape_bytes(&shape), 1,
                       0);
    memsim_call_writes(cudnn->stream, (uint64_t)variance, shape_bytes(&shape),
                       1, 0);
}

cudnnStatus_t cudnnBatchNormalizationForwardInference(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void *alpha,
    const void *beta, const cudnnTensorDescriptor_t x, const void *x_data,
    const cudnnTensorDescriptor_t y, void *y_data,
    const cudnnTensorDescriptor_t scale, const void *scale_data,
    const void *bias_data, const void *mean, const void *variance,
    double epsilon)
{
    return norm_record(handle, NORM_INFERENCE, x, mode, 0,
                       0);
}

cudnnStatus_t cudnnBatchNormalizationForwardTraining(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void *alpha,
    const void *beta, const cudnnTensorDescriptor_t x, const void *x_data,
    const cudnnTensorDescriptor_t y, void *y_data,
    const cudnnTensorDescriptor_t scale, const void *scale_data,
    const void *bias_data, double factor, void *running_mean,
    void *running_variance, double epsilon, void *mean, void *variance)
{
    statistics_forget(handle, scale, running_mean, running_variance);
    return norm_record(handle, NORM_TRAINING, x, mode, 0,
                       0);
}

cudnnStatus_t cudnnBatchNormalizationForwardTrainingEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops,
    const void *alpha, const void *beta, const cudnnTensorDescriptor_t x,
    const void *x_data, const cudnnTensorDescriptor_t z, const void *z_data,
    const cudnnTensorDescriptor_t y, void *y_data,
    const cudnnTensorDescriptor_t scale, const void *scale_data,
    const void *bias_data, double factor, void *running_mean,
    void *running_variance, double epsilon, void *mean, void *variance,
    cudnnActivationDescriptor_t activation, void *workspace,
    size_t workspace_bytes, void *reserve, size_t reserve_space_bytes)
{
    statistics_forget(handle, scale, running_mean, running_variance);
    return norm_record(handle, NORM_TRAINING, x, mode, ops,
                       workspace_bytes);
}

cudnnStatus_t cudnnBatchNormalizationBackward(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void *alpha,
    const void *beta, const void *alpha_parameters, const void *beta_parameters,
    const cudnnTensorDescriptor_t x, const void *x_data,
    const cudnnTensorDescriptor_t dy, const void *dy_data,
    const cudnnTensorDescriptor_t dx, void *dx_data,
    const cudnnTensorDescriptor_t scale, const void *scale_data,
    void *scale_gradient, void *bias_gradient, double epsilon, const void *mean,
    const void *variance)
{
    return norm_record(handle, NORM_BACKWARD, x, mode, 0,
                       0);
}

cudnnStatus_t cudnnBatchNormalizationBackwardEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops,
    const void *alpha, const void *beta, const void *alpha_parameters,
    const void *beta_parameters, const cudnnTensorDescriptor_t x,
    const void *x_data, const cudnnTensorDescriptor_t y, const void *y_data,
    const cudnnTensorDescriptor_t dy, const void *dy_data,
    const cudnnTensorDescriptor_t dz, void *dz_data,
    const cudnnTensorDescriptor_t dx, void *dx_data,
    const cudnnTensorDescriptor_t scale, const void *scale_data,
    const void *bias_data, void *scale_gradient, void *bias_gradient,
    double epsilon, const void *mean, const void *variance,
    cudnnActivationDescriptor_t activation, void *workspace,
    size_t workspace_bytes, void *reserve, size_t reserve_space_bytes)
{
    return norm_record(handle, NORM_BACKWARD, x, mode, ops,
                       workspace_bytes);
}
