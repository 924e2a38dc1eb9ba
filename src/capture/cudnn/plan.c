/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/work/submit.h"
#include "capture/cudnn/plan.h"

#include <stdio.h>

/* Where each kind of convolution keeps its parts. */
static const struct convolution_attributes {
    cudnnBackendDescriptorType_t type;
    enum convolution_operation operation;
    cudnnBackendAttributeName_t x, w, y, descriptor;
} convolutions[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     CONVOLUTION_FORWARD, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CONVOLUTION_BACKWARD_DATA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CONVOLUTION_BACKWARD_FILTER, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC},
};

static const struct convolution_attributes *
convolution_find(const struct descriptor *operation)
{
    size_t count = sizeof convolutions / sizeof *convolutions;

    for (size_t i = 0; i < count; i++)
        if (convolutions[i].type == operation->type)
            return &convolutions[i];
    return NULL;
}

static void convolution_read(const struct descriptor *operation,
                             const struct convolution_attributes *names,
                             int64_t engine, struct convolution *c)
{
    const struct descriptor *d =
        descriptor_child(operation, names->descriptor, 0);

    *c = (struct convolution){
        .operation = names->operation,
        .x = shape_of(descriptor_child(operation, names->x, 0)),
        .w = shape_of(descriptor_child(operation, names->w, 0)),
        .y = shape_of(descriptor_child(operation, names->y, 0)),
        .compute = (cudnnDataType_t)descriptor_number(
            d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT),
        .engine = (enum convolution_engine)engine,
        .groups = 1,
    };
    descriptor_numbers(d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, c->pad);
    descriptor_numbers(d, CUDNN_ATTR_CONVOLUTION_DILATIONS, c->dilation);
    c->spatial_dims =
        descriptor_numbers(d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, c->stride);
    if (c->x.count > 1 && c->w.count > 1 && c->w.dims[1] > 0)
        c->groups = c->x.dims[1] / c->w.dims[1];
}

/* What is fused behind a convolution: pointwise modes by cuDNN's numbers. */
static void fused_describe(const struct descriptor *graph, struct text *text)
{
    const struct descriptor *operation;
    const char *separator = " fused=";

    for (int64_t i = 0; (operation = graph_operation(graph, i)); i++) {
        if (operation->type != CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
            continue;
        const struct descriptor *pointwise = descriptor_child(
            operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, 0);
        text_add(text, "%s%lld", separator,
                 (long long)descriptor_number(pointwise,
                                              CUDNN_ATTR_POINTWISE_MODE, -1));
        separator = ",";
    }
}

void plan_set_convolution(struct plan *plan, const struct convolution *c)
{
    const struct workspace workspace = convolution_workspace(c);

    plan->kind = PLAN_CONVOLUTION;
    plan->name = convolution_name(c->operation);
    plan->operation = c->operation;
    plan->type = c->x.type;
    plan->compute = c->compute;
    plan->workspace_bytes = workspace.bytes;
    plan->workspace_most = workspace.most_bytes;
    plan->workspace_gpu = workspace.gpu;
    convolution_describe(c, &plan->detail);
}

/* Fills PLAN where GRAPH has a convolution; else false. */
static bool plan_convolution(const struct descriptor *graph, int64_t engine,
                             struct plan *plan)
{
    const struct convolution_attributes *names = NULL;
    const struct descriptor *operation;
    struct convolution c;

    for (int64_t i = 0; !names && (operation = graph_operation(graph, i)); i++)
        if ((names = convolution_find(operation)))
            convolution_read(operation, names, engine, &c);
    if (!names)
        return false;
    plan_set_convolution(plan, &c);
    fused_describe(graph, &plan->detail);
    return true;
}

/* The shapes of OPERATION's tensors, by the numbers of their attributes. */
static void operation_describe(const struct descriptor *operation,
                               struct text *text)
{
    char key[12];

    text_add(text, "operation=%d ", (int)operation->type);
    for (const struct attribute *a = operation->first; a; a = a->next) {
        struct shape shape = shape_of(descriptor_child(
            operation, (cudnnBackendAttributeName_t)a->name, 0));

        snprintf(key, sizeof key, "%u", a->name);
        if (shape.count)
            shape_describe(text, key, &shape);
    }
}

/* Any other graph: its operations, by cuDNN's numbers. */
static void plan_other(const struct descriptor *graph, struct plan *plan)
{
    const struct descriptor *operation;

    plan->kind = PLAN_OTHER;
    plan->name = NAME_OF("cudnn graph");
    for (int64_t i = 0; (operation = graph_operation(graph, i)); i++)
        operation_describe(operation, &plan->detail);
}

void plan_read(const struct descriptor *graph, int64_t engine,
               struct plan *plan)
{
    *plan = (struct plan){.engine = engine,
                          .scratch_bytes = graph_scratch_bytes(graph)};
    if (!plan_convolution(graph, engine, plan) && !attention_read(graph, plan))
        plan_other(graph, plan);
}

/* cudnn_frontend's filters (torch's filterEngineConfigs: no TF32, deterministic
 * algorithms) choose among engines by their notes, so there is one with tensor
 * cores and one without where the type has both. Attention exists on tensor
 * cores only. The last one offered needs no workspace, as cuDNN's implicit GEMM
 * (algorithm 0 of the older API): torch takes it near the memory's limit, where
 * a workspace cannot be had (Conv_v8.cpp, try_configs). */
int plan_engines(const struct descriptor *graph, bool fallback,
                 int64_t engines[ENGINE_COUNT])
{
    struct plan plan;
    int count = 0;

    plan_read(graph, ENGINE_PLAIN, &plan);
    bool attention = plan.kind == PLAN_ATTENTION;
    bool both =
        plan.kind == PLAN_CONVOLUTION && convolution_has_tensor_core(plan.type);
    if (attention || (both && !fallback))
        engines[count++] = ENGINE_TENSOR_CORE;
    if (!attention)
        engines[count++] = ENGINE_PLAIN;
    if (fallback && plan.workspace_bytes)
        engines[count++] = ENGINE_SMALL;
    return count;
}

void plan_record(const struct cudnn *cudnn, const struct plan *plan)
{
    uint64_t device = (uint64_t)cudnn->device;
    uint64_t lent_bytes = plan->workspace_bytes + plan->scratch_bytes;

    if (plan->kind == PLAN_CONVOLUTION) {
        SUBMIT_TEXT(CONVOLUTION, plan->detail.bytes, plan->detail.used,
                    .name = plan->name, .device = device,
                    .stream = cudnn->stream, .operation = plan->operation,
                    .type = plan->type, .compute = plan->compute,
                    .workspace_bytes = lent_bytes,
                    .engine = (uint64_t)plan->engine,
                    .workspace_most = plan->workspace_most,
                    .workspace_gpu = plan->workspace_gpu);
    } else if (plan->kind == PLAN_ATTENTION) {
        SUBMIT_TEXT(ATTENTION, plan->detail.bytes, plan->detail.used,
                    .name = plan->name, .device = device,
                    .stream = cudnn->stream, .operation = plan->operation,
                    .type = plan->type, .workspace_bytes = lent_bytes);
    } else {
        struct cudnn_call call = {.name = plan->name,
                                  .workspace_bytes = lent_bytes,
                                  .detail = plan->detail};
        cudnn_call_record(cudnn, &call);
    }
}
