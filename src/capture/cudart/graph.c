/* SPDX-License-Identifier: Apache-2.0
 * Graphs, as the runtime has them. */
#include "capture/core/work/graph.h"

#include <string.h>

#include "capture/core/work/stream.h"
#include "capture/cudart/cudart.h"

#define GRAPH(graph) ((uint64_t)(graph))

cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned int flags)
{
    uint64_t handle;
    int rc = flags || !graph ? CORE_INVALID_VALUE
                             : memsim_device_open(memsim_device_current());

    if (!rc)
        rc = memsim_graph_create(true, &handle);
    if (!rc)
        *graph = (cudaGraph_t)handle;
    return cudart_result(rc);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    return cudart_result(memsim_graph_destroy(GRAPH(graph)));
}

cudaError_t cudaGraphClone(cudaGraph_t *clone, cudaGraph_t graph)
{
    uint64_t handle;
    int rc = memsim_graph_clone(GRAPH(graph), &handle);

    if (!rc)
        *clone = (cudaGraph_t)handle;
    return cudart_result(rc);
}

/* Nodes that ROOTS lets through, into NODES, of which *COUNT have room; the
 * number of all of them where NODES is NULL. */
static cudaError_t nodes_list(cudaGraph_t graph, cudaGraphNode_t *nodes,
                              size_t *count, bool roots)
{
    const struct graph_body *body = memsim_graph_get(GRAPH(graph));
    size_t found = 0;

    if (!body || !count)
        return cudart_result(CORE_INVALID_VALUE);
    for (struct graph_node *n = body->first; n; n = n->next) {
        if (roots && n->dependency_count)
            continue;
        if (nodes && found < *count)
            nodes[found] = (cudaGraphNode_t)n;
        found++;
    }
    for (size_t i = found; nodes && i < *count; i++)
        nodes[i] = NULL;
    *count = found;
    return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes,
                              size_t *count)
{
    return nodes_list(graph, nodes, count, false);
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes,
                                  size_t *count)
{
    return nodes_list(graph, nodes, count, true);
}

static cudaError_t edges_list(cudaGraph_t graph, cudaGraphNode_t *from,
                              cudaGraphNode_t *to, size_t *count)
{
    const struct graph_body *body = memsim_graph_get(GRAPH(graph));
    size_t found = 0;

    if (!body || !count)
        return cudart_result(CORE_INVALID_VALUE);
    for (struct graph_node *n = body->first; n; n = n->next)
        for (uint32_t i = 0; i < n->dependency_count; i++, found++)
            if (from && to && found < *count) {
                from[found] = (cudaGraphNode_t)n->dependencies[i];
                to[found] = (cudaGraphNode_t)n;
            }
    *count = found;
    return cudaSuccess;
}

static cudaError_t dependencies_list(cudaGraphNode_t handle,
                                     cudaGraphNode_t *nodes, size_t *count)
{
    const struct graph_node *node = memsim_graph_node_get((uint64_t)handle);

    if (!node || !count)
        return cudart_result(CORE_INVALID_VALUE);
    for (size_t i = 0; nodes && i < *count && i < node->dependency_count; i++)
        nodes[i] = (cudaGraphNode_t)node->dependencies[i];
    *count = node->dependency_count;
    return cudaSuccess;
}

#if MEMSIM_CUDA_MAJOR >= 13
cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from,
                              cudaGraphNode_t *to, cudaGraphEdgeData *edges,
                              size_t *count)
{
    if (edges && count)
        memset(edges, 0, *count * sizeof *edges);
    return edges_list(graph, from, to, count);
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node,
                                         cudaGraphNode_t *nodes,
                                         cudaGraphEdgeData *edges,
                                         size_t *count)
{
    if (edges && count)
        memset(edges, 0, *count * sizeof *edges);
    return dependencies_list(node, nodes, count);
}
#else
cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from,
                              cudaGraphNode_t *to, size_t *count)
{
    return edges_list(graph, from, to, count);
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node,
                                         cudaGraphNode_t *nodes, size_t *count)
{
    return dependencies_list(node, nodes, count);
}
#endif

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t handle,
                                 enum cudaGraphNodeType *type)
{
    const struct graph_node *node = memsim_graph_node_get((uint64_t)handle);

    if (!node)
        return cudart_result(CORE_INVALID_VALUE);
    *type = (enum cudaGraphNodeType)node->type;
    return cudaSuccess;
}

static cudaError_t instantiate_graph(cudaGraphExec_t *exec, cudaGraph_t graph,
                                     unsigned long long flags)
{
    uint64_t handle;
    int rc = exec ? memsim_graph_instantiate(GRAPH(graph), flags, &handle)
                  : CORE_INVALID_VALUE;

    if (!rc)
        *exec = (cudaGraphExec_t)handle;
    return cudart_result(rc);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                 unsigned long long flags)
{
    return instantiate_graph(exec, graph, flags);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec,
                                          cudaGraph_t graph,
                                          unsigned long long flags)
{
    return instantiate_graph(exec, graph, flags);
}

cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t *exec,
                                           cudaGraph_t graph,
                                           cudaGraphInstantiateParams *params)
{
    NEED(params);
    params->result_out = cudaGraphInstantiateSuccess;
    params->errNode_out = NULL;
    return instantiate_graph(exec, graph, params->flags);
}

cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t handle,
                                  unsigned long long *flags)
{
    const struct graph_exec *exec = memsim_graph_exec_get((uint64_t)handle);

    if (!exec)
        return cudart_result(CORE_INVALID_VALUE);
    *flags = exec->flags;
    return cudaSuccess;
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo *info)
{
    enum graph_difference difference;
    uint64_t node;
    int rc = memsim_graph_exec_update((uint64_t)exec, GRAPH(graph), &difference,
                                      &node);

    if (info)
        *info = (cudaGraphExecUpdateResultInfo){
            .result = difference == GRAPH_TOPOLOGY
                          ? cudaGraphExecUpdateErrorTopologyChanged
                      : difference == GRAPH_TYPE
                          ? cudaGraphExecUpdateErrorNodeTypeChanged
                      : rc ? cudaGraphExecUpdateError
                           : cudaGraphExecUpdateSuccess,
            .errorNode = (cudaGraphNode_t)node,
        };
    return cudart_result(rc);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream)
{
    int device;
    int rc = memsim_graph_exec_get((uint64_t)exec)
                 ? memsim_stream_device(STREAM(stream), &device)
                 : CORE_INVALID_VALUE;

    return cudart_result(rc);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    return cudart_result(memsim_graph_launch((uint64_t)exec, STREAM(stream)));
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    return cudart_result(memsim_graph_exec_destroy((uint64_t)exec));
}

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path,
                                   unsigned int flags)
{
    (void)flags;
    return cudart_result(memsim_graph_print(GRAPH(graph), path));
}
