/* SPDX-License-Identifier: Apache-2.0
 * CTC loss. */
#include "capture/cudnn/tensor.h"

/* The data that the program passes is of no use to a fake. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

struct ctc {
    uint32_t class; /* CLASS_CTC */
    cudnnDataType_t type;
    int labels; /* at most, in a sequence; 0 where it was not said */
};

cudnnStatus_t cudnnCreateCTCLossDescriptor(cudnnCTCLossDescriptor_t *handle)
{
    return cudnn_object_create(CLASS_CTC, sizeof(struct ctc), handle);
}

cudnnStatus_t cudnnDestroyCTCLossDescriptor(cudnnCTCLossDescriptor_t handle)
{
    return cudnn_object_destroy(CLASS_CTC, handle);
}

static cudnnStatus_t ctc_set(cudnnCTCLossDescriptor_t handle,
                             cudnnDataType_t type, int labels)
{
    struct ctc *ctc = cudnn_object_get(CLASS_CTC, handle);

    if (!ctc || labels < 0 || !cudnn_type_bytes(type))
        return CUDNN_STATUS_BAD_PARAM;
    ctc->type = type;
    ctc->labels = labels;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetCTCLossDescriptor(cudnnCTCLossDescriptor_t handle,
                                        cudnnDataType_t type)
{
    return ctc_set(handle, type, 0);
}

cudnnStatus_t cudnnSetCTCLossDescriptorEx(cudnnCTCLossDescriptor_t handle,
                                          cudnnDataType_t type,
                                          cudnnLossNormalizationMode_t mode,
                                          cudnnNanPropagation_t gradient)
{
    return ctc_set(handle, type, 0);
}

cudnnStatus_t cudnnSetCTCLossDescriptor_v8(cudnnCTCLossDescriptor_t handle,
                                           cudnnDataType_t type,
                                           cudnnLossNormalizationMode_t mode,
                                           cudnnNanPropagation_t gradient,
                                           int labels)
{
    return ctc_set(handle, type, labels);
}

cudnnStatus_t cudnnSetCTCLossDescriptor_v9(cudnnCTCLossDescriptor_t handle,
                                           cudnnDataType_t type,
                                           cudnnLossNormalizationMode_t mode,
                                           cudnnCTCGradMode_t gradient,
                                           int labels)
{
    return ctc_set(handle, type, labels);
}

/* A model, without a measured size: the forward and the backward variables of
 * the CTC recursion, each of 2 labels + 1 states for every step and sequence.
 * A descriptor of the older kind does not know the labels, but LENGTHS does. */
static cudnnStatus_t workspace_get(cudnnHandle_t handle,
                                   cudnnCTCLossDescriptor_t descriptor,
                                   cudnnTensorDescriptor_t probabilities,
                                   const int *lengths, size_t *bytes)
{
    const struct ctc *ctc = cudnn_object_get(CLASS_CTC, descriptor);
    const struct shape p = tensor_shape(probabilities);

    if (!cudnn_get(handle) || !ctc || p.count != 3 || !bytes)
        return CUDNN_STATUS_BAD_PARAM;
    int longest = ctc->labels;
    for (int64_t i = 0; lengths && i < p.dims[1]; i++)
        if (lengths[i] > longest)
            longest = lengths[i];
    *bytes = 2 * (size_t)(p.dims[0] * p.dims[1]) * (2 * (size_t)longest + 1) *
             sizeof(float);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetCTCLossWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t probabilities,
    const cudnnTensorDescriptor_t gradients, const int *labels,
    const int *label_lengths, const int *input_lengths,
    cudnnCTCLossAlgo_t algorithm, cudnnCTCLossDescriptor_t descriptor,
    size_t *bytes)
{
    return workspace_get(handle, descriptor, probabilities, label_lengths,
                         bytes);
}

/* Labels and lengths are on the device here. */
cudnnStatus_t cudnnGetCTCLossWorkspaceSize_v8(
    cudnnHandle_t handle, cudnnCTCLossAlgo_t algorithm,
    cudnnCTCLossDescriptor_t descriptor,
    const cudnnTensorDescriptor_t probabilities,
    const cudnnTensorDescriptor_t gradients, size_t *bytes)
{
    return workspace_get(handle, descriptor, probabilities, NULL, bytes);
}

/* Values of the record: steps, batch, alphabet, whether gradients are asked. */
static cudnnStatus_t ctc_record(cudnnHandle_t handle,
                                cudnnCTCLossDescriptor_t descriptor,
                                cudnnTensorDescriptor_t probabilities,
                                const void *gradients, size_t workspace_bytes)
{
    const struct cudnn *cudnn = cudnn_get(handle);
    const struct shape p = tensor_shape(probabilities);

    if (!cudnn || !cudnn_object_get(CLASS_CTC, descriptor) || p.count != 3)
        return CUDNN_STATUS_BAD_PARAM;
    struct cudnn_call call = {
        .name = NAME_OF("ctc loss"),
        .workspace_bytes = workspace_bytes,
        .values = {(uint64_t)p.dims[0], (uint64_t)p.dims[1],
                   (uint64_t)p.dims[2], gradients != NULL},
    };
    shape_describe(&call.detail, "p", &p);
    cudnn_call_record(cudnn, &call);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCTCLoss(cudnnHandle_t handle,
                           const cudnnTensorDescriptor_t probabilities,
                           const void *data, const int labels[],
                           const int label_lengths[], const int input_lengths[],
                           void *costs,
                           const cudnnTensorDescriptor_t gradients_descriptor,
                           void *gradients, cudnnCTCLossAlgo_t algorithm,
                           cudnnCTCLossDescriptor_t descriptor, void *workspace,
                           size_t workspace_bytes)
{
    return ctc_record(handle, descriptor, probabilities, gradients,
                      workspace_bytes);
}

cudnnStatus_t
cudnnCTCLoss_v8(cudnnHandle_t handle, cudnnCTCLossAlgo_t algorithm,
                cudnnCTCLossDescriptor_t descriptor,
                const cudnnTensorDescriptor_t probabilities, const void *data,
                const int labels[], const int label_lengths[],
                const int input_lengths[], void *costs,
                const cudnnTensorDescriptor_t gradients_descriptor,
                void *gradients, size_t workspace_bytes, void *workspace)
{
    return ctc_record(handle, descriptor, probabilities, gradients,
                      workspace_bytes);
}
