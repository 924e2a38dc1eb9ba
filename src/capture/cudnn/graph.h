/* SPDX-License-Identifier: Apache-2.0
 * Reading the descriptors of an operation graph. */
#ifndef MEMSIM_CAPTURE_CUDNN_GRAPH_H
#define MEMSIM_CAPTURE_CUDNN_GRAPH_H

#include "capture/cudnn/convolution.h"
#include "capture/cudnn/store.h"

/* The operation numbered INDEX; NULL behind the last. */
const struct descriptor *graph_operation(const struct descriptor *graph,
                                         int64_t index);

/* Up to CUDNN_DIM_MAX of NAME's numbers; how many. */
int descriptor_numbers(const struct descriptor *descriptor,
                       cudnnBackendAttributeName_t name, int64_t *numbers);

/* A tensor descriptor's shape. An absent or incomplete one has no dimensions.
 */
struct shape shape_of(const struct descriptor *tensor);

/* True where TENSOR is absent or has no place in memory. */
bool tensor_is_virtual(const struct descriptor *tensor);

/* Tensors in memory that the graph both writes and reads: cudnn_frontend takes
 * room for them from its caller beside the plan's workspace (sums of softmax
 * and the fp32 gradient of Q, in the backward of attention). */
uint64_t graph_scratch_bytes(const struct descriptor *graph);

#endif
