/* SPDX-License-Identifier: Apache-2.0
 * Nodes that are set anew: in a graph, and in what was made of it. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include "answers.h"
#include "carried.h"
#include "check.h"
#include "ptx.h"

static const void *kernel; /* PTX_FILL */

struct fill {
    int count, value;
    void *out;
    void *arguments[3];
    struct cudaKernelNodeParams params;
};

static const struct cudaKernelNodeParams *fill(struct fill *f, void *out,
                                               int count, int value)
{
    if (!kernel)
        kernel = ptx_kernel(PTX_FILL);
    *f = (struct fill){.count = count, .value = value, .out = out};
    f->arguments[0] = &f->count;
    f->arguments[1] = &f->value;
    f->arguments[2] = &f->out;
    f->params = (struct cudaKernelNodeParams){
        .func = (void *)kernel,
        .gridDim = {1, 1, 1},
        .blockDim = {128, 1, 1},
        .kernelParams = f->arguments,
    };
    return &f->params;
}

static int *memory_new(void)
{
    void *p = NULL;

    CHECK(!cudaMalloc(&p, 4096));
    CHECK(!cudaMemset(p, 0, 4096));
    return p;
}

static int read_int(const int *p)
{
    int value = -1;

    CHECK(!cudaMemcpy(&value, p, sizeof value, cudaMemcpyDeviceToHost));
    return value;
}

static cudaGraphExec_t exec_new(cudaGraph_t graph)
{
    cudaGraphExec_t exec = NULL;

    CHECK(!cudaGraphInstantiate(&exec, graph, 0));
    return exec;
}

static int launched(cudaGraphExec_t exec, const int *p)
{
    CHECK(!cudaGraphLaunch(exec, 0));
    return read_int(p);
}

TEST(a_kernel_is_set_anew)
{
    struct fill f;
    cudaGraphNode_t node, empty;
    cudaGraph_t graph;
    int *p = memory_new();

    need_carried();
    CHECK(!cudaGraphCreate(&graph, 0));
    CHECK(!cudaGraphAddKernelNode(&node, graph, NULL, 0, fill(&f, p, 4, 1)));
    CHECK(!cudaGraphAddEmptyNode(&empty, graph, &node, 1));
    cudaGraphExec_t a = exec_new(graph);
    CHECK(launched(a, p) == 1);
    CHECK(!cudaGraphExecKernelNodeSetParams(a, node, fill(&f, p, 4, 2)));
    CHECK(launched(a, p) == 2);
    cudaGraphExec_t b = exec_new(graph); /* the graph is as it was */
    CHECK(launched(b, p) == 1);
    CHECK(!cudaGraphKernelNodeSetParams(node, fill(&f, p, 4, 3)));
    CHECK(launched(a, p) == 2); /* what was made of it before is not changed */
    CHECK(launched(b, p) == 1);
    CHECK(launched(exec_new(graph), p) == 3);
    CHECK(!cudaGraphExecUpdate(a, graph, NULL));
    CHECK(launched(a, p) == 3);
    for (int i = 0; i < 3000; i++)
        CHECK(!cudaGraphExecKernelNodeSetParams(a, node, fill(&f, p, 4, i)));
    CHECK(launched(a, p) == 2999);
    CHECK_CODE(cudaGraphExecKernelNodeSetParams(a, empty, fill(&f, p, 4, 1)),
               cudaErrorInvalidValue);
    f.params.func = &node;
    CHECK_CODE(cudaGraphExecKernelNodeSetParams(a, node, &f.params),
               cudaErrorInvalidDeviceFunction);
    CHECK(!cudaGraphDestroy(graph));
    CHECK(launched(a, p) == 2999);
    CHECK(!cudaGraphExecDestroy(a));
}

TEST(copies_and_sets_are_set_anew)
{
    struct cudaMemsetParams set = {
        .elementSize = 4, .width = 2, .height = 1, .value = 7};
    int *p = memory_new(), *q = memory_new();
    cudaGraphNode_t nodes[2];
    cudaGraph_t graph;

    set.dst = p;
    CHECK(!cudaGraphCreate(&graph, 0));
    CHECK(!cudaGraphAddMemsetNode(&nodes[0], graph, NULL, 0, &set));
    CHECK(!cudaGraphAddMemcpyNode1D(&nodes[1], graph, nodes, 1, q, p, 4,
                                    cudaMemcpyDeviceToDevice));
    cudaGraphExec_t exec = exec_new(graph);
    CHECK(launched(exec, q) == 7);
    set.value = 9;
    CHECK(!cudaGraphExecMemsetNodeSetParams(exec, nodes[0], &set));
    CHECK(!cudaGraphExecMemcpyNodeSetParams1D(exec, nodes[1], q + 8, p + 1, 4,
                                              cudaMemcpyDeviceToDevice));
    CHECK(launched(exec, q + 8) == 9);
    CHECK(read_int(q) == 7);
    CHECK_CODE(cudaGraphExecMemcpyNodeSetParams1D(exec, nodes[0], q, p, 4,
                                                  cudaMemcpyDeviceToDevice),
               cudaErrorInvalidValue);
    set.elementSize = 3;
    CHECK_CODE(cudaGraphExecMemsetNodeSetParams(exec, nodes[0], &set),
               cudaErrorInvalidValue);
}

TEST(rows_are_copied_and_set)
{
    struct cudaMemsetParams set = {
        .elementSize = 4, .width = 2, .height = 3, .pitch = 64, .value = 5};
    struct cudaMemcpy3DParms copy = {.extent = {8, 3, 1}};
    int *p = memory_new(), *q = memory_new();
    cudaGraphNode_t nodes[2];
    cudaGraph_t graph;

    set.dst = p;
    copy.srcPtr = (struct cudaPitchedPtr){p, 64, 64, 3};
    copy.dstPtr = (struct cudaPitchedPtr){q, 16, 16, 3};
    CHECK(!cudaGraphCreate(&graph, 0));
    CHECK(!cudaGraphAddMemsetNode(&nodes[0], graph, NULL, 0, &set));
    CHECK(!cudaGraphAddMemcpyNode(&nodes[1], graph, nodes, 1, &copy));
    CHECK(launched(exec_new(graph), q) == 5);
    CHECK(read_int(p + 32 + 1) == 5 && read_int(p + 2) == 0);
    CHECK(read_int(q + 8 + 1) == 5 && read_int(q + 2) == 0);
    copy.extent.width = 32;
    CHECK_CODE(cudaGraphMemcpyNodeSetParams(nodes[1], &copy),
               cudaErrorInvalidPitchValue);
}

static void add_to(void *total)
{
    ++*(int *)total;
}

TEST(host_functions_and_generic_parameters)
{
    struct cudaGraphNodeParams p = {.type = cudaGraphNodeTypeHost};
    cudaGraphExec_t exec;
    cudaGraphNode_t node;
    cudaGraph_t graph;
    int a = 0, b = 0;

    p.host.fn = add_to;
    p.host.userData = &a;
    CHECK(!cudaGraphCreate(&graph, 0));
    CHECK(!cudaGraphAddNode(&node, graph, NULL, NULL, 0, &p));
    exec = exec_new(graph);
    p.host.userData = &b;
    CHECK(!cudaGraphExecNodeSetParams(exec, node, &p));
    CHECK(!cudaGraphLaunch(exec, 0) && !cudaStreamSynchronize(0));
    CHECK(a == 0 && b == 1);
    CHECK(!cudaGraphExecHostNodeSetParams(
        exec, node, &(struct cudaHostNodeParams){add_to, &a}));
    CHECK(!cudaGraphLaunch(exec, 0) && !cudaStreamSynchronize(0));
    CHECK(a == 1 && b == 1);
}

/* A graph that sets *P to VALUE. */
static cudaGraph_t setter(int *p, unsigned value)
{
    struct cudaMemsetParams set = {
        .dst = p, .elementSize = 4, .width = 1, .height = 1, .value = value};
    cudaGraphNode_t node;
    cudaGraph_t graph = NULL;

    CHECK(!cudaGraphCreate(&graph, 0));
    CHECK(!cudaGraphAddMemsetNode(&node, graph, NULL, 0, &set));
    return graph;
}

TEST(a_child_is_set_anew)
{
    int *p = memory_new();
    cudaGraph_t graph, other = setter(p, 2);
    cudaGraphNode_t node, more;

    CHECK(!cudaGraphCreate(&graph, 0));
    CHECK(!cudaGraphAddChildGraphNode(&node, graph, NULL, 0, setter(p, 1)));
    cudaGraphExec_t exec = exec_new(graph);
    CHECK(launched(exec, p) == 1);
    CHECK(!cudaGraphExecChildGraphNodeSetParams(exec, node, other));
    CHECK(launched(exec, p) == 2);
    CHECK(!cudaGraphAddEmptyNode(&more, other, NULL, 0));
    ANSWER_CODE(cudaGraphExecChildGraphNodeSetParams(exec, node, other),
                cudaErrorInvalidValue, "a child of another topology");
    CHECK(launched(exec, p) == 2);
}

TEST(a_node_can_be_off)
{
    int *p = memory_new();
    cudaGraph_t graph = setter(p, 1);
    cudaGraphExec_t exec = exec_new(graph);
    cudaGraphNode_t node, empty;
    size_t count = 1;
    unsigned on;

    CHECK(!cudaGraphGetNodes(graph, &node, &count));
    CHECK(!cudaGraphNodeGetEnabled(exec, node, &on) && on);
    CHECK(!cudaGraphNodeSetEnabled(exec, node, 0));
    CHECK(!cudaGraphNodeGetEnabled(exec, node, &on) && !on);
    CHECK(launched(exec, p) == 0);
    CHECK(!cudaGraphNodeSetEnabled(exec, node, 1));
    CHECK(launched(exec, p) == 1);
    CHECK(!cudaGraphAddEmptyNode(&empty, graph, NULL, 0));
    CHECK_CODE(cudaGraphNodeSetEnabled(exec, empty, 0), cudaErrorInvalidValue);
}

/* A copy of BYTES at FROM behind which no page can be read. */
static void *at_page_end(const void *from, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(pages != MAP_FAILED && !mprotect(pages + page, page, PROT_NONE));
    return memcpy(pages + page - bytes, from, bytes);
}

/* What a graph keeps of a kernel's arguments ends where they end. */
TEST(nothing_beyond_an_argument_is_read)
{
    cudaStream_t stream;
    cudaGraph_t graph;
    struct fill f;
    int *p = memory_new();

    need_carried();
    fill(&f, p, 1, 8);
    f.arguments[0] = at_page_end(&f.count, sizeof f.count);
    f.arguments[1] = at_page_end(&f.value, sizeof f.value);
    f.arguments[2] = at_page_end(&f.out, sizeof f.out);
    CHECK(!cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(!cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(!cudaLaunchKernel(kernel, (dim3){1, 1, 1}, (dim3){128, 1, 1},
                            f.arguments, 0, stream));
    CHECK(!cudaStreamEndCapture(stream, &graph));
    CHECK(launched(exec_new(graph), p) == 8);
}

TEST(captured_nodes_are_set_anew)
{
    struct cudaMemsetParams set = {
        .elementSize = 1, .width = 4, .height = 1, .value = 3};
    cudaGraphNode_t nodes[3];
    cudaStream_t stream;
    cudaGraph_t graph;
    size_t count = 3;
    struct fill f;
    int *p = memory_new(), *q = memory_new();

    need_carried();
    CHECK(!cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(!cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(!cudaMemsetAsync(p, 1, 4, stream));
    fill(&f, p + 4, 1, 8);
    CHECK(!cudaLaunchKernel(kernel, (dim3){1, 1, 1}, (dim3){128, 1, 1},
                            f.arguments, 0, stream));
    CHECK(!cudaMemcpyAsync(q, p, 32, cudaMemcpyDeviceToDevice, stream));
    CHECK(!cudaStreamEndCapture(stream, &graph));
    CHECK(!cudaGraphGetNodes(graph, nodes, &count));
    CHECK(count == 3);
    cudaGraphExec_t exec = exec_new(graph);
    CHECK(launched(exec, q) == 0x01010101 && read_int(q + 4) == 8);
    set.dst = p;
    CHECK(!cudaGraphExecMemsetNodeSetParams(exec, nodes[0], &set));
    CHECK(!cudaGraphExecKernelNodeSetParams(exec, nodes[1],
                                            fill(&f, p + 5, 1, 9)));
    CHECK(launched(exec, q) == 0x03030303 && read_int(q + 5) == 9);
    /* with its changes it becomes part of another */
    CHECK(!cudaMemset(q, 0, 64));
    CHECK(!cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(!cudaGraphLaunch(exec, stream));
    CHECK(!cudaStreamEndCapture(stream, &graph));
    CHECK(!cudaGraphExecDestroy(exec));
    CHECK(launched(exec_new(graph), q) == 0x03030303);
}

TEST(a_change_of_type_is_told)
{
    int *p = memory_new();
    cudaGraphExec_t exec = exec_new(setter(p, 1));
    cudaGraphExecUpdateResultInfo info;
    cudaGraphNode_t node;
    cudaGraph_t graph;

    CHECK(!cudaGraphCreate(&graph, 0));
    CHECK(!cudaGraphAddEmptyNode(&node, graph, NULL, 0));
    CHECK_CODE(cudaGraphExecUpdate(exec, graph, &info),
               cudaErrorGraphExecUpdateFailure);
    CHECK(info.result == cudaGraphExecUpdateErrorNodeTypeChanged);
    CHECK(info.errorNode == node);
    CHECK(!cudaGraphAddEmptyNode(&node, graph, NULL, 0));
    CHECK_CODE(cudaGraphExecUpdate(exec, graph, &info),
               cudaErrorGraphExecUpdateFailure);
    CHECK(info.result == cudaGraphExecUpdateErrorTopologyChanged);
    CHECK(launched(exec, p) == 1);
}

TEST(the_driver_does_the_same)
{
    CUDA_MEMSET_NODE_PARAMS set = {
        .elementSize = 4, .width = 1, .height = 1, .value = 1};
    CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .WidthInBytes = 4,
                          .Height = 1,
                          .Depth = 1};
    int *p = memory_new(), *q = memory_new();
    CUgraphNode nodes[2];
    CUgraphExec exec;
    CUgraph graph;

    set.dst = copy.srcDevice = (CUdeviceptr)p;
    copy.dstDevice = (CUdeviceptr)q;
    CHECK(!cuGraphCreate(&graph, 0));
    CHECK(!cuGraphAddMemsetNode(&nodes[0], graph, NULL, 0, &set, NULL));
    CHECK(!cuGraphAddMemcpyNode(&nodes[1], graph, nodes, 1, &copy, NULL));
    CHECK(!cuGraphInstantiate(&exec, graph, 0));
    CHECK(!cuGraphLaunch(exec, NULL) && read_int(q) == 1);
    set.value = 2;
    copy.dstDevice += 4;
    CHECK(!cuGraphExecMemsetNodeSetParams(exec, nodes[0], &set, NULL));
    CHECK(!cuGraphExecMemcpyNodeSetParams(exec, nodes[1], &copy, NULL));
    CHECK(!cuGraphLaunch(exec, NULL) && read_int(q + 1) == 2);
    CHECK(read_int(q) == 1);
    CHECK(!cuGraphNodeSetEnabled(exec, nodes[1], 0));
    CHECK_CODE(cuGraphExecMemsetNodeSetParams(exec, nodes[1], &set, NULL),
               CUDA_ERROR_INVALID_VALUE);
}

TEST(events_from_outside_are_nodes)
{
    cudaEvent_t a, b, c;
    enum cudaGraphNodeType types[3];
    cudaGraphNode_t nodes[3];
    cudaStream_t stream;
    cudaGraph_t graph;
    size_t count = 3;
    float ms;
    int *p = memory_new();

    CHECK(!cudaEventCreate(&a) && !cudaEventCreate(&b) && !cudaEventCreate(&c));
    CHECK(!cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(!cudaEventRecord(a, stream));
    CHECK(!cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(!cudaStreamWaitEvent(stream, a, cudaEventWaitExternal));
    CHECK(!cudaMemsetAsync(p, 1, 4, stream));
    CHECK(!cudaEventRecordWithFlags(b, stream, cudaEventRecordExternal));
    CHECK(!cudaStreamEndCapture(stream, &graph));
    CHECK(!cudaEventSynchronize(b)); /* not the capture's */
    CHECK_CODE(cudaEventElapsedTime(&ms, a, b), cudaErrorInvalidResourceHandle);
    CHECK(!cudaGraphGetNodes(graph, nodes, &count) && count == 3);
    for (int i = 0; i < 3; i++)
        CHECK(!cudaGraphNodeGetType(nodes[i], &types[i]));
    CHECK(types[0] == cudaGraphNodeTypeWaitEvent);
    CHECK(types[2] == cudaGraphNodeTypeEventRecord);
    cudaGraphExec_t exec = exec_new(graph);
    CHECK(launched(exec, p) == 0x01010101);
    CHECK(!cudaEventElapsedTime(&ms, a, b) && ms >= 0);
    CHECK(!cudaGraphExecEventRecordNodeSetEvent(exec, nodes[2], c));
    CHECK(!cudaEventDestroy(b));
    CHECK(launched(exec, p) == 0x01010101);
    CHECK(!cudaEventElapsedTime(&ms, a, c));
    CHECK_CODE(cudaEventRecordWithFlags(a, stream, 2), cudaErrorInvalidValue);
}

/* hip-tests, run on NVIDIA's runtime: graph_memset_node_test_common.hh,
 * graph_tests_common.hh, hipGraphExecMemcpyNodeSetParams.cc. */
TEST(parameters_that_cannot_be)
{
    const struct cudaMemsetParams good = {
        .elementSize = 4, .width = 4, .height = 1, .dst = memory_new()};
    struct cudaMemsetParams p[8];
    cudaGraphNode_t node, twice[2];
    cudaGraph_t graph;
    struct fill f;
    int *q = memory_new();

    need_carried();
    CHECK(!cudaGraphCreate(&graph, 0));
    CHECK(!cudaGraphAddMemsetNode(&node, graph, NULL, 0, &good));
    cudaGraphExec_t exec = exec_new(graph);
    for (int i = 0; i < 8; i++)
        p[i] = good;
    p[0].dst = NULL;
    p[1].elementSize = 3;
    p[2].width = 0;
    p[3].width = 4096;
    p[4].height = 0;
    p[5].height = 2, p[5].pitch = 4;
    p[6].height = 1024, p[6].pitch = 16;
    p[7].height = 2, p[7].pitch = 16; /* an instantiated one has one row */
    for (int i = 0; i < 8; i++)
        CHECK_CODE(cudaGraphExecMemsetNodeSetParams(exec, node, &p[i]),
                   cudaErrorInvalidValue);
    CHECK(!cudaGraphMemsetNodeSetParams(node, &p[7]));
    twice[0] = twice[1] = node;
    CHECK_CODE(cudaGraphAddEmptyNode(&node, graph, twice, 2),
               cudaErrorInvalidValue);
    CHECK_CODE(cudaGraphAddEmptyNode(NULL, graph, NULL, 0),
               cudaErrorInvalidValue);
    CHECK_CODE(cudaGraphAddMemcpyNode1D(&node, graph, NULL, 0, q, good.dst,
                                        8192, cudaMemcpyDefault),
               cudaErrorInvalidValue);
    CHECK_CODE(cudaGraphAddMemcpyNode1D(&node, graph, NULL, 0, q, good.dst, 4,
                                        (enum cudaMemcpyKind) - 1),
               cudaErrorInvalidMemcpyDirection);
    fill(&f, q, 4, 1);
    f.params.kernelParams = NULL;
    CHECK_CODE(cudaGraphAddKernelNode(&node, graph, NULL, 0, &f.params),
               cudaErrorInvalidValue);
    CHECK(!cudaGraphDestroy(graph)); /* and with it the nodes, as handles */
    if (!is_real())                  /* a handle after its end */
        CHECK_CODE(cudaGraphNodeSetEnabled(exec, twice[0], 0),
                   cudaErrorInvalidValue);
    CHECK(!cudaGraphLaunch(exec, 0));
}

static cudaError_t launched_after_free(size_t bytes)
{
    cudaGraphExec_t exec;
    cudaStream_t stream;
    cudaGraph_t graph;
    void *p, *q;

    CHECK(!cudaMalloc(&p, bytes) && !cudaMalloc(&q, bytes));
    CHECK(!cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(!cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(!cudaMemcpyAsync(p, q, 64, cudaMemcpyDeviceToDevice, stream));
    CHECK(!cudaStreamEndCapture(stream, &graph));
    exec = exec_new(graph);
    CHECK(!cudaFree(q));
    CHECK(!cudaGraphLaunch(exec, stream));
    return cudaStreamSynchronize(stream);
}

TEST(freed_memory_ends_the_context)
{
    CHECK(!launched_after_free(4096)); /* its page is another's too */
    CHECK_CODE(launched_after_free(64 << 20), cudaErrorIllegalAddress);
    CHECK_CODE(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
}
