/* SPDX-License-Identifier: Apache-2.0
 * Tensor and filter descriptors. */
#ifndef MEMSIM_CAPTURE_CUDNN_TENSOR_H
#define MEMSIM_CAPTURE_CUDNN_TENSOR_H

#include "capture/cudnn/convolution.h"

struct tensor {
    uint32_t class; /* CLASS_TENSOR or CLASS_FILTER */
    cudnnTensorFormat_t format;
    struct shape shape;
};

/* Either's shape; one without dimensions for what is no live descriptor. */
struct shape tensor_shape(cudnnTensorDescriptor_t descriptor);
struct shape filter_shape(cudnnFilterDescriptor_t descriptor);

/* Gives DESCRIPTOR the dims, dense; for functions that answer so. */
cudnnStatus_t tensor_fill(cudnnTensorDescriptor_t descriptor,
                          cudnnDataType_t type, int count, const int dims[]);

#endif
