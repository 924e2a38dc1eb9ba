/* SPDX-License-Identifier: Apache-2.0
 * Convolutions by the classic API, which torch uses where the backend API is
 * turned off (TORCH_CUDNN_V8_API_DISABLED). */
#include "capture/cudnn/convolution_descriptor.h"
#include "capture/cudnn/plan.h"

/* The data that the program passes is of no use to a fake. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* fp32 goes through tensor cores unless the descriptor says FMA; the other
 * types do where the GPU has them. */
static enum convolution_engine engine_of(const struct convolution_descriptor *d,
                                         cudnnDataType_t type)
{
    return d->math != CUDNN_FMA_MATH && convolution_has_tensor_core(type)
               ? ENGINE_TENSOR_CORE
               : ENGINE_PLAIN;
}

/* Fills C and returns it; NULL where a descriptor is not live or not set. */
static const struct convolution *
legacy_read(enum convolution_operation operation, cudnnTensorDescriptor_t x,
            cudnnFilterDescriptor_t w, cudnnTensorDescriptor_t y,
            cudnnConvolutionDescriptor_t handle, struct convolution *c)
{
    const struct convolution_descriptor *d = convolution_descriptor_get(handle);

    *c = (struct convolution){.operation = operation,
                              .x = tensor_shape(x),
                              .w = filter_shape(w),
                              .y = tensor_shape(y)};
    if (!d || !d->spatial_dims || !c->x.count || !c->w.count || !c->y.count)
        return NULL;
    c->spatial_dims = d->spatial_dims;
    for (int i = 0; i < d->spatial_dims; i++) {
        c->pad[i] = d->pad[i];
        c->stride[i] = d->stride[i];
        c->dilation[i] = d->dilation[i];
    }
    c->groups = d->groups;
    c->compute = d->compute;
    c->engine = engine_of(d, c->x.type);
    return c;
}

/* The convolution of OPERATION that a function of this file was given. */
#define READ(operation)                                                        \
    legacy_read(CONVOLUTION_##operation, x, w, y, descriptor,                  \
                &(struct convolution){.groups = 0})

/* The one algorithm of an operation. The three kinds of results have the same
 * layout but for the enum's name. */
static cudnnStatus_t algorithm_get(cudnnHandle_t handle,
                                   const struct convolution *c, int algorithm,
                                   int requested, int *returned,
                                   cudnnConvolutionFwdAlgoPerf_t *results)
{
    if (!cudnn_get(handle) || !c || requested < 1 || !returned || !results)
        return CUDNN_STATUS_BAD_PARAM;
    *results = (cudnnConvolutionFwdAlgoPerf_t){
        .algo = (cudnnConvolutionFwdAlgo_t)algorithm,
        .status = CUDNN_STATUS_SUCCESS,
        .memory = convolution_workspace(c).bytes,
        .determinism = CUDNN_DETERMINISTIC,
        .mathType = c->engine == ENGINE_TENSOR_CORE ? CUDNN_TENSOR_OP_MATH
                                                    : CUDNN_FMA_MATH,
    };
    *returned = 1;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t workspace_get(cudnnHandle_t handle,
                                   const struct convolution *c, size_t *bytes)
{
    if (!cudnn_get(handle) || !c || !bytes)
        return CUDNN_STATUS_BAD_PARAM;
    *bytes = convolution_workspace(c).bytes;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t legacy_execute(cudnnHandle_t handle,
                                    const struct convolution *c,
                                    size_t workspace_bytes, const char *fused)
{
    const struct cudnn *cudnn = cudnn_get(handle);
    struct plan plan = {.scratch_bytes = 0};

    if (!cudnn || !c || workspace_bytes < convolution_workspace(c).bytes)
        return CUDNN_STATUS_BAD_PARAM;
    plan.engine = c->engine;
    plan_set_convolution(&plan, c);
    text_add(&plan.detail, "%s", fused);
    plan.workspace_bytes = workspace_bytes;
    plan_record(cudnn, &plan);
    return CUDNN_STATUS_SUCCESS;
}

/* The algorithms that cuDNN documents as deterministic. */
#define FORWARD_ALGORITHM CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM
#define DATA_ALGORITHM    CUDNN_CONVOLUTION_BWD_DATA_ALGO_1
#define FILTER_ALGORITHM  CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
    const cudnnFilterDescriptor_t w,
    const cudnnConvolutionDescriptor_t descriptor,
    const cudnnTensorDescriptor_t y, const int requested, int *returned,
    cudnnConvolutionFwdAlgoPerf_t *results)
{
    return algorithm_get(handle, READ(FORWARD), FORWARD_ALGORITHM, requested,
                         returned, results);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t w,
    const cudnnTensorDescriptor_t y,
    const cudnnConvolutionDescriptor_t descriptor,
    const cudnnTensorDescriptor_t x, const int requested, int *returned,
    cudnnConvolutionBwdDataAlgoPerf_t *results)
{
    return algorithm_get(handle, READ(BACKWARD_DATA), DATA_ALGORITHM, requested,
                         returned, (cudnnConvolutionFwdAlgoPerf_t *)results);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
    const cudnnTensorDescriptor_t y,
    const cudnnConvolutionDescriptor_t descriptor,
    const cudnnFilterDescriptor_t w, const int requested, int *returned,
    cudnnConvolutionBwdFilterAlgoPerf_t *results)
{
    return algorithm_get(handle, READ(BACKWARD_FILTER), FILTER_ALGORITHM,
                         requested, returned,
                         (cudnnConvolutionFwdAlgoPerf_t *)results);
}

/* Finding tries every algorithm in turn; there is one, and it takes no time. */
cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const void *x_data,
    const cudnnFilterDescriptor_t w, const void *w_data,
    const cudnnConvolutionDescriptor_t descriptor,
    const cudnnTensorDescriptor_t y, void *y_data, const int requested,
    int *returned, cudnnConvolutionFwdAlgoPerf_t *results, void *workspace,
    size_t workspace_bytes)
{
    return cudnnGetConvolutionForwardAlgorithm_v7(handle, x, w, descriptor, y,
                                                  requested, returned, results);
}

cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithmEx(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t w, const void *w_data,
    const cudnnTensorDescriptor_t y, const void *y_data,
    const cudnnConvolutionDescriptor_t descriptor,
    const cudnnTensorDescriptor_t x, void *x_data, const int requested,
    int *returned, cudnnConvolutionBwdDataAlgoPerf_t *results, void *workspace,
    size_t workspace_bytes)
{
    return cudnnGetConvolutionBackwardDataAlgorithm_v7(
        handle, w, y, descriptor, x, requested, returned, results);
}

cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithmEx(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const void *x_data,
    const cudnnTensorDescriptor_t y, const void *y_data,
    const cudnnConvolutionDescriptor_t descriptor,
    const cudnnFilterDescriptor_t w, void *w_data, const int requested,
    int *returned, cudnnConvolutionBwdFilterAlgoPerf_t *results,
    void *workspace, size_t workspace_bytes)
{
    return cudnnGetConvolutionBackwardFilterAlgorithm_v7(
        handle, x, y, descriptor, w, requested, returned, results);
}

static cudnnStatus_t count_get(cudnnHandle_t handle, int *count)
{
    if (!cudnn_get(handle) || !count)
        return CUDNN_STATUS_BAD_PARAM;
    *count = 1;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithmMaxCount(cudnnHandle_t handle,
                                                          int *count)
{
    return count_get(handle, count);
}

cudnnStatus_t
cudnnGetConvolutionBackwardDataAlgorithmMaxCount(cudnnHandle_t handle,
                                                 int *count)
{
    return count_get(handle, count);
}

cudnnStatus_t
cudnnGetConvolutionBackwardFilterAlgorithmMaxCount(cudnnHandle_t handle,
                                                   int *count)
{
    return count_get(handle, count);
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
    const cudnnFilterDescriptor_t w,
    const cudnnConvolutionDescriptor_t descriptor,
    const cudnnTensorDescriptor_t y, cudnnConvolutionFwdAlgo_t algorithm,
    size_t *bytes)
{
    return workspace_get(handle, READ(FORWARD), bytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t w,
    const cudnnTensorDescriptor_t y,
    const cudnnConvolutionDescriptor_t descriptor,
    const cudnnTensorDescriptor_t x, cudnnConvolutionBwdDataAlgo_t algorithm,
    size_t *bytes)
{
    return workspace_get(handle, READ(BACKWARD_DATA), bytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
    const cudnnTensorDescriptor_t y,
    const cudnnConvolutionDescriptor_t descriptor,
    const cudnnFilterDescriptor_t w, cudnnConvolutionBwdFilterAlgo_t algorithm,
    size_t *bytes)
{
    return workspace_get(handle, READ(BACKWARD_FILTER), bytes);
}

cudnnStatus_t
cudnnConvolutionForward(cudnnHandle_t handle, const void *alpha,
                        const cudnnTensorDescriptor_t x, const void *x_data,
                        const cudnnFilterDescriptor_t w, const void *w_data,
                        const cudnnConvolutionDescriptor_t descriptor,
                        cudnnConvolutionFwdAlgo_t algorithm, void *workspace,
                        size_t workspace_bytes, const void *beta,
                        const cudnnTensorDescriptor_t y, void *y_data)
{
    return legacy_execute(handle, READ(FORWARD), workspace_bytes, "");
}

cudnnStatus_t cudnnConvolutionBiasActivationForward(
    cudnnHandle_t handle, const void *alpha1, const cudnnTensorDescriptor_t x,
    const void *x_data, const cudnnFilterDescriptor_t w, const void *w_data,
    const cudnnConvolutionDescriptor_t descriptor,
    cudnnConvolutionFwdAlgo_t algorithm, void *workspace,
    size_t workspace_bytes, const void *alpha2, const cudnnTensorDescriptor_t z,
    const void *z_data, const cudnnTensorDescriptor_t bias,
    const void *bias_data, const cudnnActivationDescriptor_t activation,
    const cudnnTensorDescriptor_t y, void *y_data)
{
    return legacy_execute(handle, READ(FORWARD), workspace_bytes,
                          " fused=bias,activation");
}

cudnnStatus_t cudnnConvolutionBackwardData(
    cudnnHandle_t handle, const void *alpha, const cudnnFilterDescriptor_t w,
    const void *w_data, const cudnnTensorDescriptor_t y, const void *y_data,
    const cudnnConvolutionDescriptor_t descriptor,
    cudnnConvolutionBwdDataAlgo_t algorithm, void *workspace,
    size_t workspace_bytes, const void *beta, const cudnnTensorDescriptor_t x,
    void *x_data)
{
    return legacy_execute(handle, READ(BACKWARD_DATA), workspace_bytes, "");
}

cudnnStatus_t cudnnConvolutionBackwardFilter(
    cudnnHandle_t handle, const void *alpha, const cudnnTensorDescriptor_t x,
    const void *x_data, const cudnnTensorDescriptor_t y, const void *y_data,
    const cudnnConvolutionDescriptor_t descriptor,
    cudnnConvolutionBwdFilterAlgo_t algorithm, void *workspace,
    size_t workspace_bytes, const void *beta, const cudnnFilterDescriptor_t w,
    void *w_data)
{
    return legacy_execute(handle, READ(BACKWARD_FILTER), workspace_bytes, "");
}
