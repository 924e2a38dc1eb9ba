/* SPDX-License-Identifier: Apache-2.0
 * Nodes of graphs: added by hand, and set anew, in a graph or in what was made
 * of it. Parameters become what the node does (struct graph_work). */
#include "capture/core/work/graph.h"

#include "capture/driver/module.h"

static CUresult work_kernel(const CUDA_KERNEL_NODE_PARAMS *p,
                            struct graph_work *work)
{
    struct function f;

    NEED_PLACE(p);
    if (!driver_function(p->func ? (const void *)p->func : p->kern, &f))
        return CUDA_ERROR_INVALID_HANDLE;
    *work = (struct graph_work){
        .type = GRAPH_KERNEL,
        .kernel = f.kernel,
        .launch = {.grid = {p->gridDimX, p->gridDimY, p->gridDimZ},
                   .block = {p->blockDimX, p->blockDimY, p->blockDimZ},
                   .shared_bytes = p->sharedMemBytes,
                   .arguments = p->kernelParams},
    };
    return CUDA_SUCCESS;
}

static uint64_t node_side(CUmemorytype type, const void *host,
                          CUdeviceptr device)
{
    if (type == CU_MEMORYTYPE_ARRAY)
        return 0;
    return type == CU_MEMORYTYPE_HOST ? (uint64_t)host : device;
}

/* As of the runtime's: no arrays, no gaps between planes. */
static CUresult work_copy(const CUDA_MEMCPY3D *c, struct graph_work *work)
{
    if (!c || !c->WidthInBytes || !c->Height || !c->Depth)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t to = node_side(c->dstMemoryType, c->dstHost, c->dstDevice);
    uint64_t from = node_side(c->srcMemoryType, c->srcHost, c->srcDevice);
    if (!to || !from ||
        (c->Depth > 1 && (c->srcHeight != c->Height || //
                          c->dstHeight != c->Height)))
        return CUDA_ERROR_NOT_SUPPORTED;
    uint64_t to_pitch = c->dstPitch ? c->dstPitch : c->WidthInBytes;
    uint64_t from_pitch = c->srcPitch ? c->srcPitch : c->WidthInBytes;
    if (c->WidthInBytes > to_pitch || c->WidthInBytes > from_pitch)
        return CUDA_ERROR_INVALID_VALUE;
    *work = (struct graph_work){
        .type = GRAPH_COPY,
        .words = {to + c->dstXInBytes +
                      (c->dstY + c->dstZ * c->dstHeight) * to_pitch,
                  from + c->srcXInBytes +
                      (c->srcY + c->srcZ * c->srcHeight) * from_pitch,
                  c->WidthInBytes},
        .rows = c->Height * c->Depth,
        .to_pitch = to_pitch,
        .from_pitch = from_pitch,
    };
    return CUDA_SUCCESS;
}

static CUresult work_set(const CUDA_MEMSET_NODE_PARAMS *p,
                         struct graph_work *work)
{
    NEED_PLACE(p);
    *work = (struct graph_work){
        .type = GRAPH_SET,
        .words = {p->dst, p->value, p->elementSize, p->width},
        .rows = p->height,
        .to_pitch = p->pitch,
    };
    return CUDA_SUCCESS;
}

static CUresult work_host(const CUDA_HOST_NODE_PARAMS *p,
                          struct graph_work *work)
{
    NEED_PLACE(p);
    *work = (struct graph_work){
        .type = GRAPH_HOST,
        .words = {(uint64_t)p->fn, (uint64_t)p->userData},
    };
    return CUDA_SUCCESS;
}

static CUresult node_add(CUgraphNode *node, CUgraph graph,
                         const CUgraphNode *before, size_t count,
                         const struct graph_work *work)
{
    uint64_t handle;

    NEED_PLACE(node);
    NEED(driver_result(memsim_graph_add(HANDLE(graph), (const uint64_t *)before,
                                        count, work, &handle)));
    *node = (CUgraphNode)handle;
    return CUDA_SUCCESS;
}

static CUresult node_set(CUgraphNode node, const struct graph_work *work)
{
    return driver_result(memsim_graph_node_set(HANDLE(node), work));
}

static CUresult exec_set(CUgraphExec exec, CUgraphNode node,
                         const struct graph_work *work)
{
    return driver_result(
        memsim_graph_exec_set(HANDLE(exec), HANDLE(node), work));
}

#define NODE_ADDED                                                             \
    CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count

CUresult cuGraphAddKernelNode(NODE_ADDED, const CUDA_KERNEL_NODE_PARAMS *p)
{
    struct graph_work work;

    NEED(work_kernel(p, &work));
    return node_add(node, graph, before, count, &work);
}

CUresult cuGraphAddMemcpyNode(NODE_ADDED, const CUDA_MEMCPY3D *p,
                              CUcontext context)
{
    struct graph_work work;

    (void)context;
    NEED(work_copy(p, &work));
    return node_add(node, graph, before, count, &work);
}

CUresult cuGraphAddMemsetNode(NODE_ADDED, const CUDA_MEMSET_NODE_PARAMS *p,
                              CUcontext context)
{
    struct graph_work work;

    (void)context;
    NEED(work_set(p, &work));
    return node_add(node, graph, before, count, &work);
}

CUresult cuGraphAddHostNode(NODE_ADDED, const CUDA_HOST_NODE_PARAMS *p)
{
    struct graph_work work;

    NEED(work_host(p, &work));
    return node_add(node, graph, before, count, &work);
}

CUresult cuGraphAddChildGraphNode(NODE_ADDED, CUgraph child)
{
    return node_add(
        node, graph, before, count,
        &(struct graph_work){.type = GRAPH_CHILD, .child = HANDLE(child)});
}

CUresult cuGraphAddEmptyNode(NODE_ADDED)
{
    return node_add(node, graph, before, count,
                    &(struct graph_work){.type = GRAPH_EMPTY});
}

CUresult cuGraphAddEventRecordNode(NODE_ADDED, CUevent event)
{
    return node_add(node, graph, before, count,
                    &(struct graph_work){.type = GRAPH_EVENT_RECORD,
                                         .words = {HANDLE(event)}});
}

CUresult cuGraphAddEventWaitNode(NODE_ADDED, CUevent event)
{
    (void)event;
    return node_add(node, graph, before, count,
                    &(struct graph_work){.type = GRAPH_EVENT_WAIT});
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode node,
                                    const CUDA_KERNEL_NODE_PARAMS *p)
{
    struct graph_work work;

    NEED(work_kernel(p, &work));
    return node_set(node, &work);
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D *p)
{
    struct graph_work work;

    NEED(work_copy(p, &work));
    return node_set(node, &work);
}

CUresult cuGraphMemsetNodeSetParams(CUgraphNode node,
                                    const CUDA_MEMSET_NODE_PARAMS *p)
{
    struct graph_work work;

    NEED(work_set(p, &work));
    return node_set(node, &work);
}

CUresult cuGraphHostNodeSetParams(CUgraphNode node,
                                  const CUDA_HOST_NODE_PARAMS *p)
{
    struct graph_work work;

    NEED(work_host(p, &work));
    return node_set(node, &work);
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS *p)
{
    struct graph_work work;

    NEED(work_kernel(p, &work));
    return exec_set(exec, node, &work);
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMCPY3D *p,
                                        CUcontext context)
{
    struct graph_work work;

    (void)context;
    NEED(work_copy(p, &work));
    return exec_set(exec, node, &work);
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS *p,
                                        CUcontext context)
{
    struct graph_work work;

    (void)context;
    NEED(work_set(p, &work));
    return exec_set(exec, node, &work);
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                      const CUDA_HOST_NODE_PARAMS *p)
{
    struct graph_work work;

    NEED(work_host(p, &work));
    return exec_set(exec, node, &work);
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                            CUgraph child)
{
    return exec_set(
        exec, node,
        &(struct graph_work){.type = GRAPH_CHILD, .child = HANDLE(child)});
}

CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node,
                                            CUevent event)
{
    return exec_set(exec, node,
                    &(struct graph_work){.type = GRAPH_EVENT_RECORD,
                                         .words = {HANDLE(event)}});
}

CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node,
                                          CUevent event)
{
    (void)event;
    return exec_set(exec, node, &(struct graph_work){.type = GRAPH_EVENT_WAIT});
}

CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node,
                               unsigned int now)
{
    return driver_result(
        memsim_graph_exec_enable(HANDLE(exec), HANDLE(node), now));
}

CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node,
                               unsigned int *now)
{
    bool is_on;

    NEED(driver_result(
        memsim_graph_exec_enabled(HANDLE(exec), HANDLE(node), &is_on)));
    *now = is_on;
    return CUDA_SUCCESS;
}
