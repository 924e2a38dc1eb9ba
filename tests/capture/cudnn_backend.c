/* SPDX-License-Identifier: Apache-2.0 */
#include <cudnn.h>

#include "check.h"
#include "cudnn_problem.h"
#include "cudnn_trace.h"

#define COUNT(array) ((int64_t)(sizeof(array) / sizeof *(array)))

static cudnnBackendDescriptor_t variant_pack(void *workspace)
{
    cudnnBackendDescriptor_t pack = make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    int64_t uids[] = {'x', 'w', 'y'};
    void *data[] = {uids, uids, uids};

    set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 3, uids);
    set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3,
        data);
    set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1,
        &workspace);
    CHECK(!cudnnBackendFinalize(pack));
    return pack;
}

static cudnnStatus_t execute_pack(cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack)
{
    static cudnnHandle_t handle;

    if (!handle)
        CHECK(!cudnnCreate(&handle));
    return cudnnBackendExecute(handle, plan, pack);
}

static cudnnStatus_t execute(cudnnBackendDescriptor_t plan, void *workspace)
{
    cudnnBackendDescriptor_t pack = variant_pack(workspace);
    cudnnStatus_t status = execute_pack(plan, pack);

    CHECK(!cudnnBackendDestroyDescriptor(pack));
    return status;
}

static const struct problem plain = {
    .type = CUDNN_DATA_FLOAT,
    .x = {8, 64, 32, 32},
    .w = {128, 64, 3, 3},
    .y = {8, 128, 30, 30},
    .stride = 1,
    .channels_last = true,
};

TEST(a_convolution_is_recorded)
{
    need_capability(80, 999, "TF32");
    for (int kind = 0; kind < 3; kind++) {
        struct problem problem = plain;

        problem.kind = kind;
        CHECK(!execute(plan_for(&problem, 0), NULL));
        struct seen seen = trace_seen(TRACE_CONVOLUTION);
        CHECK(seen.count == kind + 1);
        CHECK_UINT(seen.convolution.operation, kind);
        CHECK_UINT(seen.convolution.type, CUDNN_DATA_FLOAT);
        CHECK_UINT(seen.convolution.workspace_bytes, 0);
        CHECK_UINT(seen.convolution.engine, 1); /* tensor cores */
        CHECK_STR(seen.text, "x=8,64,32,32 xs=65536,1,2048,64 xt=float "
                             "w=128,64,3,3 ws=576,1,192,64 wt=float "
                             "y=8,128,30,30 ys=115200,1,3840,128 yt=float "
                             "pad=0,0 stride=1,1 dilation=1,1 groups=1 "
                             "layout=nhwc math=tensor");
    }
}

TEST(the_second_engine_has_no_tensor_cores)
{
    need_capability(80, 999, "TF32");
    CHECK(!execute(plan_for(&plain, 1), NULL));
    struct seen seen = trace_seen(TRACE_CONVOLUTION);
    CHECK_UINT(seen.convolution.engine, 0);
    CHECK(strstr(seen.text, "math=plain"));
}

TEST(a_benchmark_finds_tensor_cores_faster)
{
    need_capability(80, 999, "TF32");
    cudnnBackendDescriptor_t best = plan_for(&plain, 0);
    cudnnBackendDescriptor_t other = plan_for(&plain, 1);
    cudnnBackendDescriptor_t pack = variant_pack(NULL);

    CHECK(!execute_pack(other, pack));
    CHECK(!execute_pack(best, pack));
    CHECK(!execute_pack(best, pack));
    CHECK(execute_pack(other, pack) == CUDNN_STATUS_NOT_SUPPORTED);
    CHECK(trace_seen(TRACE_CONVOLUTION).count == 3);
    CHECK(!execute(other, NULL));
}

TEST(notes_tell_tensor_cores_apart)
{
    need_capability(80, 999, "TF32");
    cudnnBackendDescriptor_t found[4], graph = convolution_graph(&plain);
    int64_t count = configurations(graph, found);

    CHECK(count == 2);
    for (int i = 0; i < count; i++) {
        cudnnBackendDescriptor_t engine = make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
        cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
        int64_t notes_count = -1, one = -1;

        CHECK(!cudnnBackendGetAttribute(found[i], CUDNN_ATTR_ENGINECFG_ENGINE,
                                        CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &one,
                                        &engine));
        CHECK(!cudnnBackendGetAttribute(
            engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
            COUNT(notes), &notes_count, notes));
        CHECK(notes_count == !i);
        CHECK(i || notes[0] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
        CHECK(number_of(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX) == !i);
    }
    CHECK(number_of(graph, CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT) == 3);
}

TEST(the_last_fallback_needs_no_workspace)
{
    struct problem problem = plain;
    cudnnBackendDescriptor_t found[4];

    problem.channels_last = false;
    cudnnBackendDescriptor_t graph = convolution_graph(&problem);
    CHECK(configurations_by(CUDNN_HEUR_MODE_FALLBACK, graph, found) == 2);
    cudnnBackendDescriptor_t first = plan_of(found[0]), last = plan_of(found[1]);
    CHECK(number_of(first, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) > 0);
    CHECK(number_of(last, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) == 0);
    CHECK(!execute(last, NULL));
    CHECK_UINT(trace_seen(TRACE_CONVOLUTION).convolution.workspace_bytes, 0);
}

TEST(double_precision_has_one_engine)
{
    struct problem problem = plain;
    cudnnBackendDescriptor_t found[4];

    problem.type = CUDNN_DATA_DOUBLE;
    CHECK(configurations(convolution_graph(&problem), found) == 1);
}

/* data/workspaces/cudnn.csv; the first is a measurement on an H100. */
TEST(workspaces_follow_the_table)
{
    need_capability(HOPPER, HOPPER, "sizes of Hopper");
    struct problem patch = {
        .type = CUDNN_DATA_BFLOAT16,
        .x = {4, 3, 224, 224},
        .w = {768, 3, 16, 16},
        .y = {4, 768, 14, 14},
        .stride = 16,
    };
    CHECK_UINT(workspace_of(&patch, 0), 7561728);
    CHECK_UINT(workspace_of(&patch, 1), 0);

    struct problem vit_h = {
        .type = CUDNN_DATA_HALF,
        .x = {64, 3, 224, 224},
        .w = {1280, 3, 14, 14},
        .y = {64, 1280, 16, 16},
        .stride = 14,
    };
    CHECK_UINT(
        workspace_of(&vit_h, 0),
        2 * (64 * 3 * 224 * 224 + 1280 * 3 * 14 * 14 + 64 * 1280 * 16 * 16));
    vit_h.kind = 2;
    uint64_t wgrad = (uint64_t)workspace_of(&vit_h, 0);
    CHECK(wgrad > UINT64_C(198) << 20 && wgrad <= UINT64_C(200) << 20);
    vit_h.type = CUDNN_DATA_FLOAT;
    CHECK_UINT(workspace_of(&vit_h, 0), 0);
    vit_h.channels_last = true;
    CHECK_UINT(workspace_of(&vit_h, 0), 0);
}

/* ResNet-50's, measured on a V100; here the engine without tensor cores. */
TEST(winograd_without_tensor_cores)
{
    need_capability(80, 999, "TF32");
    static const struct {
        int64_t channels, height, bytes;
    } seen[] = {{256, 14, 47185920}, {512, 7, 56623104}, {64, 56, 410112}};

    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++) {
        int64_t c = seen[i].channels, h = seen[i].height;
        struct problem conv = {.type = CUDNN_DATA_FLOAT,
                               .x = {32, c, h, h},
                               .w = {c, c, 3, 3},
                               .y = {32, c, h, h},
                               .stride = 1};
        CHECK_UINT(workspace_of(&conv, 1), seen[i].bytes);
    }
    struct problem gradient = {.type = CUDNN_DATA_FLOAT,
                               .x = {32, 64, 56, 56},
                               .w = {64, 64, 3, 3},
                               .y = {32, 64, 56, 56},
                               .stride = 1,
                               .kind = 2};
    CHECK_UINT(workspace_of(&gradient, 1), 116195328);
}

/* ConvNeXtV2-H's last stage: (134, 136] MiB at batch 32. */
TEST(depthwise_gradients_take_much)
{
    need_capability(70, 999, "tensor cores");
    struct problem depthwise = {
        .type = CUDNN_DATA_HALF,
        .x = {32, 2816, 7, 7},
        .w = {2816, 1, 7, 7},
        .y = {32, 2816, 7, 7},
        .stride = 1,
        .channels_last = true,
        .kind = 2,
    };
    uint64_t bytes = (uint64_t)workspace_of(&depthwise, 0);
    CHECK(bytes > UINT64_C(134) << 20 && bytes <= UINT64_C(136) << 20);
    depthwise.kind = 0;
    CHECK_UINT(workspace_of(&depthwise, 0), 0);
}

/* Hopper's own size is certain, a V100's is not. */
TEST(a_borrowed_size_has_a_range)
{
    need_capability(HOPPER, HOPPER, "sizes of Hopper");
    struct problem patch = {.type = CUDNN_DATA_BFLOAT16,
                            .x = {4, 3, 224, 224},
                            .w = {768, 3, 16, 16},
                            .y = {4, 768, 14, 14},
                            .stride = 16};
    struct problem conv = {.type = CUDNN_DATA_FLOAT,
                           .x = {32, 512, 7, 7},
                           .w = {512, 512, 3, 3},
                           .y = {32, 512, 7, 7},
                           .stride = 1};
    int64_t workspace;

    CHECK(!execute(plan_for(&patch, 0), &workspace));
    struct seen own = trace_seen(TRACE_CONVOLUTION);
    CHECK_UINT(own.convolution.workspace_most, 7561728);
    CHECK_UINT(own.convolution.workspace_gpu, 90);
    CHECK(!execute(plan_for(&conv, 1), &workspace));
    struct seen borrowed = trace_seen(TRACE_CONVOLUTION);
    CHECK_UINT(borrowed.convolution.workspace_bytes, 56623104);
    CHECK_UINT(borrowed.convolution.workspace_most, 4 * 56623104);
    CHECK_UINT(borrowed.convolution.workspace_gpu, 70);
}

TEST(a_plan_that_needs_workspace_gets_some)
{
    need_capability(70, 999, "tensor cores");
    struct problem patch = {
        .type = CUDNN_DATA_HALF,
        .x = {1, 16, 8, 8},
        .w = {16, 16, 3, 3},
        .y = {1, 16, 6, 6},
        .stride = 1,
    };
    cudnnBackendDescriptor_t plan = plan_for(&patch, 0);
    int64_t bytes = number_of(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);

    CHECK(bytes > 0);
    CHECK(execute(plan, NULL) == CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
    CHECK(trace_seen(TRACE_CONVOLUTION).count == 0);
    CHECK(!execute(plan, &bytes));
    CHECK_UINT(trace_seen(TRACE_CONVOLUTION).convolution.workspace_bytes,
               (uint64_t)bytes);
}

TEST(attention_is_recorded)
{
    cudnnBackendDescriptor_t found[4];
    cudnnBackendDescriptor_t op =
        make(CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR);
    int64_t q[] = {2, 8, 128, 64}, k[] = {2, 2, 256, 64};

    set_part(op, CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC,
             tensor(1, CUDNN_DATA_HALF, q, false));
    set_part(op, CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC,
             tensor(2, CUDNN_DATA_HALF, k, false));
    set_part(op, CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC,
             tensor(3, CUDNN_DATA_HALF, k, false));
    set_part(op, CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC,
             tensor(4, CUDNN_DATA_HALF, q, false));
    CHECK(!cudnnBackendFinalize(op));
    CHECK(configurations(graph_of(op), found) == 1);
    cudnnBackendDescriptor_t plan = plan_of(found[0]);
    CHECK_UINT(number_of(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE), 256);
    CHECK(!execute(plan, found));
    struct seen seen = trace_seen(TRACE_ATTENTION);
    CHECK(seen.count == 1);
    CHECK_UINT(seen.attention.workspace_bytes, 256);
    CHECK_UINT(seen.attention.type, CUDNN_DATA_HALF);
    CHECK_STR(seen.text,
              "q=2,8,128,64 qs=65536,8192,64,1 qt=half "
              "k=2,2,256,64 ks=32768,16384,64,1 kt=half "
              "v=2,2,256,64 vs=32768,16384,64,1 vt=half "
              "o=2,8,128,64 os=65536,8192,64,1 ot=half "
              "causal=0 window=0 padding=0 bias=0 dropout=0 stats=0");
}

/* Llama's 32 query and 8 key heads, 4096 tokens: dK and dV of all 32 heads. */
TEST(gradients_of_grouped_queries_take_a_workspace)
{
    cudnnBackendDescriptor_t found[4];
    cudnnBackendDescriptor_t op =
        make(CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR);
    int64_t q[] = {1, 32, 4096, 64}, k[] = {1, 8, 4096, 64};

    set_part(op, CUDNN_ATTR_OPERATION_SDPA_BWD_QDESC,
             tensor(1, CUDNN_DATA_HALF, q, false));
    set_part(op, CUDNN_ATTR_OPERATION_SDPA_BWD_KDESC,
             tensor(2, CUDNN_DATA_HALF, k, false));
    set_part(op, CUDNN_ATTR_OPERATION_SDPA_BWD_VDESC,
             tensor(3, CUDNN_DATA_HALF, k, false));
    set_part(op, CUDNN_ATTR_OPERATION_SDPA_BWD_ODESC,
             tensor(4, CUDNN_DATA_HALF, q, false));
    CHECK(!cudnnBackendFinalize(op));
    CHECK(configurations(graph_of(op), found) == 1);
    CHECK_UINT(number_of(plan_of(found[0]),
                         CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE),
               256 + 4 * 4096 * 32 * 64);
}

TEST(other_graphs_are_recorded_too)
{
    cudnnBackendDescriptor_t found[4];
    cudnnBackendDescriptor_t op =
        make(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    int64_t dims[] = {1, 2, 3, 4};

    set_part(op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC,
             tensor(1, CUDNN_DATA_HALF, dims, false));
    CHECK(!cudnnBackendFinalize(op));
    CHECK(configurations(graph_of(op), found) == 1);
    CHECK(!execute(plan_of(found[0]), NULL));
    CHECK_STR(trace_seen(TRACE_LIBRARY_CALL).text,
              "operation=31 2200=1,2,3,4 2200s=24,12,4,1 2200t=half ");
}

TEST(what_was_not_set_is_told)
{
    cudnnBackendDescriptor_t found[4], graph = convolution_graph(&plain);
    int32_t shared = -1;
    int64_t count = -1;

    configurations(graph, found);
    CHECK(!cudnnBackendGetAttribute(found[0],
                                    CUDNN_ATTR_ENGINECFG_SHARED_MEMORY_USED,
                                    CUDNN_TYPE_INT32, 1, &count, &shared));
    CHECK(count == 1 && shared == 0);
    CHECK(!cudnnBackendGetAttribute(found[0], CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                    CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count,
                                    NULL));
    CHECK(count == 0);
}

TEST(descriptors_are_filled_in_on_request)
{
    cudnnBackendDescriptor_t graph = convolution_graph(&plain);
    cudnnBackendDescriptor_t op =
        make(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
    cudnnBackendDescriptor_t x = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    int64_t count, dims[5] = {0};

    CHECK(!cudnnBackendGetAttribute(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS,
                                    CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                                    &op));
    CHECK(!cudnnBackendGetAttribute(
        op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
        CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &x));
    CHECK(!cudnnBackendGetAttribute(x, CUDNN_ATTR_TENSOR_DIMENSIONS,
                                    CUDNN_TYPE_INT64, 5, &count, dims));
    CHECK(count == 4 && dims[0] == 8 && dims[3] == 32 && dims[4] == 0);
}

TEST(wrong_calls_are_refused)
{
    cudnnBackendDescriptor_t d = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    cudnnBackendDescriptor_t op =
        make(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    int64_t number = 1, dims[] = {1, 1, 1, 1};

    CHECK(cudnnBackendCreateDescriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR, NULL));
    CHECK(cudnnBackendFinalize(NULL));
    CHECK(cudnnBackendFinalize((void *)0x12345678));
    CHECK(cudnnBackendFinalize(&number));
    CHECK(cudnnBackendFinalize(d)); /* incomplete */
    CHECK(cudnnBackendSetAttribute(d, CUDNN_ATTR_TENSOR_UNIQUE_ID,
                                   CUDNN_TYPE_INT64, 1, NULL));
    CHECK(cudnnBackendSetAttribute(d, CUDNN_ATTR_TENSOR_UNIQUE_ID,
                                   (cudnnBackendAttributeType_t)99, 1,
                                   &number));
    CHECK(cudnnBackendSetAttribute(d, CUDNN_ATTR_TENSOR_UNIQUE_ID,
                                   CUDNN_TYPE_INT64, -1, &number));
    CHECK(cudnnBackendSetAttribute(op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC,
                                   CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                   &(void *){NULL}));
    CHECK(cudnnBackendGetAttribute(d, CUDNN_ATTR_TENSOR_UNIQUE_ID,
                                   CUDNN_TYPE_INT64, 1, NULL, &number));
    set_part(op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, d);
    CHECK_CODE(cudnnBackendFinalize(op), CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
    d = tensor(1, CUDNN_DATA_HALF, dims, false);
    CHECK(cudnnBackendSetAttribute(d, CUDNN_ATTR_TENSOR_UNIQUE_ID,
                                   CUDNN_TYPE_INT64, 1, &number));
    CHECK(cudnnBackendGetAttribute(d, CUDNN_ATTR_TENSOR_UNIQUE_ID,
                                   CUDNN_TYPE_INT32, 1, NULL, &number));
    CHECK(cudnnBackendExecute(NULL, d, d));
    CHECK(!cudnnBackendDestroyDescriptor(d));
    CHECK(cudnnBackendDestroyDescriptor(d));
}

/* KiB of this process in memory. */
static long resident_kib(void)
{
    char line[256];
    long kib = 0;
    FILE *status = fopen("/proc/self/status", "r");

    while (fgets(line, sizeof line, status))
        if (sscanf(line, "VmRSS: %ld", &kib) == 1)
            break;
    fclose(status);
    return kib;
}

TEST(descriptors_do_not_pile_up)
{
    long before = 0;

    for (int i = 0; i < 6000; i++) {
        if (i == 3000)
            before = resident_kib();
        CHECK(!cudnnBackendDestroyDescriptor(plan_for(&plain, 0)));
    }
    CHECK(resident_kib() - before < 1024);
}
