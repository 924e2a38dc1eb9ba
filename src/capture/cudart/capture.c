/* SPDX-License-Identifier: Apache-2.0
 * Stream capture, as the runtime has it. */
#include "capture/core/work/stream_capture.h"

#include "capture/cudart/cudart.h"

cudaError_t cudaStreamBeginCapture(cudaStream_t stream,
                                   enum cudaStreamCaptureMode mode)
{
    return cudart_result(
        memsim_capture_begin(STREAM(stream), (enum capture_mode)mode, 0));
}

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream,
                                          cudaGraph_t graph,
                                          const cudaGraphNode_t *nodes,
                                          const cudaGraphEdgeData *edges,
                                          size_t count,
                                          enum cudaStreamCaptureMode mode)
{
    int rc = memsim_capture_begin(STREAM(stream), (enum capture_mode)mode,
                                  (uint64_t)graph);

    (void)edges;
    if (!rc)
        rc = memsim_capture_depend(STREAM(stream), (const uint64_t *)nodes,
                                   count, true);
    return cudart_result(rc);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    struct capture_info info;
    uint64_t made = 0;
    int rc = memsim_capture_info(STREAM(stream), &info);

    if (!graph && !rc) /* an H200 asks for a capture first */
        rc = info.status == CAPTURE_NONE ? CORE_ILLEGAL_STATE
                                         : CORE_INVALID_VALUE;
    else
        rc = memsim_capture_end(STREAM(stream), &made);
    if (graph)
        *graph = (cudaGraph_t)made;
    return cudart_result(rc);
}

cudaError_t
cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    NEED(mode);

    int value = (int)*mode;
    int rc = memsim_capture_exchange_mode(&value);

    *mode = (enum cudaStreamCaptureMode)value;
    return cudart_result(rc);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
                                  enum cudaStreamCaptureStatus *status)
{
    struct capture_info info;

    if (!status)
        return cudart_result(CORE_INVALID_VALUE);
    int rc = memsim_capture_info(STREAM(stream), &info);
    *status = (enum cudaStreamCaptureStatus)info.status;
    return cudart_result(rc);
}

static int info_write(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                      unsigned long long *id, cudaGraph_t *graph,
                      const cudaGraphNode_t **nodes, size_t *count)
{
    struct capture_info info;
    int rc = status ? memsim_capture_info(STREAM(stream), &info)
                    : CORE_INVALID_VALUE;

    if (!status)
        return rc;
    *status = (enum cudaStreamCaptureStatus)info.status;
    if (id)
        *id = info.id;
    if (graph)
        *graph = (cudaGraph_t)info.graph;
    if (nodes)
        *nodes = (const cudaGraphNode_t *)info.leaves;
    if (count)
        *count = info.leaf_count;
    return rc;
}

#if MEMSIM_CUDA_MAJOR >= 13
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream,
                                     enum cudaStreamCaptureStatus *status,
                                     unsigned long long *id, cudaGraph_t *graph,
                                     const cudaGraphNode_t **nodes,
                                     const cudaGraphEdgeData **edges,
                                     size_t *count)
{
    if (edges)
        *edges = NULL;
    return cudart_result(info_write(stream, status, id, graph, nodes, count));
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream,
                                                cudaGraphNode_t *nodes,
                                                const cudaGraphEdgeData *edges,
                                                size_t count,
                                                unsigned int flags)
{
    (void)edges;
    return cudart_result(
        memsim_capture_depend(STREAM(stream), (const uint64_t *)nodes, count,
                              flags == cudaStreamSetCaptureDependencies));
}
#else
/* A macro makes this the second form of the call; the first, of CUDA 10, wants
 * the status and the id alone. */
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream,
                                     enum cudaStreamCaptureStatus *status,
                                     unsigned long long *id, cudaGraph_t *graph,
                                     const cudaGraphNode_t **nodes,
                                     size_t *count)
{
    return cudart_result(info_write(stream, status, id, graph, nodes, count));
}

cudaError_t cudaStreamGetCaptureInfo_v3(
    cudaStream_t stream, enum cudaStreamCaptureStatus *status,
    unsigned long long *id, cudaGraph_t *graph, const cudaGraphNode_t **nodes,
    const cudaGraphEdgeData **edges, size_t *count)
{
    if (edges)
        *edges = NULL;
    return cudart_result(info_write(stream, status, id, graph, nodes, count));
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream,
                                                cudaGraphNode_t *nodes,
                                                size_t count,
                                                unsigned int flags)
{
    return cudart_result(
        memsim_capture_depend(STREAM(stream), (const uint64_t *)nodes, count,
                              flags == cudaStreamSetCaptureDependencies));
}

#undef cudaStreamGetCaptureInfo
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream,
                                     enum cudaStreamCaptureStatus *status,
                                     unsigned long long *id);
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream,
                                     enum cudaStreamCaptureStatus *status,
                                     unsigned long long *id)
{
    return cudart_result(info_write(stream, status, id, NULL, NULL, NULL));
}
#endif
