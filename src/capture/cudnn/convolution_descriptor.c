/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/cudnn/convolution_descriptor.h"

struct convolution_descriptor *
convolution_descriptor_get(cudnnConvolutionDescriptor_t handle)
{
    return cudnn_object_get(CLASS_CONVOLUTION, handle);
}

cudnnStatus_t
cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t *handle)
{
    cudnnStatus_t status = cudnn_object_create(
        CLASS_CONVOLUTION, sizeof(struct convolution_descriptor), handle);

    if (!status)
        convolution_descriptor_get(*handle)->groups = 1;
    return status;
}

cudnnStatus_t
cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t handle)
{
    return cudnn_object_destroy(CLASS_CONVOLUTION, handle);
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t handle,
                                          cudnnMathType_t math)
{
    struct convolution_descriptor *d = convolution_descriptor_get(handle);

    if (!d || (unsigned)math > CUDNN_FMA_MATH)
        return CUDNN_STATUS_BAD_PARAM;
    d->math = math;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionMathType(cudnnConvolutionDescriptor_t handle,
                                          cudnnMathType_t *math)
{
    struct convolution_descriptor *d = convolution_descriptor_get(handle);

    if (!d || !math)
        return CUDNN_STATUS_BAD_PARAM;
    *math = d->math;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t handle,
                                            int groups)
{
    struct convolution_descriptor *d = convolution_descriptor_get(handle);

    if (!d || groups < 1)
        return CUDNN_STATUS_BAD_PARAM;
    d->groups = groups;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionGroupCount(cudnnConvolutionDescriptor_t handle,
                                            int *groups)
{
    struct convolution_descriptor *d = convolution_descriptor_get(handle);

    if (!d || !groups)
        return CUDNN_STATUS_BAD_PARAM;
    *groups = d->groups;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionNdDescriptor(
    cudnnConvolutionDescriptor_t handle, int count, const int pad[],
    const int stride[], const int dilation[], cudnnConvolutionMode_t mode,
    cudnnDataType_t compute)
{
    struct convolution_descriptor *d = convolution_descriptor_get(handle);

    if (!d || !pad || !stride || !dilation || count < 1 ||
        count > CUDNN_DIM_MAX - 2)
        return CUDNN_STATUS_BAD_PARAM;
    for (int i = 0; i < count; i++) {
        if (pad[i] < 0 || stride[i] < 1 || dilation[i] < 1)
            return CUDNN_STATUS_BAD_PARAM;
        d->pad[i] = pad[i];
        d->stride[i] = stride[i];
        d->dilation[i] = dilation[i];
    }
    d->spatial_dims = count;
    d->mode = mode;
    d->compute = compute;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionNdDescriptor(
    const cudnnConvolutionDescriptor_t handle, int requested, int *count,
    int pad[], int stride[], int dilation[], cudnnConvolutionMode_t *mode,
    cudnnDataType_t *compute)
{
    const struct convolution_descriptor *d = convolution_descriptor_get(handle);

    if (!d || requested < 0 || !count || !mode || !compute ||
        (requested && (!pad || !stride || !dilation)))
        return CUDNN_STATUS_BAD_PARAM;
    for (int i = 0; i < d->spatial_dims && i < requested; i++) {
        pad[i] = (int)d->pad[i];
        stride[i] = (int)d->stride[i];
        dilation[i] = (int)d->dilation[i];
    }
    *count = d->spatial_dims;
    *mode = d->mode;
    *compute = d->compute;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolution2dDescriptor(
    cudnnConvolutionDescriptor_t handle, int pad_h, int pad_w, int stride_h,
    int stride_w, int dilation_h, int dilation_w, cudnnConvolutionMode_t mode,
    cudnnDataType_t compute)
{
    return cudnnSetConvolutionNdDescriptor(
        handle, 2, (const int[]){pad_h, pad_w},
        (const int[]){stride_h, stride_w},
        (const int[]){dilation_h, dilation_w}, mode, compute);
}

/* floor((input + 2 pad - ((filter - 1) dilation + 1)) / stride) + 1, as the
 * API's reference has it. */
cudnnStatus_t
cudnnGetConvolutionNdForwardOutputDim(const cudnnConvolutionDescriptor_t handle,
                                      const cudnnTensorDescriptor_t input,
                                      const cudnnFilterDescriptor_t filter,
                                      int count, int dims[])
{
    const struct convolution_descriptor *d = convolution_descriptor_get(handle);
    const struct shape x = tensor_shape(input), w = filter_shape(filter);

    if (!d || !dims || x.count != count || w.count != count ||
        d->spatial_dims != count - 2)
        return CUDNN_STATUS_BAD_PARAM;
    dims[0] = (int)x.dims[0];
    dims[1] = (int)w.dims[0];
    for (int i = 2; i < count; i++) {
        int64_t reach = (w.dims[i] - 1) * d->dilation[i - 2] + 1;

        dims[i] =
            (int)((x.dims[i] + 2 * d->pad[i - 2] - reach) / d->stride[i - 2] +
                  1);
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnGetConvolution2dForwardOutputDim(const cudnnConvolutionDescriptor_t handle,
                                      const cudnnTensorDescriptor_t input,
                                      const cudnnFilterDescriptor_t filter,
                                      int *n, int *c, int *h, int *w)
{
    int dims[4];
    cudnnStatus_t status =
        cudnnGetConvolutionNdForwardOutputDim(handle, input, filter, 4, dims);

    if (status)
        return status;
    *n = dims[0];
    *c = dims[1];
    *h = dims[2];
    *w = dims[3];
    return CUDNN_STATUS_SUCCESS;
}
