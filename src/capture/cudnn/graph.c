/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/cudnn/graph.h"

#include <string.h>

const struct descriptor *graph_operation(const struct descriptor *graph,
                                         int64_t index)
{
    return descriptor_child(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, index);
}

int descriptor_numbers(const struct descriptor *descriptor,
                       cudnnBackendAttributeName_t name, int64_t *numbers)
{
    const struct attribute *a = descriptor_find(descriptor, name);

    if (!a || a->type != CUDNN_TYPE_INT64)
        return 0;
    int count = a->count < CUDNN_DIM_MAX ? (int)a->count : CUDNN_DIM_MAX;
    memcpy(numbers, a->values, sizeof *numbers * (size_t)count);
    return count;
}

struct shape shape_of(const struct descriptor *tensor)
{
    struct shape shape = {0};
    int strides =
        descriptor_numbers(tensor, CUDNN_ATTR_TENSOR_STRIDES, shape.strides);

    shape.count =
        descriptor_numbers(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, shape.dims);
    if (strides < shape.count)
        shape.count = strides;
    shape.type = (cudnnDataType_t)descriptor_number(
        tensor, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT);
    return shape;
}

bool tensor_is_virtual(const struct descriptor *tensor)
{
    return !tensor ||
           descriptor_number(tensor, CUDNN_ATTR_TENSOR_IS_VIRTUAL, 0);
}

static bool is_output(cudnnBackendAttributeName_t name)
{
    return name == CUDNN_ATTR_OPERATION_POINTWISE_YDESC ||
           name == CUDNN_ATTR_OPERATION_MATMUL_CDESC ||
           name == CUDNN_ATTR_OPERATION_REDUCTION_YDESC;
}

static bool operation_reads(const struct descriptor *operation, int64_t uid)
{
    for (const struct attribute *a = operation->first; a; a = a->next) {
        cudnnBackendAttributeName_t name = (cudnnBackendAttributeName_t)a->name;
        const struct descriptor *tensor = descriptor_child(operation, name, 0);

        if (tensor && !is_output(name) &&
            tensor->type == CUDNN_BACKEND_TENSOR_DESCRIPTOR &&
            descriptor_number(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, -1) == uid)
            return true;
    }
    return false;
}

static bool graph_reads(const struct descriptor *graph, int64_t uid)
{
    const struct descriptor *operation;

    for (int64_t i = 0; (operation = graph_operation(graph, i)); i++)
        if (operation_reads(operation, uid))
            return true;
    return false;
}

/* The bytes of OPERATION's output where it is in memory and read again. */
static uint64_t operation_scratch(const struct descriptor *graph,
                                  const struct descriptor *operation)
{
    uint64_t bytes = 0;

    for (const struct attribute *a = operation->first; a; a = a->next) {
        cudnnBackendAttributeName_t name = (cudnnBackendAttributeName_t)a->name;
        const struct descriptor *tensor = descriptor_child(operation, name, 0);
        struct shape shape = shape_of(tensor);

        if (is_output(name) && !tensor_is_virtual(tensor) &&
            graph_reads(graph, descriptor_number(
                                   tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, -1)))
            bytes += shape_bytes(&shape);
    }
    return bytes;
}

uint64_t graph_scratch_bytes(const struct descriptor *graph)
{
    const struct descriptor *operation;
    uint64_t bytes = 0;

    for (int64_t i = 0; (operation = graph_operation(graph, i)); i++)
        bytes += operation_scratch(graph, operation);
    return bytes;
}
