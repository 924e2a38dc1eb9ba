/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/cudnn/rnn.h"

struct rnn *rnn_get(cudnnRNNDescriptor_t handle)
{
    return cudnn_object_get(CLASS_RNN, handle);
}

struct rnn_data *rnn_data_get(cudnnRNNDataDescriptor_t handle)
{
    return cudnn_object_get(CLASS_RNN_DATA, handle);
}

cudnnStatus_t cudnnCreateRNNDescriptor(cudnnRNNDescriptor_t *handle)
{
    return cudnn_object_create(CLASS_RNN, sizeof(struct rnn), handle);
}

cudnnStatus_t cudnnDestroyRNNDescriptor(cudnnRNNDescriptor_t handle)
{
    return cudnn_object_destroy(CLASS_RNN, handle);
}

cudnnStatus_t cudnnCreateRNNDataDescriptor(cudnnRNNDataDescriptor_t *handle)
{
    return cudnn_object_create(CLASS_RNN_DATA, sizeof(struct rnn_data), handle);
}

cudnnStatus_t cudnnDestroyRNNDataDescriptor(cudnnRNNDataDescriptor_t handle)
{
    return cudnn_object_destroy(CLASS_RNN_DATA, handle);
}

/* projSize equals hiddenSize where there is no projection, or is 0. */
cudnnStatus_t cudnnSetRNNDescriptor_v8(
    cudnnRNNDescriptor_t handle, cudnnRNNAlgo_t algorithm, cudnnRNNMode_t mode,
    cudnnRNNBiasMode_t bias, cudnnDirectionMode_t direction,
    cudnnRNNInputMode_t input_mode, cudnnDataType_t type,
    cudnnDataType_t compute, cudnnMathType_t math, int32_t input,
    int32_t hidden, int32_t projection, int32_t layers,
    cudnnDropoutDescriptor_t dropout, uint32_t flags)
{
    struct rnn *rnn = rnn_get(handle);

    if (!rnn || (unsigned)mode > CUDNN_GRU || input < 0 || hidden < 1 ||
        layers < 1 || projection < 0 || projection > hidden ||
        !cudnn_type_bytes(type))
        return CUDNN_STATUS_BAD_PARAM;
    *rnn = (struct rnn){
        .class = CLASS_RNN,
        .algorithm = algorithm,
        .mode = mode,
        .bias = bias,
        .direction = direction,
        .input_mode = input_mode,
        .type = type,
        .compute = compute,
        .math = math,
        .input = input,
        .hidden = hidden,
        .projection = projection,
        .layers = layers,
        .dropout = dropout,
        .flags = flags,
    };
    return CUDNN_STATUS_SUCCESS;
}

#define TELL(pointer, value)                                                   \
    do {                                                                       \
        if (pointer)                                                           \
            *(pointer) = (value);                                              \
    } while (0)

cudnnStatus_t cudnnGetRNNDescriptor_v8(
    cudnnRNNDescriptor_t handle, cudnnRNNAlgo_t *algorithm,
    cudnnRNNMode_t *mode, cudnnRNNBiasMode_t *bias,
    cudnnDirectionMode_t *direction, cudnnRNNInputMode_t *input_mode,
    cudnnDataType_t *type, cudnnDataType_t *compute, cudnnMathType_t *math,
    int32_t *input, int32_t *hidden, int32_t *projection, int32_t *layers,
    cudnnDropoutDescriptor_t *dropout, uint32_t *flags)
{
    const struct rnn *rnn = rnn_get(handle);

    if (!rnn)
        return CUDNN_STATUS_BAD_PARAM;
    TELL(algorithm, rnn->algorithm);
    TELL(mode, rnn->mode);
    TELL(bias, rnn->bias);
    TELL(direction, rnn->direction);
    TELL(input_mode, rnn->input_mode);
    TELL(type, rnn->type);
    TELL(compute, rnn->compute);
    TELL(math, rnn->math);
    TELL(input, rnn->input);
    TELL(hidden, rnn->hidden);
    TELL(projection, rnn->projection);
    TELL(layers, rnn->layers);
    TELL(dropout, rnn->dropout);
    TELL(flags, rnn->flags);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t handle,
                                        cudnnDataType_t type,
                                        cudnnRNNDataLayout_t layout, int length,
                                        int batch, int vector,
                                        const int lengths[], void *fill)
{
    struct rnn_data *data = rnn_data_get(handle);

    (void)fill;
    if (!data || !lengths || length < 1 || batch < 1 || vector < 1 ||
        !cudnn_type_bytes(type))
        return CUDNN_STATUS_BAD_PARAM;
    data->type = type;
    data->layout = layout;
    data->length = length;
    data->batch = batch;
    data->vector = vector;
    data->tokens = 0;
    for (int i = 0; i < batch; i++)
        data->tokens += lengths[i];
    return CUDNN_STATUS_SUCCESS;
}
