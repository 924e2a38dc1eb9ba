/* SPDX-License-Identifier: Apache-2.0
 * Stream capture and graphs, as the driver has them. */
#include "capture/core/work/graph.h"

#include "capture/core/work/stream_capture.h"
#include "capture/core/work/stream.h"
#include "capture/driver/driver.h"

CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode)
{
    NEED(driver_context());
    return driver_result(
        memsim_capture_begin(HANDLE(stream), (enum capture_mode)mode, 0));
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph,
                                     const CUgraphNode *nodes,
                                     const CUgraphEdgeData *edges, size_t count,
                                     CUstreamCaptureMode mode)
{
    (void)edges;
    NEED(driver_context());
    NEED(driver_result(memsim_capture_begin(
        HANDLE(stream), (enum capture_mode)mode, HANDLE(graph))));
    return driver_result(memsim_capture_depend(
        HANDLE(stream), (const uint64_t *)nodes, count, true));
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    uint64_t made;

    NEED(driver_context());
    if (!graph)
        return CUDA_ERROR_INVALID_VALUE;
    int rc = memsim_capture_end(HANDLE(stream), &made);
    *graph = (CUgraph)made;
    return driver_result(rc);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    NEED_PLACE(mode);

    int value = (int)*mode;
    int rc = memsim_capture_exchange_mode(&value);

    *mode = (CUstreamCaptureMode)value;
    return driver_result(rc);
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    NEED_PLACE(status);

    struct capture_info info;

    NEED(driver_context());
    NEED(driver_result(memsim_capture_info(HANDLE(stream), &info)));
    *status = (CUstreamCaptureStatus)info.status;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status,
                                cuuint64_t *id, CUgraph *graph,
                                const CUgraphNode **nodes,
                                const CUgraphEdgeData **edges, size_t *count)
{
    NEED_PLACE(status);

    struct capture_info info;

    NEED(driver_context());
    NEED(driver_result(memsim_capture_info(HANDLE(stream), &info)));
    *status = (CUstreamCaptureStatus)info.status;
    if (id)
        *id = info.id;
    if (graph)
        *graph = (CUgraph)info.graph;
    if (nodes)
        *nodes = (const CUgraphNode *)info.leaves;
    if (edges)
        *edges = NULL;
    if (count)
        *count = info.leaf_count;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo_v2(CUstream stream,
                                   CUstreamCaptureStatus *status,
                                   cuuint64_t *id, CUgraph *graph,
                                   const CUgraphNode **nodes, size_t *count);
CUresult cuStreamGetCaptureInfo_v2(CUstream stream,
                                   CUstreamCaptureStatus *status,
                                   cuuint64_t *id, CUgraph *graph,
                                   const CUgraphNode **nodes, size_t *count)
{
    return cuStreamGetCaptureInfo_v3(stream, status, id, graph, nodes, NULL,
                                     count);
}

CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode *nodes,
                                           const CUgraphEdgeData *edges,
                                           size_t count, unsigned int flags)
{
    (void)edges;
    NEED(driver_context());
    return driver_result(
        memsim_capture_depend(HANDLE(stream), (const uint64_t *)nodes, count,
                              flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES));
}

CUresult cuGraphCreate(CUgraph *graph, unsigned int flags)
{
    NEED_PLACE(graph);

    uint64_t handle;

    NEED(driver_context());
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    NEED(driver_result(memsim_graph_create(true, &handle)));
    *graph = (CUgraph)handle;
    return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph)
{
    return driver_result(memsim_graph_destroy(HANDLE(graph)));
}

CUresult cuGraphClone(CUgraph *clone, CUgraph graph)
{
    uint64_t handle;

    NEED(driver_result(memsim_graph_clone(HANDLE(graph), &handle)));
    *clone = (CUgraph)handle;
    return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    const struct graph_body *body = memsim_graph_get(HANDLE(graph));
    size_t found = 0;

    if (!body || !count)
        return CUDA_ERROR_INVALID_VALUE;
    for (struct graph_node *n = body->first; n; n = n->next, found++)
        if (nodes && found < *count)
            nodes[found] = (CUgraphNode)n;
    *count = found;
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType *type)
{
    const struct graph_node *node = memsim_graph_node_get(HANDLE(handle));

    if (!node)
        return CUDA_ERROR_INVALID_VALUE;
    *type = (CUgraphNodeType)node->type;
    return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph,
                                     unsigned long long flags)
{
    uint64_t handle;

    NEED(
        driver_result(memsim_graph_instantiate(HANDLE(graph), flags, &handle)));
    *exec = (CUgraphExec)handle;
    return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    NEED_PLACE(params);
    params->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
    params->hErrNode_out = NULL;
    return cuGraphInstantiateWithFlags(exec, graph, params->flags);
}

CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph,
                           CUgraphExecUpdateResultInfo *info)
{
    enum graph_difference difference;
    uint64_t node;
    int rc = memsim_graph_exec_update(HANDLE(exec), HANDLE(graph), &difference,
                                      &node);

    if (info)
        *info = (CUgraphExecUpdateResultInfo){
            .result = difference == GRAPH_TOPOLOGY
                          ? CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED
                      : difference == GRAPH_TYPE
                          ? CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED
                      : rc ? CU_GRAPH_EXEC_UPDATE_ERROR
                           : CU_GRAPH_EXEC_UPDATE_SUCCESS,
            .errorNode = (CUgraphNode)node,
        };
    return driver_result(rc);
}

CUresult cuGraphUpload(CUgraphExec exec, CUstream stream)
{
    int device;

    NEED(driver_context());
    if (!memsim_graph_exec_get(HANDLE(exec)))
        return CUDA_ERROR_INVALID_VALUE;
    return driver_result(memsim_stream_device(HANDLE(stream), &device));
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    NEED(driver_context());
    return driver_result(memsim_graph_launch(HANDLE(exec), HANDLE(stream)));
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    return driver_result(memsim_graph_exec_destroy(HANDLE(exec)));
}

CUresult cuGraphDebugDotPrint(CUgraph graph, const char *path,
                              unsigned int flags)
{
    (void)flags;
    return driver_result(memsim_graph_print(HANDLE(graph), path));
}
