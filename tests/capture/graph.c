/* SPDX-License-Identifier: Apache-2.0
 * Stream capture and graphs: what is allowed, what is carried out when. */
#include <cuda_runtime_api.h>
#include <pthread.h>

#include "answers.h"
#include "check.h"

static cudaStream_t stream_new(void)
{
    cudaStream_t stream = NULL;

    CHECK(!cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}

static cudaEvent_t event_new(void)
{
    cudaEvent_t event = NULL;

    CHECK(!cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    return event;
}

static int read_int(const void *p)
{
    int value = -1;

    CHECK(!cudaMemcpy(&value, p, sizeof value, cudaMemcpyDeviceToHost));
    return value;
}

TEST(captured_work_runs_at_launch)
{
    enum cudaStreamCaptureStatus status;
    cudaStream_t s = stream_new();
    cudaGraphExec_t exec;
    cudaGraph_t graph;
    size_t nodes = 0;
    void *p, *q;

    CHECK(!cudaMalloc(&p, 4));
    CHECK(!cudaMalloc(&q, 4));
    CHECK(!cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    CHECK(!cudaStreamIsCapturing(s, &status));
    CHECK(status == cudaStreamCaptureStatusActive);
    CHECK(!cudaMemsetAsync(p, 1, 4, s));
    CHECK(!cudaMemcpyAsync(q, p, 4, cudaMemcpyDeviceToDevice, s));
    CHECK(!cudaStreamEndCapture(s, &graph));
    CHECK(read_int(q) == 0);
    CHECK(!cudaGraphGetNodes(graph, NULL, &nodes));
    CHECK(nodes == 2);
    CHECK(!cudaGraphInstantiate(&exec, graph, 0));
    CHECK(!cudaGraphDestroy(graph));
    CHECK(!cudaGraphLaunch(exec, s));
    CHECK(read_int(q) == 0x01010101);
    CHECK(!cudaMemset(q, 0, 4));
    CHECK(!cudaGraphLaunch(exec, 0));
    CHECK(read_int(q) == 0x01010101);
    CHECK(!cudaGraphExecDestroy(exec));
    CHECK_CODE(cudaGraphLaunch(exec, s), cudaErrorInvalidValue);
    CHECK_CODE(cudaGraphDestroy(graph), cudaErrorInvalidValue);
}

TEST(streams_fork_and_join)
{
    cudaStream_t a = stream_new(), b = stream_new();
    cudaEvent_t fork_ = event_new(), join = event_new();
    enum cudaStreamCaptureStatus status;
    cudaGraphNode_t from[8], to[8];
    cudaGraph_t graph;
    size_t edges = 8;
    void *p;

    CHECK(!cudaMalloc(&p, 64));
    CHECK(!cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
    CHECK(!cudaMemsetAsync(p, 1, 4, a));
    CHECK(!cudaEventRecord(fork_, a));
    CHECK(!cudaStreamWaitEvent(b, fork_, 0));
    CHECK(!cudaStreamIsCapturing(b, &status));
    CHECK(status == cudaStreamCaptureStatusActive);
    CHECK(!cudaMemsetAsync(p, 2, 4, b));
    CHECK(!cudaMemsetAsync(p, 3, 4, a));
    CHECK(!cudaEventRecord(join, b));
    CHECK(!cudaStreamWaitEvent(a, join, 0));
    CHECK(!cudaMemsetAsync(p, 4, 4, a));
    CHECK(!cudaStreamEndCapture(a, &graph));
    CHECK(!cudaStreamIsCapturing(b, &status));
    CHECK(status == cudaStreamCaptureStatusNone);
    CHECK(!cudaGraphGetEdges(graph, from, to, NULL, &edges));
    CHECK(edges == 4); /* 1 to 2, 1 to 3, 2 and 3 to 4 */
}

TEST(an_unjoined_stream_fails_the_capture)
{
    cudaStream_t a = stream_new(), b = stream_new();
    cudaEvent_t event = event_new();
    cudaGraph_t graph = (cudaGraph_t)1;
    void *p;

    CHECK(!cudaMalloc(&p, 64));
    CHECK(!cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
    CHECK(!cudaEventRecord(event, a));
    CHECK(!cudaStreamWaitEvent(b, event, 0));
    CHECK(!cudaMemsetAsync(p, 2, 4, b));
    CHECK_CODE(cudaStreamEndCapture(a, &graph), cudaErrorStreamCaptureUnjoined);
    CHECK(!graph);
    CHECK(!cudaStreamSynchronize(b));
}

TEST(what_a_capture_forbids)
{
    cudaStream_t s = stream_new();
    enum cudaStreamCaptureStatus status;
    cudaGraph_t graph;
    void *p;

    CHECK(!cudaFree(0));
    CHECK(!cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    CHECK_CODE(cudaMalloc(&p, 4), cudaErrorStreamCaptureUnsupported);
    CHECK(!cudaStreamIsCapturing(s, &status));
    CHECK(status == cudaStreamCaptureStatusInvalidated);
    CHECK_CODE(cudaStreamEndCapture(s, &graph),
               cudaErrorStreamCaptureInvalidated);
    CHECK(!cudaMalloc(&p, 4));
    CHECK(!cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    CHECK_CODE(cudaStreamSynchronize(s), cudaErrorStreamCaptureUnsupported);
    CHECK_CODE(cudaMemsetAsync(p, 0, 4, s), cudaErrorStreamCaptureInvalidated);
    CHECK_CODE(cudaStreamEndCapture(s, &graph),
               cudaErrorStreamCaptureInvalidated);
    CHECK(!cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    CHECK_CODE(cudaDeviceSynchronize(), cudaErrorStreamCaptureUnsupported);
    CHECK_CODE(cudaStreamEndCapture(s, &graph),
               cudaErrorStreamCaptureInvalidated);
    CHECK_CODE(cudaStreamBeginCapture(0, cudaStreamCaptureModeGlobal),
               cudaErrorStreamCaptureUnsupported);
    CHECK_CODE(cudaStreamEndCapture(s, &graph), cudaErrorIllegalState);
}

TEST(relaxed_threads_may)
{
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    cudaStream_t s = stream_new();
    cudaGraph_t graph;
    void *p;

    CHECK(!cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    CHECK(!cudaThreadExchangeStreamCaptureMode(&mode));
    CHECK(mode == cudaStreamCaptureModeGlobal);
    CHECK(!cudaMalloc(&p, 4));
    CHECK(!cudaThreadExchangeStreamCaptureMode(&mode));
    CHECK(mode == cudaStreamCaptureModeRelaxed);
    CHECK(!cudaStreamEndCapture(s, &graph));
}

static void *other_thread(void *unused)
{
    void *p;

    (void)unused;
    return cudaMalloc(&p, 4) ? (void *)1 : NULL;
}

static void *malloc_elsewhere(enum cudaStreamCaptureMode mode)
{
    cudaStream_t s = stream_new();
    cudaGraph_t graph;
    pthread_t thread;
    void *failed = NULL;

    CHECK(!cudaStreamBeginCapture(s, mode));
    pthread_create(&thread, NULL, other_thread, NULL);
    pthread_join(thread, &failed);
    cudaStreamEndCapture(s, &graph);
    return failed;
}

TEST(other_threads_heed_global_captures_only)
{
    CHECK(malloc_elsewhere(cudaStreamCaptureModeGlobal));
    CHECK(!malloc_elsewhere(cudaStreamCaptureModeThreadLocal));
    CHECK(!malloc_elsewhere(cudaStreamCaptureModeRelaxed));
}

TEST(the_legacy_stream_would_wait)
{
    cudaStream_t blocking;
    cudaGraph_t graph;
    void *p;

    CHECK(!cudaMalloc(&p, 4));
    CHECK(!cudaStreamCreate(&blocking));
    CHECK(!cudaStreamBeginCapture(blocking, cudaStreamCaptureModeGlobal));
    CHECK_CODE(cudaMemsetAsync(p, 0, 4, 0), cudaErrorStreamCaptureImplicit);
    CHECK_CODE(cudaStreamEndCapture(blocking, &graph),
               cudaErrorStreamCaptureInvalidated);
}

TEST(events_from_outside_do_not_reach_in)
{
    cudaStream_t s = stream_new();
    cudaEvent_t event = event_new();
    cudaGraph_t graph;

    CHECK(!cudaEventRecord(event, 0));
    CHECK(!cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    CHECK_CODE(cudaStreamWaitEvent(s, event, 0),
               cudaErrorStreamCaptureIsolation);
    CHECK_CODE(cudaStreamEndCapture(s, &graph),
               cudaErrorStreamCaptureInvalidated);
}

static int calls;

static void count_call(void *data)
{
    (void)data;
    calls++;
}

TEST(graphs_made_by_hand)
{
    const struct cudaHostNodeParams host = {count_call, NULL};
    cudaGraphNode_t first, second, nodes[4] = {NULL};
    enum cudaGraphNodeType type;
    cudaGraphExec_t exec;
    cudaGraph_t graph, clone;
    size_t count = 4;

    CHECK(!cudaGraphCreate(&graph, 0));
    CHECK(!cudaGraphAddEmptyNode(&first, graph, NULL, 0));
    CHECK(!cudaGraphAddHostNode(&second, graph, &first, 1, &host));
    CHECK(!cudaGraphNodeGetType(second, &type));
    CHECK(type == cudaGraphNodeTypeHost);
    CHECK(!cudaGraphGetRootNodes(graph, nodes, &count));
    CHECK(count == 1 && nodes[0] == first);
    CHECK(!cudaGraphClone(&clone, graph));
    CHECK(!cudaGraphInstantiate(&exec, graph, 0));
    CHECK(!cudaGraphExecUpdate(exec, clone, NULL));
    CHECK(!cudaGraphLaunch(exec, 0));
    CHECK(!cudaGraphLaunch(exec, 0));
    CHECK(calls == 2);
    CHECK(!cudaGraphAddEmptyNode(&first, clone, NULL, 0));
    CHECK_CODE(cudaGraphExecUpdate(exec, clone, NULL),
               cudaErrorGraphExecUpdateFailure);
    CHECK_CODE(cudaGraphAddEmptyNode(&first, graph, &nodes[3], 1),
               cudaErrorInvalidValue);
}

TEST(a_graph_launched_in_a_capture_is_a_child)
{
    cudaStream_t s = stream_new();
    cudaGraphExec_t inner, outer;
    cudaGraph_t graph, source, clone;
    void *p, *q;

    CHECK(!cudaMalloc(&p, 4));
    CHECK(!cudaMalloc(&q, 4));
    CHECK(!cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    CHECK(!cudaMemcpyAsync(q, p, 4, cudaMemcpyDeviceToDevice, s));
    CHECK(!cudaStreamEndCapture(s, &source));
    CHECK(!cudaGraphInstantiate(&inner, source, 0));
    CHECK(!cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    CHECK(!cudaMemsetAsync(p, 1, 4, s));
    CHECK(!cudaGraphLaunch(inner, s));
    CHECK(!cudaMemsetAsync(p, 2, 4, s));
    CHECK(!cudaStreamEndCapture(s, &graph));
    CHECK(!cudaGraphClone(&clone, graph));
    CHECK(!cudaGraphDestroy(graph));
    CHECK(!cudaGraphInstantiate(&outer, clone, 0));
    CHECK(!cudaGraphExecDestroy(inner));
    CHECK(!cudaGraphDestroy(source));
    CHECK(read_int(q) == 0);
    CHECK(!cudaGraphLaunch(outer, s));
    CHECK(read_int(q) == 0x01010101);
    CHECK(read_int(p) == 0x02020202);
    CHECK(!cudaGraphDestroy(clone));
    CHECK(!cudaGraphExecDestroy(outer));
}

/* As an H200 did; with which code is not known. */
TEST(a_graph_without_its_source_is_refused_in_a_capture)
{
    cudaStream_t s = stream_new();
    cudaGraphExec_t inner;
    cudaGraph_t graph;
    void *p;

    CHECK(!cudaMalloc(&p, 4));
    CHECK(!cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    CHECK(!cudaMemsetAsync(p, 1, 4, s));
    CHECK(!cudaStreamEndCapture(s, &graph));
    CHECK(!cudaGraphInstantiate(&inner, graph, 0));
    CHECK(!cudaGraphDestroy(graph));
    CHECK(!cudaGraphLaunch(inner, s)); /* outside of one */
    CHECK(!cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    int code = cudaGraphLaunch(inner, s);
    answer(code, "code of a graph without its source launched in a capture");
    CHECK(code);
    CHECK(cudaMemsetAsync(p, 2, 4, s));
    CHECK(cudaStreamEndCapture(s, &graph));
}

TEST(a_large_set_in_a_graph_is_known)
{
    const size_t bytes = 4 << 20;
    cudaStream_t s = stream_new();
    cudaGraphExec_t exec;
    cudaGraph_t graph;
    char *p;

    CHECK(!cudaMalloc((void **)&p, bytes));
    CHECK(!cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    CHECK(!cudaMemsetAsync(p, 1, bytes, s));
    CHECK(!cudaMemsetAsync(p + 64, 2, 4, s));
    CHECK(!cudaStreamEndCapture(s, &graph));
    CHECK(!cudaGraphInstantiate(&exec, graph, 0));
    CHECK(!cudaMemset(p, 3, 4));
    CHECK(!cudaGraphLaunch(exec, s));
    CHECK(read_int(p) == 0x01010101);
    CHECK(read_int(p + bytes - 4) == 0x01010101);
    CHECK(read_int(p + 64) == 0x02020202);
}
