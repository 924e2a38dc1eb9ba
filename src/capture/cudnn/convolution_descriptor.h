/* SPDX-License-Identifier: Apache-2.0
 * The classic API's convolution descriptors. */
#ifndef MEMSIM_CAPTURE_CUDNN_CONVOLUTION_DESCRIPTOR_H
#define MEMSIM_CAPTURE_CUDNN_CONVOLUTION_DESCRIPTOR_H

#include "capture/cudnn/tensor.h"

struct convolution_descriptor {
    uint32_t class; /* CLASS_CONVOLUTION */
    int spatial_dims;
    int64_t pad[CUDNN_DIM_MAX], stride[CUDNN_DIM_MAX];
    int64_t dilation[CUDNN_DIM_MAX];
    cudnnConvolutionMode_t mode;
    cudnnDataType_t compute;
    cudnnMathType_t math;
    int groups;
};

/* HANDLE's, or NULL where it is not a live one. */
struct convolution_descriptor *
convolution_descriptor_get(cudnnConvolutionDescriptor_t handle);

#endif
