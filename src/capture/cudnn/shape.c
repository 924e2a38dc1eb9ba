/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "capture/core/memory/device.h"
#include "capture/cudnn/convolution.h"

uint64_t shape_elements(const struct shape *shape)
{
    uint64_t elements = 1;

    for (int i = 0; i < shape->count; i++)
        elements *= (uint64_t)shape->dims[i];
    return elements;
}

uint64_t shape_bytes(const struct shape *shape)
{
    return shape_elements(shape) * cudnn_type_bytes(shape->type);
}

/* Dense strides, the last dimension innermost, or the channels. */
static void shape_pack(struct shape *shape, cudnnTensorFormat_t format)
{
    bool channels_last = format == CUDNN_TENSOR_NHWC && shape->count > 2;
    int64_t stride = channels_last ? shape->dims[1] : 1;

    for (int i = shape->count - 1; i >= 0; i--) {
        if (channels_last && i == 1)
            continue;
        shape->strides[i] = stride;
        stride *= shape->dims[i];
    }
    if (channels_last)
        shape->strides[1] = 1;
}

void shape_fill(struct shape *shape, cudnnDataType_t type,
                cudnnTensorFormat_t format, int count, const int dims[])
{
    shape->type = type;
    shape->count = count;
    for (int i = 0; i < count; i++)
        shape->dims[i] = dims[i];
    shape_pack(shape, format);
}

void shape_describe(struct text *text, const char *key,
                    const struct shape *shape)
{
    char name[16];

    text_add_numbers(text, key, shape->dims, shape->count);
    snprintf(name, sizeof name, "%ss", key);
    text_add_numbers(text, name, shape->strides, shape->count);
    text_add(text, "%st=%s ", key, cudnn_type_name(shape->type));
}

/* Where there is one channel only, both layouts are the same. */
bool convolution_is_nhwc(const struct convolution *convolution)
{
    const struct shape *x = &convolution->x, *y = &convolution->y;

    if (x->count < 3 || y->count < 3)
        return false;
    if (x->dims[1] > 1)
        return x->strides[1] == 1;
    return y->dims[1] > 1 && y->strides[1] == 1;
}

/* Volta brought tensor cores for fp16, Turing for int8, Ampere for bf16, TF32
 * and fp64 (which cuDNN does not use); Ada and Hopper for fp8. */
bool convolution_has_tensor_core(cudnnDataType_t type)
{
    const struct gpu *gpu = memsim_device_gpu();
    uint32_t capability =
        gpu ? gpu->capability_major * 10 + gpu->capability_minor : 0;

    switch ((int)type) {
    case CUDNN_DATA_HALF:
        return capability >= 70;
    case CUDNN_DATA_INT8:
    case CUDNN_DATA_UINT8:
        return capability >= 75;
    case CUDNN_DATA_FLOAT:
    case CUDNN_DATA_BFLOAT16:
        return capability >= 80;
    case CUDNN_DATA_FP8_E4M3:
    case CUDNN_DATA_FP8_E5M2:
        return capability >= 89;
    default:
        return false;
    }
}

void convolution_describe(const struct convolution *c, struct text *text)
{
    shape_describe(text, "x", &c->x);
    shape_describe(text, "w", &c->w);
    shape_describe(text, "y", &c->y);
    text_add_numbers(text, "pad", c->pad, c->spatial_dims);
    text_add_numbers(text, "stride", c->stride, c->spatial_dims);
    text_add_numbers(text, "dilation", c->dilation, c->spatial_dims);
    text_add(text, "groups=%lld layout=%s math=%s", (long long)c->groups,
             convolution_is_nhwc(c) ? "nhwc" : "nchw",
             c->engine == ENGINE_TENSOR_CORE ? "tensor" : "plain");
}

uint32_t convolution_name(enum convolution_operation operation)
{
    switch (operation) {
    case CONVOLUTION_BACKWARD_DATA:
        return NAME_OF("backward data");
    case CONVOLUTION_BACKWARD_FILTER:
        return NAME_OF("backward filter");
    default:
        return NAME_OF("forward");
    }
}
