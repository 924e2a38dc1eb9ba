/* SPDX-License-Identifier: Apache-2.0
 * Convolutions as graphs of cuDNN's backend API, and what their plans say. */
#ifndef MEMSIM_TESTS_CUDNN_PROBLEM_H
#define MEMSIM_TESTS_CUDNN_PROBLEM_H

#include <cudnn.h>
#include <stdbool.h>

#include "answers.h"
#include "check.h"

static inline cudnnBackendDescriptor_t make(cudnnBackendDescriptorType_t type)
{
    cudnnBackendDescriptor_t d = NULL;

    CHECK(!cudnnBackendCreateDescriptor(type, &d));
    return d;
}

static inline void set(cudnnBackendDescriptor_t d,
                       cudnnBackendAttributeName_t name,
                       cudnnBackendAttributeType_t type, int64_t count,
                       const void *values)
{
    CHECK(!cudnnBackendSetAttribute(d, name, type, count, values));
}

static inline void set_part(cudnnBackendDescriptor_t d,
                            cudnnBackendAttributeName_t name,
                            cudnnBackendDescriptor_t part)
{
    set(d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &part);
}

static inline void set_number(cudnnBackendDescriptor_t d,
                              cudnnBackendAttributeName_t name, int64_t number)
{
    set(d, name, CUDNN_TYPE_INT64, 1, &number);
}

/* A dense tensor; NHWC where CHANNELS_LAST. */
static inline cudnnBackendDescriptor_t
tensor(int64_t uid, cudnnDataType_t type, const int64_t dims[4],
       bool channels_last)
{
    cudnnBackendDescriptor_t d = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    int64_t c = dims[1], h = dims[2], w = dims[3];
    int64_t nchw[] = {c * h * w, h * w, w, 1},
            nhwc[] = {c * h * w, 1, w * c, c};

    set_number(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, uid);
    set_number(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 16);
    set(d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    set(d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims);
    set(d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4,
        channels_last ? nhwc : nchw);
    CHECK(!cudnnBackendFinalize(d));
    return d;
}

struct problem {
    cudnnDataType_t type;
    int64_t x[4], w[4], y[4], stride; /* 1 down, where X has one row */
    int64_t down;                     /* the stride down; 0: the same */
    int64_t pads[2], dilation;        /* 0: of 1 */
    bool channels_last;
    int kind; /* 0 forward, 1 backward data, 2 backward filter */
};

static inline cudnnBackendDescriptor_t
convolution_descriptor(const struct problem *p)
{
    int64_t down = p->x[2] == 1 ? 1 : p->down ? p->down : p->stride;
    int64_t step = p->dilation ? p->dilation : 1;
    cudnnBackendDescriptor_t d = make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    int64_t strides[] = {down, p->stride}, steps[] = {step, step};

    set_number(d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 2);
    set(d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
    set(d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1,
        &mode);
    set(d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, steps);
    set(d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, strides);
    set(d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, p->pads);
    set(d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, p->pads);
    CHECK(!cudnnBackendFinalize(d));
    return d;
}

static const struct names {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t x, w, y, descriptor;
} kinds[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC},
};

static inline cudnnBackendDescriptor_t
graph_of(cudnnBackendDescriptor_t operation)
{
    cudnnBackendDescriptor_t graph =
        make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);

    set_part(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
    CHECK(!cudnnBackendFinalize(graph));
    CHECK(!cudnnBackendDestroyDescriptor(operation));
    return graph;
}

/* The parts are destroyed at once: the graph holds them. */
static inline cudnnBackendDescriptor_t
convolution_graph(const struct problem *p)
{
    const struct names *n = &kinds[p->kind];
    cudnnBackendDescriptor_t parts[] = {
        tensor('x', p->type, p->x, p->channels_last),
        tensor('w', p->type, p->w, p->channels_last),
        tensor('y', p->type, p->y, p->channels_last),
        convolution_descriptor(p)};
    cudnnBackendDescriptor_t operation = make(n->type);

    set_part(operation, n->x, parts[0]);
    set_part(operation, n->w, parts[1]);
    set_part(operation, n->y, parts[2]);
    set_part(operation, n->descriptor, parts[3]);
    CHECK(!cudnnBackendFinalize(operation));
    for (int i = 0; i < 4; i++)
        CHECK(!cudnnBackendDestroyDescriptor(parts[i]));
    return graph_of(operation);
}

/* The configurations of heuristics MODE, best first; how many. */
static inline int64_t configurations_by(cudnnBackendHeurMode_t mode,
                                        cudnnBackendDescriptor_t graph,
                                        cudnnBackendDescriptor_t found[4])
{
    cudnnBackendDescriptor_t d = make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    int64_t count = -1, again = -1;

    set_part(d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    set(d, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    CHECK(!cudnnBackendFinalize(d));
    CHECK(!cudnnBackendGetAttribute(d, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                    CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count,
                                    NULL));
    count = count < 4 ? count : 4; /* a GPU has up to 40 */
    for (int i = 0; i < count; i++)
        found[i] = make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    CHECK(!cudnnBackendGetAttribute(d, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                    CUDNN_TYPE_BACKEND_DESCRIPTOR, count,
                                    &again, found));
    CHECK(again == count || (is_real() && again > 0 && again <= count));
    for (int64_t i = again; i < count; i++)
        CHECK(!cudnnBackendDestroyDescriptor(found[i]));
    CHECK(!cudnnBackendDestroyDescriptor(d));
    return again;
}

static inline int64_t configurations(cudnnBackendDescriptor_t graph,
                                     cudnnBackendDescriptor_t found[4])
{
    return configurations_by(CUDNN_HEUR_MODE_INSTANT, graph, found);
}

static inline cudnnBackendDescriptor_t
plan_of(cudnnBackendDescriptor_t configuration)
{
    cudnnBackendDescriptor_t plan =
        make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);

    set_part(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
    CHECK(!cudnnBackendFinalize(plan));
    return plan;
}

static inline int64_t number_of(cudnnBackendDescriptor_t d,
                                cudnnBackendAttributeName_t name)
{
    int64_t number = -1, count = -1;

    CHECK(!cudnnBackendGetAttribute(d, name, CUDNN_TYPE_INT64, 1, &count,
                                    &number));
    CHECK(count == 1);
    return number;
}

/* PROBLEM's plan by engine number INDEX of the heuristics. */
static inline cudnnBackendDescriptor_t
plan_for(const struct problem *problem, int64_t index)
{
    cudnnBackendDescriptor_t found[4], graph = convolution_graph(problem);
    int64_t count = configurations(graph, found);

    CHECK(!cudnnBackendDestroyDescriptor(graph));
    CHECK(index < count);
    cudnnBackendDescriptor_t plan = plan_of(found[index]);
    for (int i = 0; i < count; i++)
        CHECK(!cudnnBackendDestroyDescriptor(found[i]));
    return plan;
}

static inline int64_t workspace_of(const struct problem *problem,
                                   int64_t index)
{
    cudnnBackendDescriptor_t plan = plan_for(problem, index);
    int64_t bytes = number_of(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);

    CHECK(!cudnnBackendDestroyDescriptor(plan));
    return bytes;
}

#endif
