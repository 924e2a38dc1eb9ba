/* SPDX-License-Identifier: Apache-2.0
 * Taps of cuDNN's norms, pooling and recurrent networks: records with shapes,
 * as a simulated run has them. Their kernels are parts of the calls. */
#include "capture/cudnn/calls.h"

#include "capture/core/base/lock.h"
#include "capture/core/run/record.h"
#include "capture/real/cudnn.h"

/* CALL was made with HANDLE, as C. */
static void call_tell(const struct real_call *call, cudnnHandle_t handle,
                      const struct cudnn_call *c)
{
    struct cudnn at;

    if (!cudnn_tap_begin(call, handle, &at))
        return;
    cudnn_call_record(&at, c);
    tap_end(at.device, at.stream);
}

/* --- norms ---------------------------------------------------------------- */

static void norm_tell(const struct real_call *call, cudnnHandle_t handle,
                      enum norm_kind kind, cudnnTensorDescriptor_t tensor,
                      unsigned mode, unsigned ops, size_t workspace_bytes)
{
    const struct shape x = cudnn_real_shape(tensor);
    struct cudnn_call c = {.workspace_bytes = workspace_bytes};

    norm_call_fill(&c, kind, &x, mode, ops);
    call_tell(call, handle, &c);
}

cudnnStatus_t cudnnBatchNormalizationForwardInference(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void *alpha,
    const void *beta, const cudnnTensorDescriptor_t x, const void *x_data,
    const cudnnTensorDescriptor_t y, void *y_data,
    const cudnnTensorDescriptor_t scale, const void *scale_data,
    const void *bias_data, const void *mean, const void *variance,
    double epsilon)
{
    REAL_WORK(cudnnBatchNormalizationForwardInference,
              (handle, mode, alpha, beta, x, x_data, y, y_data, scale,
               scale_data, bias_data, mean, variance, epsilon),
              norm_name(NORM_INFERENCE), cudnn_stream(handle),
              norm_tell(&call, handle, NORM_INFERENCE, x, mode, 0, 0));
}

cudnnStatus_t cudnnBatchNormalizationForwardTraining(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void *alpha,
    const void *beta, const cudnnTensorDescriptor_t x, const void *x_data,
    const cudnnTensorDescriptor_t y, void *y_data,
    const cudnnTensorDescriptor_t scale, const void *scale_data,
    const void *bias_data, double factor, void *running_mean,
    void *running_variance, double epsilon, void *mean, void *variance)
{
    REAL_WORK(cudnnBatchNormalizationForwardTraining,
              (handle, mode, alpha, beta, x, x_data, y, y_data, scale,
               scale_data, bias_data, factor, running_mean, running_variance,
               epsilon, mean, variance),
              norm_name(NORM_TRAINING), cudnn_stream(handle),
              norm_tell(&call, handle, NORM_TRAINING, x, mode, 0, 0));
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
    REAL_WORK(cudnnBatchNormalizationForwardTrainingEx,
              (handle, mode, ops, alpha, beta, x, x_data, z, z_data, y, y_data,
               scale, scale_data, bias_data, factor, running_mean,
               running_variance, epsilon, mean, variance, activation, workspace,
               workspace_bytes, reserve, reserve_space_bytes),
              norm_name(NORM_TRAINING), cudnn_stream(handle),
              norm_tell(&call, handle, NORM_TRAINING, x, mode, ops,
                        workspace_bytes));
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
    REAL_WORK(cudnnBatchNormalizationBackward,
              (handle, mode, alpha, beta, alpha_parameters, beta_parameters, x,
               x_data, dy, dy_data, dx, dx_data, scale, scale_data,
               scale_gradient, bias_gradient, epsilon, mean, variance),
              norm_name(NORM_BACKWARD), cudnn_stream(handle),
              norm_tell(&call, handle, NORM_BACKWARD, x, mode, 0, 0));
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
    REAL_WORK(cudnnBatchNormalizationBackwardEx,
              (handle, mode, ops, alpha, beta, alpha_parameters,
               beta_parameters, x, x_data, y, y_data, dy, dy_data, dz, dz_data,
               dx, dx_data, scale, scale_data, bias_data, scale_gradient,
               bias_gradient, epsilon, mean, variance, activation, workspace,
               workspace_bytes, reserve, reserve_space_bytes),
              norm_name(NORM_BACKWARD), cudnn_stream(handle),
              norm_tell(&call, handle, NORM_BACKWARD, x, mode, ops,
                        workspace_bytes));
}

/* --- pooling -------------------------------------------------------------- */

static void pooling_tell(const struct real_call *call, cudnnHandle_t handle,
                         cudnnPoolingDescriptor_t descriptor,
                         cudnnTensorDescriptor_t from,
                         cudnnTensorDescriptor_t to)
{
    const struct shape x = cudnn_real_shape(from), y = cudnn_real_shape(to);
    struct cudnn_call c = {.workspace_bytes = 0};
    cudnnNanPropagation_t nan;
    cudnnPoolingMode_t mode;
    int height = 0, width = 0, pad[2], stride[2];

    REAL_FUNCTION(cudnnGetPooling2dDescriptor)
    (descriptor, &mode, &nan, &height, &width, &pad[0], &pad[1], &stride[0],
     &stride[1]);
    pooling_call_fill(&c, &x, &y, (const int64_t[]){height, width});
    call_tell(call, handle, &c);
}

cudnnStatus_t cudnnPoolingForward(cudnnHandle_t handle,
                                  const cudnnPoolingDescriptor_t descriptor,
                                  const void *alpha,
                                  const cudnnTensorDescriptor_t x,
                                  const void *x_data, const void *beta,
                                  const cudnnTensorDescriptor_t y, void *y_data)
{
    REAL_WORK(cudnnPoolingForward,
              (handle, descriptor, alpha, x, x_data, beta, y, y_data),
              NAME_OF("pooling forward"), cudnn_stream(handle),
              pooling_tell(&call, handle, descriptor, x, y));
}

/* --- recurrent networks --------------------------------------------------- */

#define SEQUENCES 256 /* descriptors of data at a time */

/* What the program has said of each batch of sequences. cuDNN would tell it
 * with the length of each one. */
static struct sequences {
    cudnnRNNDataDescriptor_t handle;
    struct rnn_data data;
} sequences[SEQUENCES];

/* Under LOCK_HANDLE: HANDLE's place; NULL, which no batch has, finds a free
 * one. */
static struct sequences *sequences_find(cudnnRNNDataDescriptor_t handle)
{
    for (int i = 0; i < SEQUENCES; i++)
        if (sequences[i].handle == handle)
            return &sequences[i];
    return NULL;
}

static void sequences_put(cudnnRNNDataDescriptor_t handle,
                          const struct rnn_data *data)
{
    core_lock(LOCK_HANDLE);
    struct sequences *s = sequences_find(handle);
    if (!s)
        s = sequences_find(NULL);
    if (s)
        *s = (struct sequences){.handle = handle, .data = *data};
    core_unlock(LOCK_HANDLE);
}

static struct rnn_data sequences_get(cudnnRNNDataDescriptor_t handle)
{
    core_lock(LOCK_HANDLE);
    const struct sequences *s = handle ? sequences_find(handle) : NULL;
    const struct rnn_data data = s ? s->data : (struct rnn_data){0};
    core_unlock(LOCK_HANDLE);
    return data;
}

cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t handle,
                                        cudnnDataType_t type,
                                        cudnnRNNDataLayout_t layout, int length,
                                        int batch, int vector,
                                        const int lengths[], void *fill)
{
    cudnnStatus_t rc = REAL_FUNCTION(cudnnSetRNNDataDescriptor)(
        handle, type, layout, length, batch, vector, lengths, fill);
    struct rnn_data data = {.type = type,
                            .layout = layout,
                            .length = length,
                            .batch = batch,
                            .vector = vector};

    if (rc)
        return rc;
    for (int i = 0; i < batch; i++)
        data.tokens += lengths[i];
    sequences_put(handle, &data);
    return rc;
}

/* Its address may be another's at once. */
cudnnStatus_t cudnnDestroyRNNDataDescriptor(cudnnRNNDataDescriptor_t handle)
{
    core_lock(LOCK_HANDLE);
    struct sequences *s = handle ? sequences_find(handle) : NULL;
    if (s)
        s->handle = NULL;
    core_unlock(LOCK_HANDLE);
    return REAL_FUNCTION(cudnnDestroyRNNDataDescriptor)(handle);
}

static struct rnn rnn_real(cudnnRNNDescriptor_t handle)
{
    struct rnn r = {.class = CLASS_RNN};

    REAL_FUNCTION(cudnnGetRNNDescriptor_v8)
    (handle, &r.algorithm, &r.mode, &r.bias, &r.direction, &r.input_mode,
     &r.type, &r.compute, &r.math, &r.input, &r.hidden, &r.projection,
     &r.layers, &r.dropout, &r.flags);
    return r;
}

static void rnn_tell(const struct real_call *call, cudnnHandle_t handle,
                     uint32_t name, cudnnRNNDescriptor_t descriptor,
                     cudnnRNNDataDescriptor_t sequence, size_t workspace_bytes)
{
    const struct rnn rnn = rnn_real(descriptor);
    const struct rnn_data x = sequences_get(sequence);
    struct cudnn_call c = {.name = name, .workspace_bytes = workspace_bytes};

    rnn_call_fill(&c, &rnn, &x);
    call_tell(call, handle, &c);
}

cudnnStatus_t cudnnRNNForward(
    cudnnHandle_t handle, cudnnRNNDescriptor_t descriptor,
    cudnnForwardMode_t mode, const int32_t lengths[],
    cudnnRNNDataDescriptor_t x, const void *x_data, cudnnRNNDataDescriptor_t y,
    void *y_data, cudnnTensorDescriptor_t h, const void *hx, void *hy,
    cudnnTensorDescriptor_t c, const void *cx, void *cy, size_t weight_bytes,
    const void *weights, size_t workspace_bytes, void *workspace,
    size_t reserve_bytes, void *reserve)
{
    REAL_WORK(cudnnRNNForward,
              (handle, descriptor, mode, lengths, x, x_data, y, y_data, h, hx,
               hy, c, cx, cy, weight_bytes, weights, workspace_bytes, workspace,
               reserve_bytes, reserve),
              rnn_forward_name(mode), cudnn_stream(handle),
              rnn_tell(&call, handle, rnn_forward_name(mode), descriptor, x,
                       workspace_bytes));
}

cudnnStatus_t cudnnRNNBackwardData_v8(
    cudnnHandle_t handle, cudnnRNNDescriptor_t descriptor,
    const int32_t lengths[], cudnnRNNDataDescriptor_t y, const void *y_data,
    const void *dy, cudnnRNNDataDescriptor_t x, void *dx,
    cudnnTensorDescriptor_t h, const void *hx, const void *dhy, void *dhx,
    cudnnTensorDescriptor_t c, const void *cx, const void *dcy, void *dcx,
    size_t weight_bytes, const void *weights, size_t workspace_bytes,
    void *workspace, size_t reserve_bytes, void *reserve)
{
    REAL_WORK(cudnnRNNBackwardData_v8,
              (handle, descriptor, lengths, y, y_data, dy, x, dx, h, hx, dhy,
               dhx, c, cx, dcy, dcx, weight_bytes, weights, workspace_bytes,
               workspace, reserve_bytes, reserve),
              NAME_OF("rnn backward data"), cudnn_stream(handle),
              rnn_tell(&call, handle, NAME_OF("rnn backward data"), descriptor,
                       x, workspace_bytes));
}

cudnnStatus_t cudnnRNNBackwardWeights_v8(
    cudnnHandle_t handle, cudnnRNNDescriptor_t descriptor,
    cudnnWgradMode_t mode, const int32_t lengths[], cudnnRNNDataDescriptor_t x,
    const void *x_data, cudnnTensorDescriptor_t h, const void *hx,
    cudnnRNNDataDescriptor_t y, const void *y_data, size_t weight_bytes,
    void *gradient, size_t workspace_bytes, void *workspace,
    size_t reserve_bytes, void *reserve)
{
    REAL_WORK(cudnnRNNBackwardWeights_v8,
              (handle, descriptor, mode, lengths, x, x_data, h, hx, y, y_data,
               weight_bytes, gradient, workspace_bytes, workspace,
               reserve_bytes, reserve),
              NAME_OF("rnn backward weights"), cudnn_stream(handle),
              rnn_tell(&call, handle, NAME_OF("rnn backward weights"),
                       descriptor, x, workspace_bytes));
}
