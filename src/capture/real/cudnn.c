/* SPDX-License-Identifier: Apache-2.0
 * Taps of cuDNN: convolutions and attention as records with shapes and with the
 * workspaces that cuDNN asks for, as a simulated run has them. Their kernels
 * are parts of the calls. */
#include "capture/real/cudnn.h"

#include "capture/core/run/record.h"
#include "capture/real/mirror.h"

#define NOTES 16 /* that an engine may have */

uint64_t cudnn_stream(cudnnHandle_t handle)
{
    cudaStream_t stream = NULL;

    REAL_FUNCTION(cudnnGetStream)(handle, &stream);
    return (uint64_t)stream;
}

bool cudnn_tap_begin(const struct real_call *call, cudnnHandle_t handle,
                     struct cudnn *at)
{
    at->stream = cudnn_stream(handle);
    at->device = tap_begin(call, at->stream);
    return at->device >= 0;
}

/* Executes: HANDLE is on a stream, whose work PLAN is. */
static void plan_tell(const struct real_call *call, cudnnHandle_t handle,
                      const struct plan *plan)
{
    struct cudnn at;

    if (!cudnn_tap_begin(call, handle, &at))
        return;
    plan_record(&at, plan);
    tap_end(at.device, at.stream);
}

/* --- the backend API ------------------------------------------------------ */

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t *handle)
{
    cudnnStatus_t rc =
        REAL_FUNCTION(cudnnBackendCreateDescriptor)(type, handle);

    if (!rc)
        mirror_create(*handle, type);
    return rc;
}

/* The mirror goes first: the real one's address may be another's at once. */
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t handle)
{
    mirror_destroy(handle);
    return REAL_FUNCTION(cudnnBackendDestroyDescriptor)(handle);
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const handle,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type,
                                       int64_t requested, int64_t *count,
                                       void *values)
{
    int64_t filled = 0;
    cudnnStatus_t rc = REAL_FUNCTION(cudnnBackendGetAttribute)(
        handle, name, type, requested, count ? count : &filled, values);

    if (!rc && values && name == CUDNN_ATTR_ENGINEHEUR_RESULTS) {
        filled = count ? *count : filled;
        mirror_results(handle, filled < requested ? filled : requested,
                       values);
    }
    return rc;
}

static bool has_tensor_cores(cudnnBackendDescriptor_t engine)
{
    cudnnBackendNumericalNote_t notes[NOTES];
    int64_t count = 0;

    if (REAL_FUNCTION(cudnnBackendGetAttribute)(
            engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
            CUDNN_TYPE_NUMERICAL_NOTE, NOTES, &count, notes))
        return false;
    for (int64_t i = 0; i < count && i < NOTES; i++)
        if (notes[i] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE)
            return true;
    return false;
}

/* The engine of the real CONFIGURATION. */
static enum convolution_engine
engine_of(cudnnBackendDescriptor_t configuration)
{
    enum convolution_engine found = ENGINE_PLAIN;
    cudnnBackendDescriptor_t engine = NULL;
    int64_t count = 0;

    if (REAL_FUNCTION(cudnnBackendCreateDescriptor)(
            CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine))
        return found;
    if (!REAL_FUNCTION(cudnnBackendGetAttribute)(
            configuration, CUDNN_ATTR_ENGINECFG_ENGINE,
            CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &engine) &&
        has_tensor_cores(engine))
        found = ENGINE_TENSOR_CORE;
    REAL_FUNCTION(cudnnBackendDestroyDescriptor)(engine);
    return found;
}

static void engine_tell(cudnnBackendDescriptor_t plan,
                        cudnnBackendDescriptor_t configuration)
{
    const int64_t engine = engine_of(configuration);

    mirror_set(plan, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1,
               &engine);
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t handle,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type,
                                       int64_t count, const void *values)
{
    cudnnStatus_t rc = REAL_FUNCTION(cudnnBackendSetAttribute)(
        handle, name, type, count, values);

    if (!rc)
        mirror_set(handle, name, type, count, values);
    if (!rc && name == CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG && count == 1)
        engine_tell(handle, *(const cudnnBackendDescriptor_t *)values);
    return rc;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t handle)
{
    cudnnStatus_t rc = REAL_FUNCTION(cudnnBackendFinalize)(handle);
    const struct descriptor *d = rc ? NULL : mirror_of(handle);
    int64_t bytes = 0, count = 0;

    if (!d || d->type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
        return rc;
    REAL_FUNCTION(cudnnBackendGetAttribute)
    (handle, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
     &count, &bytes);
    mirror_plan(handle, (uint64_t)bytes);
    return rc;
}

/* What the real PLAN does; one that was made of a text has no graph. */
static const struct plan *plan_of(cudnnBackendDescriptor_t plan)
{
    static struct plan unknown = {.kind = PLAN_OTHER};
    const struct descriptor *d = mirror_of(plan);

    unknown.name = NAME_OF("cudnn graph");
    return d && d->plan ? d->plan : &unknown;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle,
                                  cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack)
{
    REAL_WORK(cudnnBackendExecute, (handle, plan, pack), plan_of(plan)->name,
              cudnn_stream(handle), plan_tell(&call, handle, plan_of(plan)));
}

/* --- the classic API ------------------------------------------------------ */

struct shape cudnn_real_shape(cudnnTensorDescriptor_t tensor)
{
    int count = 0, dims[CUDNN_DIM_MAX] = {0}, strides[CUDNN_DIM_MAX] = {0};
    struct shape shape = {0};

    if (REAL_FUNCTION(cudnnGetTensorNdDescriptor)(
            tensor, CUDNN_DIM_MAX, &shape.type, &count, dims, strides))
        return shape;
    shape.count = count < CUDNN_DIM_MAX ? count : CUDNN_DIM_MAX;
    for (int i = 0; i < shape.count; i++) {
        shape.dims[i] = dims[i];
        shape.strides[i] = strides[i];
    }
    return shape;
}

static struct shape filter_shape(cudnnFilterDescriptor_t filter)
{
    cudnnTensorFormat_t format = CUDNN_TENSOR_NCHW;
    int count = 0, dims[CUDNN_DIM_MAX] = {0};
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    struct shape shape = {0};

    if (!REAL_FUNCTION(cudnnGetFilterNdDescriptor)(filter, CUDNN_DIM_MAX, &type,
                                                   &format, &count, dims))
        shape_fill(&shape, type, format,
                   count < CUDNN_DIM_MAX ? count : CUDNN_DIM_MAX, dims);
    return shape;
}

/* What the real HANDLE says of C. */
static void descriptor_read(cudnnConvolutionDescriptor_t handle,
                            struct convolution *c)
{
    int count = 0, pad[CUDNN_DIM_MAX] = {0}, stride[CUDNN_DIM_MAX] = {0},
        dilation[CUDNN_DIM_MAX] = {0}, groups = 1;
    cudnnMathType_t math = CUDNN_DEFAULT_MATH;
    cudnnConvolutionMode_t mode;

    REAL_FUNCTION(cudnnGetConvolutionNdDescriptor)
    (handle, CUDNN_DIM_MAX - 2, &count, pad, stride, dilation, &mode,
     &c->compute);
    REAL_FUNCTION(cudnnGetConvolutionGroupCount)(handle, &groups);
    REAL_FUNCTION(cudnnGetConvolutionMathType)(handle, &math);
    c->spatial_dims = count < CUDNN_DIM_MAX - 2 ? count : CUDNN_DIM_MAX - 2;
    for (int i = 0; i < c->spatial_dims; i++) {
        c->pad[i] = pad[i];
        c->stride[i] = stride[i];
        c->dilation[i] = dilation[i];
    }
    c->groups = groups;
    c->engine = math != CUDNN_FMA_MATH && convolution_has_tensor_core(c->x.type)
                    ? ENGINE_TENSOR_CORE
                    : ENGINE_PLAIN;
}

static void convolution_tell(const struct real_call *call, cudnnHandle_t handle,
                             struct convolution *c,
                             cudnnConvolutionDescriptor_t descriptor,
                             uint64_t workspace_bytes, const char *fused)
{
    struct plan plan = {.scratch_bytes = 0};

    descriptor_read(descriptor, c);
    plan.engine = c->engine;
    plan_set_convolution(&plan, c);
    text_add(&plan.detail, "%s", fused);
    plan.workspace_bytes = plan.workspace_most = workspace_bytes;
    plan_tell(call, handle, &plan);
}

/* The body of a tap: X, W, Y are descriptors. */
#define CONVOLUTION(name, arguments, kind, fused)                              \
    REAL_WORK(name, arguments, convolution_name(CONVOLUTION_##kind),           \
              cudnn_stream(handle), {                                          \
        struct convolution c = {.operation = CONVOLUTION_##kind,               \
                                .x = cudnn_real_shape(x),                      \
                                .w = filter_shape(w),                          \
                                .y = cudnn_real_shape(y)};                     \
        convolution_tell(&call, handle, &c, descriptor, bytes, fused);         \
    })

cudnnStatus_t cudnnConvolutionForward(
    cudnnHandle_t handle, const void *alpha, const cudnnTensorDescriptor_t x,
    const void *x_data, const cudnnFilterDescriptor_t w, const void *w_data,
    const cudnnConvolutionDescriptor_t descriptor,
    cudnnConvolutionFwdAlgo_t algorithm, void *workspace, size_t bytes,
    const void *beta, const cudnnTensorDescriptor_t y, void *y_data)
{
    CONVOLUTION(cudnnConvolutionForward,
                (handle, alpha, x, x_data, w, w_data, descriptor, algorithm,
                 workspace, bytes, beta, y, y_data),
                FORWARD, "");
}

cudnnStatus_t cudnnConvolutionBiasActivationForward(
    cudnnHandle_t handle, const void *alpha1, const cudnnTensorDescriptor_t x,
    const void *x_data, const cudnnFilterDescriptor_t w, const void *w_data,
    const cudnnConvolutionDescriptor_t descriptor,
    cudnnConvolutionFwdAlgo_t algorithm, void *workspace, size_t bytes,
    const void *alpha2, const cudnnTensorDescriptor_t z, const void *z_data,
    const cudnnTensorDescriptor_t bias, const void *bias_data,
    const cudnnActivationDescriptor_t activation,
    const cudnnTensorDescriptor_t y, void *y_data)
{
    CONVOLUTION(cudnnConvolutionBiasActivationForward,
                (handle, alpha1, x, x_data, w, w_data, descriptor, algorithm,
                 workspace, bytes, alpha2, z, z_data, bias, bias_data,
                 activation, y, y_data),
                FORWARD, " fused=bias,activation");
}

cudnnStatus_t cudnnConvolutionBackwardData(
    cudnnHandle_t handle, const void *alpha, const cudnnFilterDescriptor_t w,
    const void *w_data, const cudnnTensorDescriptor_t y, const void *y_data,
    const cudnnConvolutionDescriptor_t descriptor,
    cudnnConvolutionBwdDataAlgo_t algorithm, void *workspace, size_t bytes,
    const void *beta, const cudnnTensorDescriptor_t x, void *x_data)
{
    CONVOLUTION(cudnnConvolutionBackwardData,
                (handle, alpha, w, w_data, y, y_data, descriptor, algorithm,
                 workspace, bytes, beta, x, x_data),
                BACKWARD_DATA, "");
}

cudnnStatus_t cudnnConvolutionBackwardFilter(
    cudnnHandle_t handle, const void *alpha, const cudnnTensorDescriptor_t x,
    const void *x_data, const cudnnTensorDescriptor_t y, const void *y_data,
    const cudnnConvolutionDescriptor_t descriptor,
    cudnnConvolutionBwdFilterAlgo_t algorithm, void *workspace, size_t bytes,
    const void *beta, const cudnnFilterDescriptor_t w, void *w_data)
{
    CONVOLUTION(cudnnConvolutionBackwardFilter,
                (handle, alpha, x, x_data, y, y_data, descriptor, algorithm,
                 workspace, bytes, beta, w, w_data),
                BACKWARD_FILTER, "");
}
