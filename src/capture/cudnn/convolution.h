/* SPDX-License-Identifier: Apache-2.0
 * One convolution, whichever of the two APIs it came by: what it takes as
 * workspace, and how it is recorded. */
#ifndef MEMSIM_CAPTURE_CUDNN_CONVOLUTION_H
#define MEMSIM_CAPTURE_CUDNN_CONVOLUTION_H

#include "capture/cudnn/cudnn.h"

/* The `operation` of a CONVOLUTION record. */
enum convolution_operation {
    CONVOLUTION_FORWARD,
    CONVOLUTION_BACKWARD_DATA,
    CONVOLUTION_BACKWARD_FILTER,
};

/* The `engine` of a CONVOLUTION record, and the API's engine index. */
enum convolution_engine {
    ENGINE_PLAIN,       /* the type's own arithmetic units */
    ENGINE_TENSOR_CORE, /* fp32 as TF32 */
    ENGINE_SMALL,       /* plain, slower, and without a workspace */
    ENGINE_COUNT,
};

struct shape {
    int count; /* of dimensions */
    cudnnDataType_t type;
    int64_t dims[CUDNN_DIM_MAX];
    int64_t strides[CUDNN_DIM_MAX];
};

/* x, w, y are input, filter and output, or their gradients. */
struct convolution {
    enum convolution_operation operation;
    struct shape x, w, y;
    int spatial_dims;
    int64_t pad[CUDNN_DIM_MAX];
    int64_t stride[CUDNN_DIM_MAX];
    int64_t dilation[CUDNN_DIM_MAX];
    int64_t groups;
    cudnnDataType_t compute;
    enum convolution_engine engine;
};

uint64_t shape_elements(const struct shape *shape);

/* The bytes of SHAPE's elements, without gaps. */
uint64_t shape_bytes(const struct shape *shape);

/* Makes SHAPE of COUNT dims, dense in FORMAT. */
void shape_fill(struct shape *shape, cudnnDataType_t type,
                cudnnTensorFormat_t format, int count, const int dims[]);

/* "KEY=dims KEYs=strides KEYt=type " */
void shape_describe(struct text *text, const char *key,
                    const struct shape *shape);

/* Channels innermost. */
bool convolution_is_nhwc(const struct convolution *convolution);

/* True where the GPU has tensor cores for TYPE. */
bool convolution_has_tensor_core(cudnnDataType_t type);

void convolution_describe(const struct convolution *convolution,
                          struct text *text);

uint32_t convolution_name(enum convolution_operation operation);

/* What a convolution asks for. Where its size was measured on another GPU or
 * with another cuDNN, or nowhere, the real one is from 0 to `most_bytes`. */
struct workspace {
    uint64_t bytes, most_bytes; /* equal: the size is this GPU's own */
    unsigned gpu; /* compute capability of the measurement, 70; 0: none */
};

/* Looked up in data/workspaces/cudnn.csv. */
struct workspace convolution_workspace(const struct convolution *convolution);

#endif
