/* SPDX-License-Identifier: Apache-2.0
 * Nodes of graphs: added by hand, and set anew, in a graph or in what was made
 * of it. Parameters become what the node does (struct graph_work). */
#include "capture/core/work/graph.h"

#include "capture/cudart/cudart.h"

#define GRAPH(graph) ((uint64_t)(graph))

static int work_kernel(const void *host, dim3 grid, dim3 block, unsigned shared,
                       void **arguments, struct graph_work *work)
{
    const struct kernel *kernel = cudart_kernel(host);

    *work = (struct graph_work){
        .type = GRAPH_KERNEL,
        .kernel = kernel,
        .launch = {.grid = {grid.x, grid.y, grid.z},
                   .block = {block.x, block.y, block.z},
                   .shared_bytes = shared,
                   .arguments = arguments},
    };
    return kernel ? CORE_OK : (int)cudaErrorInvalidDeviceFunction;
}

static int work_kernel_of(const struct cudaKernelNodeParams *p,
                          struct graph_work *work)
{
    return p ? work_kernel(p->func, p->gridDim, p->blockDim, p->sharedMemBytes,
                           p->kernelParams, work)
             : CORE_INVALID_VALUE;
}

static int work_copy(void *to, const void *from, size_t bytes,
                     enum cudaMemcpyKind kind, struct graph_work *work)
{
    *work = (struct graph_work){
        .type = GRAPH_COPY,
        .words = {(uint64_t)to, (uint64_t)from, bytes},
        .rows = 1,
    };
    return (unsigned)kind > cudaMemcpyDefault ? CORE_INVALID_DIRECTION
                                              : CORE_OK;
}

/* Pitched memory in up to two dimensions, or in three without gaps between the
 * planes; arrays are not there at all. */
static int work_copy_3d(const struct cudaMemcpy3DParms *p,
                        struct graph_work *work)
{
    if (!p || !p->srcPtr.ptr || !p->dstPtr.ptr)
        return CORE_INVALID_VALUE;
    const struct cudaExtent *e = &p->extent;
    const struct cudaPos *a = &p->dstPos, *b = &p->srcPos;
    if (p->srcArray || p->dstArray ||
        (e->depth > 1 &&
         (p->srcPtr.ysize != e->height || p->dstPtr.ysize != e->height)))
        return CORE_NOT_SUPPORTED;
    int rc = work_copy((char *)p->dstPtr.ptr + a->x +
                           (a->y + a->z * p->dstPtr.ysize) * p->dstPtr.pitch,
                       (char *)p->srcPtr.ptr + b->x +
                           (b->y + b->z * p->srcPtr.ysize) * p->srcPtr.pitch,
                       e->width, p->kind, work);
    work->rows = e->height * e->depth;
    work->to_pitch = p->dstPtr.pitch;
    work->from_pitch = p->srcPtr.pitch;
    if (work->rows > 1 &&
        (e->width > work->to_pitch || e->width > work->from_pitch))
        return CORE_INVALID_PITCH;
    return rc;
}

static int work_set(const struct cudaMemsetParams *p, struct graph_work *work)
{
    if (!p)
        return CORE_INVALID_VALUE;
    *work = (struct graph_work){
        .type = GRAPH_SET,
        .words = {(uint64_t)p->dst, p->value, p->elementSize, p->width},
        .rows = p->height,
        .to_pitch = p->pitch,
    };
    return CORE_OK;
}

static int work_host(const struct cudaHostNodeParams *p,
                     struct graph_work *work)
{
    if (!p)
        return CORE_INVALID_VALUE;
    *work = (struct graph_work){
        .type = GRAPH_HOST,
        .words = {(uint64_t)p->fn, (uint64_t)p->userData},
    };
    return CORE_OK;
}

static int work_child(cudaGraph_t child, struct graph_work *work)
{
    *work = (struct graph_work){.type = GRAPH_CHILD, .child = GRAPH(child)};
    return CORE_OK;
}

static int work_of(const struct cudaGraphNodeParams *p, struct graph_work *work)
{
    if (!p)
        return CORE_INVALID_VALUE;
    *work = (struct graph_work){.type = (enum graph_node_type)p->type};
    switch (p->type) {
    case cudaGraphNodeTypeKernel:
        return work_kernel(p->kernel.func, p->kernel.gridDim,
                           p->kernel.blockDim, p->kernel.sharedMemBytes,
                           p->kernel.kernelParams, work);
    case cudaGraphNodeTypeMemcpy:
        return work_copy_3d(&p->memcpy.copyParams, work);
    case cudaGraphNodeTypeMemset:
        return work_set(
            &(struct cudaMemsetParams){
                .dst = p->memset.dst,
                .pitch = p->memset.pitch,
                .value = p->memset.value,
                .elementSize = p->memset.elementSize,
                .width = p->memset.width,
                .height = p->memset.height,
            },
            work);
    case cudaGraphNodeTypeHost:
        return work_host(
            &(struct cudaHostNodeParams){p->host.fn, p->host.userData}, work);
    case cudaGraphNodeTypeGraph:
        return work_child(p->graph.graph, work);
    case cudaGraphNodeTypeEventRecord:
        work->words[0] = (uint64_t)p->eventRecord.event;
        return CORE_OK;
    case cudaGraphNodeTypeEmpty:
    case cudaGraphNodeTypeWaitEvent:
        return CORE_OK;
    default: /* semaphores, memory, conditions */
        return CORE_NOT_SUPPORTED;
    }
}

/* What work_...() said of the parameters, and then what becomes of them. */
static int node_add(int rc, cudaGraphNode_t *node, cudaGraph_t graph,
                    const cudaGraphNode_t *before, size_t count,
                    const struct graph_work *work)
{
    uint64_t handle;

    if (!node)
        return CORE_INVALID_VALUE;
    if (!rc)
        rc = memsim_graph_add(GRAPH(graph), (const uint64_t *)before, count,
                              work, &handle);
    if (!rc)
        *node = (cudaGraphNode_t)handle;
    return rc;
}

static int node_set(int rc, cudaGraphNode_t node, const struct graph_work *work)
{
    return rc ? rc : memsim_graph_node_set((uint64_t)node, work);
}

static int exec_set(int rc, cudaGraphExec_t exec, cudaGraphNode_t node,
                    const struct graph_work *work)
{
    return rc ? rc
              : memsim_graph_exec_set((uint64_t)exec, (uint64_t)node, work);
}

#define NODE_ADDED                                                             \
    cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *before,   \
        size_t count

cudaError_t cudaGraphAddKernelNode(NODE_ADDED,
                                   const struct cudaKernelNodeParams *p)
{
    struct graph_work work;
    int rc = work_kernel_of(p, &work);

    return cudart_result(node_add(rc, node, graph, before, count, &work));
}

cudaError_t cudaGraphAddMemcpyNode(NODE_ADDED,
                                   const struct cudaMemcpy3DParms *p)
{
    struct graph_work work;
    int rc = work_copy_3d(p, &work);

    return cudart_result(node_add(rc, node, graph, before, count, &work));
}

cudaError_t cudaGraphAddMemcpyNode1D(NODE_ADDED, void *to, const void *from,
                                     size_t bytes, enum cudaMemcpyKind kind)
{
    struct graph_work work;
    int rc = work_copy(to, from, bytes, kind, &work);

    return cudart_result(node_add(rc, node, graph, before, count, &work));
}

cudaError_t cudaGraphAddMemsetNode(NODE_ADDED, const struct cudaMemsetParams *p)
{
    struct graph_work work;
    int rc = work_set(p, &work);

    return cudart_result(node_add(rc, node, graph, before, count, &work));
}

cudaError_t cudaGraphAddHostNode(NODE_ADDED, const struct cudaHostNodeParams *p)
{
    struct graph_work work;
    int rc = work_host(p, &work);

    return cudart_result(node_add(rc, node, graph, before, count, &work));
}

cudaError_t cudaGraphAddChildGraphNode(NODE_ADDED, cudaGraph_t child)
{
    struct graph_work work;
    int rc = work_child(child, &work);

    return cudart_result(node_add(rc, node, graph, before, count, &work));
}

cudaError_t cudaGraphAddEmptyNode(NODE_ADDED)
{
    const struct graph_work work = {.type = GRAPH_EMPTY};

    return cudart_result(node_add(0, node, graph, before, count, &work));
}

cudaError_t cudaGraphAddEventRecordNode(NODE_ADDED, cudaEvent_t event)
{
    const struct graph_work work = {.type = GRAPH_EVENT_RECORD,
                                    .words = {(uint64_t)event}};

    return cudart_result(node_add(0, node, graph, before, count, &work));
}

cudaError_t cudaGraphAddEventWaitNode(NODE_ADDED, cudaEvent_t event)
{
    const struct graph_work work = {.type = GRAPH_EVENT_WAIT};

    (void)event;
    return cudart_result(node_add(0, node, graph, before, count, &work));
}

#if MEMSIM_CUDA_MAJOR >= 13
cudaError_t cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph,
                             const cudaGraphNode_t *before,
                             const cudaGraphEdgeData *edges, size_t count,
                             struct cudaGraphNodeParams *p)
{
    struct graph_work work;
    int rc = work_of(p, &work);

    (void)edges;
    return cudart_result(node_add(rc, node, graph, before, count, &work));
}
#else
cudaError_t cudaGraphAddNode(NODE_ADDED, struct cudaGraphNodeParams *p)
{
    struct graph_work work;
    int rc = work_of(p, &work);

    return cudart_result(node_add(rc, node, graph, before, count, &work));
}

cudaError_t cudaGraphAddNode_v2(cudaGraphNode_t *node, cudaGraph_t graph,
                                const cudaGraphNode_t *before,
                                const cudaGraphEdgeData *edges, size_t count,
                                struct cudaGraphNodeParams *p)
{
    (void)edges;
    return cudaGraphAddNode(node, graph, before, count, p);
}
#endif

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node,
                                         const struct cudaKernelNodeParams *p)
{
    struct graph_work work;
    int rc = work_kernel_of(p, &work);

    return cudart_result(node_set(rc, node, &work));
}

cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node,
                                         const struct cudaMemcpy3DParms *p)
{
    struct graph_work work;
    int rc = work_copy_3d(p, &work);

    return cudart_result(node_set(rc, node, &work));
}

cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *to,
                                           const void *from, size_t bytes,
                                           enum cudaMemcpyKind kind)
{
    struct graph_work work;
    int rc = work_copy(to, from, bytes, kind, &work);

    return cudart_result(node_set(rc, node, &work));
}

cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node,
                                         const struct cudaMemsetParams *p)
{
    struct graph_work work;
    int rc = work_set(p, &work);

    return cudart_result(node_set(rc, node, &work));
}

cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node,
                                       const struct cudaHostNodeParams *p)
{
    struct graph_work work;
    int rc = work_host(p, &work);

    return cudart_result(node_set(rc, node, &work));
}

cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node,
                                   struct cudaGraphNodeParams *p)
{
    struct graph_work work;
    int rc = work_of(p, &work);

    return cudart_result(node_set(rc, node, &work));
}

cudaError_t
cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                 const struct cudaKernelNodeParams *p)
{
    struct graph_work work;
    int rc = work_kernel_of(p, &work);

    return cudart_result(exec_set(rc, exec, node, &work));
}

cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec,
                                             cudaGraphNode_t node,
                                             const struct cudaMemcpy3DParms *p)
{
    struct graph_work work;
    int rc = work_copy_3d(p, &work);

    return cudart_result(exec_set(rc, exec, node, &work));
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec,
                                               cudaGraphNode_t node, void *to,
                                               const void *from, size_t bytes,
                                               enum cudaMemcpyKind kind)
{
    struct graph_work work;
    int rc = work_copy(to, from, bytes, kind, &work);

    return cudart_result(exec_set(rc, exec, node, &work));
}

cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec,
                                             cudaGraphNode_t node,
                                             const struct cudaMemsetParams *p)
{
    struct graph_work work;
    int rc = work_set(p, &work);

    return cudart_result(exec_set(rc, exec, node, &work));
}

cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec,
                                           cudaGraphNode_t node,
                                           const struct cudaHostNodeParams *p)
{
    struct graph_work work;
    int rc = work_host(p, &work);

    return cudart_result(exec_set(rc, exec, node, &work));
}

cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec,
                                                 cudaGraphNode_t node,
                                                 cudaGraph_t child)
{
    struct graph_work work;
    int rc = work_child(child, &work);

    return cudart_result(exec_set(rc, exec, node, &work));
}

cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t exec,
                                       cudaGraphNode_t node,
                                       struct cudaGraphNodeParams *p)
{
    struct graph_work work;
    int rc = work_of(p, &work);

    return cudart_result(exec_set(rc, exec, node, &work));
}

cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t exec,
                                                 cudaGraphNode_t node,
                                                 cudaEvent_t event)
{
    const struct graph_work work = {.type = GRAPH_EVENT_RECORD,
                                    .words = {(uint64_t)event}};

    return cudart_result(exec_set(0, exec, node, &work));
}

cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t exec,
                                               cudaGraphNode_t node,
                                               cudaEvent_t event)
{
    const struct graph_work work = {.type = GRAPH_EVENT_WAIT};

    (void)event;
    return cudart_result(exec_set(0, exec, node, &work));
}

cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node,
                                    unsigned int now)
{
    return cudart_result(
        memsim_graph_exec_enable((uint64_t)exec, (uint64_t)node, now));
}

cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node,
                                    unsigned int *now)
{
    bool is_on;
    int rc = memsim_graph_exec_enabled((uint64_t)exec, (uint64_t)node, &is_on);

    if (!rc)
        *now = is_on;
    return cudart_result(rc);
}
