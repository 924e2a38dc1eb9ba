/* SPDX-License-Identifier: Apache-2.0
 * What a wrong call answers: one row each, with where the code was read. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdio.h>

#include "answers.h"
#include "check.h"

#define MIB (1ul << 20)

static cudaStream_t stream_new(void)
{
    cudaStream_t stream = NULL;

    CHECK(!cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}

static cudaStream_t stream_destroyed(void)
{
    cudaStream_t stream = stream_new();

    CHECK(!cudaStreamDestroy(stream));
    return stream;
}

static cudaEvent_t event_new(unsigned flags)
{
    cudaEvent_t event = NULL;

    CHECK(!cudaEventCreateWithFlags(&event, flags));
    return event;
}

static cudaEvent_t event_destroyed(void)
{
    cudaEvent_t event = event_new(0);

    CHECK(!cudaEventDestroy(event));
    return event;
}

static void *device_memory(size_t bytes)
{
    void *p = NULL;

    CHECK(!cudaMalloc(&p, bytes));
    return p;
}

static char host[8192] __attribute__((aligned(4096)));

/* Places. */
static int version_nowhere(void)
{
    return cudaDriverGetVersion(NULL);
}

static int peer_nowhere(void)
{
    return cudaDeviceCanAccessPeer(NULL, 0, 0);
}

static int flags_nowhere(void)
{
    return cudaStreamGetFlags(stream_new(), NULL);
}

static int no_host_function(void)
{
    return cudaLaunchHostFunc(stream_new(), NULL, NULL);
}

/* Handles. */
static int stream_destroyed_twice(void)
{
    return cudaStreamDestroy(stream_destroyed());
}

static int stream_default_destroyed(void)
{
    return cudaStreamDestroy(NULL);
}

static int work_on_destroyed(void)
{
    return cudaMemcpyAsync(device_memory(8), host, 8, cudaMemcpyHostToDevice,
                           stream_destroyed());
}

static int capture_of_destroyed(void)
{
    return cudaStreamBeginCapture(stream_destroyed(),
                                  cudaStreamCaptureModeGlobal);
}

static int capturing_of_destroyed(void)
{
    enum cudaStreamCaptureStatus status;

    return cudaStreamIsCapturing(stream_destroyed(), &status);
}

static int end_of_destroyed_capture(void)
{
    cudaStream_t stream = stream_new();
    cudaGraph_t graph;

    CHECK(!cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(!cudaStreamDestroy(stream));
    return cudaStreamEndCapture(stream, &graph);
}

static int host_function_on_destroyed(void)
{
    return cudaLaunchHostFunc(stream_destroyed(), (cudaHostFn_t)free, NULL);
}

static int free_on_invented(void)
{
    void *p;

    CHECK(!cudaMallocAsync(&p, 8, 0));
    return cudaFreeAsync(p, (cudaStream_t)-1);
}

static int event_destroyed_twice(void)
{
    return cudaEventDestroy(event_destroyed());
}

static int no_event_destroyed(void)
{
    return cudaEventDestroy(NULL);
}

static int no_event_recorded(void)
{
    return cudaEventRecord(NULL, NULL);
}

static int wait_for_no_event(void)
{
    return cudaStreamWaitEvent(stream_new(), NULL, 0);
}

static int wait_with_flags(void)
{
    return cudaStreamWaitEvent(stream_new(), event_new(0), ~0u);
}

static int events_unrecorded(void)
{
    float ms;

    return cudaEventElapsedTime(&ms, event_new(0), event_new(0));
}

static int events_without_time(void)
{
    cudaEvent_t event = event_new(cudaEventDisableTiming);
    float ms;

    CHECK(!cudaEventRecord(event, 0));
    return cudaEventElapsedTime(&ms, event, event);
}

static int elapsed_nowhere(void)
{
    return cudaEventElapsedTime(NULL, event_new(0), event_new(0));
}

static int interprocess_with_time(void)
{
    cudaEvent_t event;

    return cudaEventCreateWithFlags(&event, cudaEventInterprocess);
}

static int event_never_recorded(void)
{
    return cudaEventQuery(event_new(0));
}

/* Memory. */
static int host_freed_as_device(void)
{
    return cudaFree(host);
}

static int freed_twice(void)
{
    void *p = device_memory(8);

    CHECK(!cudaFree(p));
    return cudaFree(p);
}

static int inside_freed(void)
{
    return cudaFree((char *)device_memory(1024) + 512);
}

static int registered_freed(void)
{
    CHECK(!cudaHostRegister(host, 4096, 0));
    return cudaFreeHost(host);
}

static int registered_twice(void)
{
    CHECK(!cudaHostRegister(host, 4096, 0));
    return cudaHostRegister(host, 4096, 0);
}

static int registered_around(void)
{
    CHECK(!cudaHostRegister(host + 4096, 4096, 0));
    return cudaHostRegister(host, 8192, 0);
}

static int registered_inside(void)
{
    CHECK(!cudaHostRegister(host, 8192, 0));
    return cudaHostRegister(host + 4096, 4096, 0);
}

static int nothing_registered(void)
{
    return cudaHostRegister(host, 0, 0);
}

static int unregistered_twice(void)
{
    CHECK(!cudaHostRegister(host, 4096, 0));
    CHECK(!cudaHostUnregister(host));
    return cudaHostUnregister(host);
}

static int null_unregistered(void)
{
    return cudaHostUnregister(NULL);
}

static int pinned_unregistered(void)
{
    void *p;

    CHECK(!cudaHostAlloc(&p, 4096, 0));
    return cudaHostUnregister(p);
}

static int copy_of_freed(void)
{
    void *p = device_memory(8);

    CHECK(!cudaFree(p));
    return cudaMemcpy(host, p, 8, cudaMemcpyDeviceToHost);
}

static int copy_without_direction(void)
{
    return cudaMemcpy(device_memory(8), host, 8, (enum cudaMemcpyKind) - 1);
}

static int copy_of_null(void)
{
    return cudaMemcpy(host, NULL, 8, cudaMemcpyDeviceToHost);
}

static int rows_wider_than_pitch(void)
{
    return cudaMemcpy2D(device_memory(1024), 16, host, 16, 17, 2,
                        cudaMemcpyHostToDevice);
}

static int endless_rows(void)
{
    size_t pitch;
    void *p;

    return cudaMallocPitch(&p, &pitch, SIZE_MAX, 1);
}

static int endless_columns(void)
{
    size_t pitch;
    void *p;

    return cudaMallocPitch(&p, &pitch, 1, SIZE_MAX);
}

static int no_rows(void)
{
    size_t pitch;
    void *p;

    return cudaMallocPitch(&p, &pitch, 0, 1);
}

static int endless_async(void)
{
    void *p;

    return cudaMallocAsync(&p, SIZE_MAX, 0);
}

static int async_nowhere(void)
{
    return cudaMallocAsync(NULL, 8, 0);
}

static int null_freed_async(void)
{
    return cudaFreeAsync(NULL, 0);
}

static int freed_twice_async(void)
{
    void *p;

    CHECK(!cudaMallocAsync(&p, 8, 0));
    CHECK(!cudaFreeAsync(p, 0));
    return cudaFreeAsync(p, 0);
}

/* Pools. */
static cudaMemPool_t pool_new(void)
{
    const struct cudaMemPoolProps props = {
        .allocType = cudaMemAllocationTypePinned,
        .location = {.type = cudaMemLocationTypeDevice},
    };
    cudaMemPool_t pool = NULL;

    CHECK(!cudaMemPoolCreate(&pool, &props));
    return pool;
}

static int pool_of_nothing(void)
{
    const struct cudaMemPoolProps props = {
        .location = {.type = cudaMemLocationTypeDevice},
    };
    cudaMemPool_t pool;

    return cudaMemPoolCreate(&pool, &props);
}

static int pool_nowhere(void)
{
    const struct cudaMemPoolProps props = {
        .allocType = cudaMemAllocationTypePinned,
        .location = {.type = cudaMemLocationTypeDevice, .id = 9},
    };
    cudaMemPool_t pool;

    return cudaMemPoolCreate(&pool, &props);
}

static int pool_destroyed_twice(void)
{
    cudaMemPool_t pool = pool_new();

    CHECK(!cudaMemPoolDestroy(pool));
    return cudaMemPoolDestroy(pool);
}

static int default_pool_destroyed(void)
{
    cudaMemPool_t pool;

    CHECK(!cudaDeviceGetDefaultMemPool(&pool, 0));
    return cudaMemPoolDestroy(pool);
}

static int no_pool_destroyed(void)
{
    return cudaMemPoolDestroy(NULL);
}

/* Other processes' memory. */
static int own_handle_opened(void)
{
    cudaIpcMemHandle_t handle;
    void *p;

    CHECK(!cudaIpcGetMemHandle(&handle, device_memory(1024)));
    return cudaIpcOpenMemHandle(&p, handle, cudaIpcMemLazyEnablePeerAccess);
}

static int handle_of_freed(void)
{
    cudaIpcMemHandle_t handle;
    void *p = device_memory(1024);

    CHECK(!cudaFree(p));
    return cudaIpcGetMemHandle(&handle, p);
}

static int handle_of_end(void)
{
    cudaIpcMemHandle_t handle;

    return cudaIpcGetMemHandle(&handle, (char *)device_memory(1024) + 1024);
}

static int own_memory_closed(void)
{
    return cudaIpcCloseMemHandle(device_memory(1024));
}

/* Virtual memory. */
static const CUmemAllocationProp plain = {
    .type = CU_MEM_ALLOCATION_TYPE_PINNED,
    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
};

static int no_addresses(void)
{
    CUdeviceptr p;

    CHECK(!cudaFree(0));
    return (int)cuMemAddressReserve(&p, 0, 0, 0, 0);
}

static int odd_alignment(void)
{
    CUdeviceptr p;

    CHECK(!cudaFree(0));
    return (int)cuMemAddressReserve(&p, 2 * MIB, 3, 0, 0);
}

static int odd_physical(void)
{
    CUmemGenericAllocationHandle h;

    CHECK(!cudaFree(0));
    return (int)cuMemCreate(&h, 2 * MIB - 1, &plain, 0);
}

static int part_unmapped(void)
{
    CUmemGenericAllocationHandle h;
    CUdeviceptr p;

    CHECK(!cudaFree(0));
    CHECK(!cuMemAddressReserve(&p, 4 * MIB, 0, 0, 0));
    CHECK(!cuMemCreate(&h, 4 * MIB, &plain, 0));
    CHECK(!cuMemMap(p, 4 * MIB, 0, h, 0));
    return (int)cuMemUnmap(p, 4 * MIB - 1);
}

static int access_before_map(void)
{
    CUdeviceptr p;

    CHECK(!cudaFree(0));
    CHECK(!cuMemAddressReserve(&p, 4 * MIB, 0, 0, 0));
    return (int)cuMemcpyHtoD(p, host, 8);
}

static int driver_malloc_of_nothing(void)
{
    CUdeviceptr p;

    CHECK(!cudaFree(0));
    return (int)cuMemAlloc(&p, 0);
}

/* Captures and graphs. */
static int legacy_captured(void)
{
    return cudaStreamBeginCapture(0, cudaStreamCaptureModeGlobal);
}

static int captured_twice(void)
{
    cudaStream_t stream = stream_new();

    CHECK(!cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    return cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
}

static int captured_in_no_mode(void)
{
    return cudaStreamBeginCapture(stream_new(),
                                  (enum cudaStreamCaptureMode) - 1);
}

static int end_of_no_capture(void)
{
    cudaGraph_t graph;

    return cudaStreamEndCapture(stream_new(), &graph);
}

static int end_in_legacy(void)
{
    cudaGraph_t graph;

    return cudaStreamEndCapture(NULL, &graph);
}

static int end_to_nowhere(void)
{
    return cudaStreamEndCapture(stream_new(), NULL);
}

static int status_to_nowhere(void)
{
    return cudaStreamIsCapturing(stream_new(), NULL);
}

/* A capture under way, in a stream that the legacy one waits for. */
static cudaStream_t capture_begin(void)
{
    cudaStream_t stream;

    CHECK(!cudaStreamCreate(&stream));
    CHECK(!cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    return stream;
}

static int captured_stream_queried(void)
{
    return cudaStreamQuery(capture_begin());
}

static int captured_event(int (*ask)(cudaEvent_t event))
{
    cudaStream_t stream = capture_begin();
    cudaEvent_t event;

    CHECK(!cudaEventCreate(&event));
    CHECK(!cudaEventRecord(event, stream));
    return ask(event);
}

/* An H200: it ends the capture, too. */
static int ended_after_event_was_queried(void)
{
    cudaStream_t stream = capture_begin();
    cudaGraph_t graph = (cudaGraph_t)1;
    cudaEvent_t event;

    CHECK(!cudaEventCreate(&event));
    CHECK(!cudaEventRecord(event, stream));
    CHECK_CODE(cudaEventQuery(event), cudaErrorCapturedEvent);
    int code = cudaStreamEndCapture(stream, &graph);
    CHECK(!graph);
    return code;
}

static int event_query(cudaEvent_t event)
{
    return cudaEventQuery(event);
}

static int event_synchronize(cudaEvent_t event)
{
    return cudaEventSynchronize(event);
}

static int captured_event_queried(void)
{
    return captured_event(event_query);
}

static int captured_event_waited_for(void)
{
    return captured_event(event_synchronize);
}

static int copy_beside_capture(void)
{
    void *p = device_memory(8);

    capture_begin();
    return cudaMemcpy(p, host, 8, cudaMemcpyHostToDevice);
}

static int legacy_asked_beside_capture(void)
{
    enum cudaStreamCaptureStatus status;

    capture_begin();
    return cudaStreamIsCapturing(NULL, &status);
}

static int legacy_called_beside_capture(void)
{
    capture_begin();
    return cudaLaunchHostFunc(NULL, (cudaHostFn_t)free, NULL);
}

static int captures_merged(void)
{
    cudaStream_t a = stream_new(), b = stream_new();
    cudaEvent_t event = event_new(0);

    CHECK(!cudaStreamBeginCapture(a, cudaStreamCaptureModeRelaxed));
    CHECK(!cudaStreamBeginCapture(b, cudaStreamCaptureModeRelaxed));
    CHECK(!cudaEventRecord(event, a));
    return cudaStreamWaitEvent(b, event, 0);
}

static int ended_where_it_did_not_begin(void)
{
    cudaStream_t a = stream_new(), b = stream_new();
    cudaEvent_t event = event_new(0);
    cudaGraph_t graph;

    CHECK(!cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
    CHECK(!cudaEventRecord(event, a));
    CHECK(!cudaStreamWaitEvent(b, event, 0));
    return cudaStreamEndCapture(b, &graph);
}

static int empty_graph_launched(void)
{
    cudaGraphExec_t exec;
    cudaGraph_t graph;

    CHECK(!cudaGraphCreate(&graph, 0));
    CHECK(!cudaGraphInstantiate(&exec, graph, 0));
    return cudaGraphLaunch(exec, 0);
}

static int no_graph_instantiated(void)
{
    cudaGraphExec_t exec;

    return cudaGraphInstantiate(&exec, NULL, 0);
}

static int destroyed_graph_launched(void)
{
    cudaGraphExec_t exec;
    cudaGraph_t graph;

    CHECK(!cudaGraphCreate(&graph, 0));
    CHECK(!cudaGraphInstantiate(&exec, graph, 0));
    CHECK(!cudaGraphExecDestroy(exec));
    return cudaGraphLaunch(exec, 0);
}

/* Devices. */
static int no_device_selected(void)
{
    return cudaSetDevice(1);
}

static int peer_of_itself(void)
{
    return cudaDeviceEnablePeerAccess(0, 0);
}

static int peer_with_flags(void)
{
    return cudaDeviceEnablePeerAccess(0, 1);
}

/* hip-tests: ROCm/hip-tests 87c8a04, catch/unit, what runs on NVIDIA's runtime
 * (HIP's names for the codes are CUDA's, its numbers partly its own). RT, DRV:
 * the runtime's and the driver's manual. lupine: lupinemachines/lupine, probed
 * there on driver 590.48.01. H200: this program there, driver 580.159.04. */
#define ROW(call, code, source)                                                \
    {                                                                          \
#call, call, code, source                                              \
    }
static const struct row {
    const char *name;
    int (*call)(void);
    int code;
    const char *source;
} rows[] = {
    ROW(version_nowhere, 1, "hip-tests hipDriverGetVersion.cc"),
    ROW(peer_nowhere, 1, "hip-tests hipDeviceCanAccessPeer.cc"),
    ROW(flags_nowhere, 1, "hip-tests hipStreamGetFlags.cc"),
    ROW(no_host_function, 1, "hip-tests hipLaunchHostFunc.cc"),
    ROW(stream_destroyed_twice, 709, "hip-tests hipStreamDestroy.cc"),
    ROW(stream_default_destroyed, 400, "hip-tests hipStreamDestroy.cc"),
    ROW(work_on_destroyed, 709, "hip-tests hipMemcpyAsync.cc"),
    ROW(capture_of_destroyed, 709, "hip-tests hipStreamBeginCapture.cc"),
    ROW(capturing_of_destroyed, 709, "hip-tests hipStreamIsCapturing.cc"),
    ROW(end_of_destroyed_capture, 709, "hip-tests hipStreamEndCapture.cc"),
    ROW(host_function_on_destroyed, 709, "hip-tests hipLaunchHostFunc.cc"),
    ROW(free_on_invented, 400, "hip-tests hipFreeAsync.cc"),
    ROW(event_destroyed_twice, 709, "hip-tests hipEventDestroy.cc"),
    ROW(no_event_destroyed, 400, "hip-tests hipEventDestroy.cc"),
    ROW(no_event_recorded, 400, "hip-tests Unit_hipEventRecord.cc"),
    ROW(wait_for_no_event, 400, "hip-tests hipStreamWaitEvent.cc"),
    ROW(wait_with_flags, 1, "hip-tests hipStreamWaitEvent.cc"),
    ROW(events_unrecorded, 400, "RT cudaEventElapsedTime"),
    ROW(events_without_time, 400, "RT cudaEventElapsedTime"),
    ROW(elapsed_nowhere, 1, "hip-tests Unit_hipEventElapsedTime.cc"),
    ROW(interprocess_with_time, 1, "hip-tests Unit_hipEvent_Negative.cc"),
    ROW(event_never_recorded, 0, "RT cudaEventQuery"),
    ROW(host_freed_as_device, 1, "hip-tests hipFree.cc"),
    ROW(freed_twice, 1, "hip-tests hipFree.cc"),
    ROW(inside_freed, 1, "RT cudaFree"),
    ROW(registered_freed, 1, "hip-tests hipFree.cc"),
    ROW(registered_twice, 712, "sgl-project/sglang #38832"),
    ROW(registered_around, 712, "lupine #437"),
    ROW(registered_inside, 712, "lupine #437"),
    ROW(nothing_registered, 1, "hip-tests hipHostRegister.cc"),
    ROW(unregistered_twice, 713, "hip-tests hipHostUnregister.cc"),
    ROW(null_unregistered, 1, "hip-tests hipHostUnregister.cc"),
    ROW(pinned_unregistered, 1, "lupine #437"),
    ROW(copy_of_freed, 1, "RT cudaMemcpy"),
    ROW(copy_without_direction, 21, "hip-tests hipMemcpy.cc"),
    ROW(copy_of_null, 1, "hip-tests hipMemcpy.cc"),
    ROW(rows_wider_than_pitch, 12, "hip-tests hipMemcpy2D.cc"),
    ROW(endless_rows, 1, "hip-tests hipMallocPitch.cc"),
    ROW(endless_columns, 2, "hip-tests hipMallocPitch.cc"),
    ROW(no_rows, 0, "hip-tests hipMallocPitch.cc"),
    ROW(endless_async, 2, "hip-tests hipMallocAsync.cc"),
    ROW(async_nowhere, 1, "hip-tests hipMallocAsync.cc"),
    ROW(null_freed_async, 0, "H200"),
    ROW(freed_twice_async, 1, "hip-tests hipFreeAsync.cc"),
    ROW(pool_of_nothing, 1, "hip-tests hipMemPoolCreate.cc"),
    ROW(pool_nowhere, 1, "hip-tests hipMemPoolCreate.cc"),
    ROW(pool_destroyed_twice, 1, "hip-tests hipMemPoolDestroy.cc"),
    ROW(default_pool_destroyed, 1, "hip-tests hipMemPoolDestroy.cc"),
    ROW(no_pool_destroyed, 1, "hip-tests hipMemPoolDestroy.cc"),
    ROW(own_handle_opened, 201, "hip-tests hipIpcOpenMemHandle.cc"),
    ROW(handle_of_freed, 1, "hip-tests hipIpcGetMemHandle.cc"),
    ROW(handle_of_end, 1, "hip-tests hipIpcGetMemHandle.cc"),
    ROW(own_memory_closed, 1, "hip-tests hipIpcCloseMemHandle.cc"),
    ROW(no_addresses, 1, "H200"),
    ROW(odd_alignment, 1, "H200"),
    ROW(odd_physical, 1, "hip-tests hipMemCreate.cc"),
    ROW(part_unmapped, 1, "hip-tests hipMemUnmap.cc"),
    ROW(access_before_map, 1, "hip-tests hipMemSetGetAccess.cc"),
    ROW(driver_malloc_of_nothing, 1, "DRV cuMemAlloc"),
    ROW(legacy_captured, 900, "hip-tests hipStreamBeginCapture.cc"),
    ROW(captured_twice, 401, "hip-tests hipStreamBeginCapture.cc"),
    ROW(captured_in_no_mode, 1, "hip-tests hipStreamBeginCapture.cc"),
    ROW(end_of_no_capture, 401, "hip-tests hipStreamEndCapture.cc"),
    ROW(end_in_legacy, 401, "hip-tests hipStreamEndCapture.cc"),
    ROW(end_to_nowhere, 401, "H200"),
    ROW(status_to_nowhere, 1, "hip-tests hipStreamIsCapturing.cc"),
    ROW(captured_stream_queried, 900, "hip-tests hipStreamBeginCapture.cc"),
    ROW(captured_event_queried, 907, "hip-tests hipStreamBeginCapture.cc"),
    ROW(ended_after_event_was_queried, 901, "H200"),
    ROW(captured_event_waited_for, 907, "hip-tests hipStreamBeginCapture.cc"),
    ROW(copy_beside_capture, 906, "hip-tests hipStreamBeginCapture.cc"),
    ROW(legacy_asked_beside_capture, 906, "hip-tests hipStreamIsCapturing.cc"),
    ROW(legacy_called_beside_capture, 906, "hip-tests hipLaunchHostFunc.cc"),
    ROW(captures_merged, 902, "ROCm/rocm-systems #11589"),
    ROW(ended_where_it_did_not_begin, 903,
        "RT cudaErrorStreamCaptureUnmatched"),
    ROW(empty_graph_launched, 0, "hip-tests hipGraphInstantiate.cc"),
    ROW(no_graph_instantiated, 1, "hip-tests hipGraphInstantiate.cc"),
    ROW(destroyed_graph_launched, 1, "hip-tests hipGraphLaunch.cc"),
    ROW(no_device_selected, 101, "hip-tests hipSetGetDevice.cc"),
    ROW(peer_of_itself, 217, "H200"),
    ROW(peer_with_flags, 1, "hip-tests hipDeviceEnableDisablePeerAccess.cc"),
};

/* A handle after its end, or an invented one, crashes the real driver. */
static bool is_undefined(const struct row *row)
{
    return row->code == 709 || row->call == free_on_invented ||
           row->call == destroyed_graph_launched ||
           row->call == pool_destroyed_twice;
}

static bool row_holds(const struct row *row)
{
    check_failures = 0; /* the parent's are its own */
    int got = row->call();

    answer(got, "code of %s", row->name);
    if (got != row->code)
        fprintf(stderr, "%s: %d, not %d (%s)\n", row->name, got, row->code,
                row->source);
    return got == row->code && !check_failures;
}

/* Each in a process of its own: a capture that is left would be in the way. */
TEST(every_wrong_call_answers_its_code)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int status = -1;
        if (is_real() && is_undefined(&rows[i]))
            continue;
        pid_t pid = fork();

        if (!pid)
            _exit(!row_holds(&rows[i]));
        CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && !status);
    }
}

static size_t free_bytes(void)
{
    size_t available = 0, total;

    CHECK(!cudaMemGetInfo(&available, &total));
    return available;
}

/* CUDA runtime API manual, cudaDeviceReset; hip-tests hipDeviceReset.cc. */
TEST(a_reset_ends_the_context_and_all_that_is_in_it)
{
    cudaStream_t stream = stream_new();
    cudaEvent_t event = event_new(0);
    void *p = device_memory(64 * MIB), *q, *pinned;
    size_t before, total;
    unsigned flags;
    int active;

    CHECK(!cudaMemcpy(p, "kept", 5, cudaMemcpyHostToDevice));
    CHECK(!cudaMallocAsync(&q, 64 * MIB, 0));
    CHECK(!cudaHostAlloc(&pinned, 4096, 0));
    CHECK(!cudaFree(device_memory(8)));
    CHECK(!cudaDeviceReset());
    CHECK(!cuDevicePrimaryCtxGetState(0, &flags, &active));
    CHECK(!active);
    CHECK_CODE(cudaFree(p), cudaErrorInvalidValue); /* makes a new context */
    ANSWER_CODE(cudaFreeAsync(q, 0), cudaErrorInvalidValue,
                "an old context's memory freed on a stream");
    CHECK_CODE(cudaFreeHost(pinned), cudaErrorInvalidValue);
    if (!is_real()) { /* handles after their end */
        CHECK_CODE(cudaStreamSynchronize(stream), cudaErrorContextIsDestroyed);
        CHECK_CODE(cudaEventRecord(event, 0), cudaErrorContextIsDestroyed);
    }
    before = free_bytes();
    CHECK(!cudaMemGetInfo(&total, &total) && before < total);
    p = device_memory(8);
    CHECK(!cudaMemcpy(host, p, 5, cudaMemcpyDeviceToHost));
    CHECK_STR(host, ""); /* the old context's values are gone */
    CHECK(!cudaDeviceReset());
    CHECK(!cudaDeviceReset()); /* without a context there is nothing to do */
    CHECK_UINT(free_bytes(), before);
    CHECK(!cuDevicePrimaryCtxReset(0));
    ANSWER_CODE(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT,
                "a wait after a reset");
    CHECK_UINT(free_bytes(), before);
}

TEST(physical_memory_outlives_a_reset)
{
    CUmemGenericAllocationHandle h;
    size_t before = free_bytes();

    CHECK(!cuMemCreate(&h, 64 * MIB, &plain, 0));
    CHECK(!cudaDeviceReset());
    CHECK_UINT(before - free_bytes(), 64 * MIB);
    CHECK(!cuMemRelease(h));
    CHECK_UINT(free_bytes(), before);
}
