/* SPDX-License-Identifier: Apache-2.0 */
#include <cuda_runtime_api.h>

#include "answers.h"
#include "check.h"
#include "cudnn_trace.h"

TEST(streams_live_and_die)
{
    cudaStream_t stream;
    int least, greatest, priority;

    CHECK(!cudaDeviceGetStreamPriorityRange(&least, &greatest));
    CHECK(greatest < least);
    CHECK(!cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking,
                                        greatest));
    CHECK(!cudaStreamGetPriority(stream, &priority));
    CHECK(priority == greatest);
    CHECK(!cudaStreamSynchronize(stream));
    CHECK(!cudaStreamQuery(stream));
    CHECK(!cudaStreamDestroy(stream));
    if (is_real())
        SKIP("undefined from here on");
    CHECK_CODE(cudaStreamSynchronize(stream), cudaErrorContextIsDestroyed);
    CHECK_CODE(cudaStreamDestroy(stream), cudaErrorContextIsDestroyed);
}

TEST(the_first_stream_takes_memory)
{
    size_t before, after, again, total;
    cudaStream_t stream;

    CHECK(!cudaMemGetInfo(&before, &total));
    CHECK(!cudaStreamCreate(&stream));
    CHECK(!cudaMemGetInfo(&after, &total));
    CHECK(!cudaStreamCreate(&stream));
    CHECK(!cudaMemGetInfo(&again, &total));
    CHECK(before > after);
    if (gpu_capability() == HOPPER)
        CHECK_UINT(before - after, 70 << 20);
    CHECK_UINT(again, after);
}

TEST(invented_handles_are_refused)
{
    float ms;

    if (is_real())
        SKIP("undefined");
    CHECK_CODE(cudaStreamSynchronize((cudaStream_t)0x1234567),
               cudaErrorInvalidResourceHandle);
    CHECK_CODE(cudaEventRecord((cudaEvent_t)&ms, 0),
               cudaErrorInvalidResourceHandle);
    CHECK_CODE(cudaEventElapsedTime(&ms, NULL, NULL),
               cudaErrorInvalidResourceHandle);
}

TEST(events_measure_and_order)
{
    cudaStream_t stream;
    cudaEvent_t a, b, untimed;
    float ms = -1;

    CHECK(!cudaStreamCreate(&stream));
    CHECK(!cudaEventCreate(&a));
    CHECK(!cudaEventCreate(&b));
    CHECK(!cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
    CHECK_CODE(cudaEventElapsedTime(&ms, a, b), cudaErrorInvalidResourceHandle);
    CHECK(!cudaEventRecord(a, stream));
    CHECK(!cudaEventRecord(b, stream));
    CHECK(!cudaStreamWaitEvent(0, b, 0));
    CHECK(!cudaEventQuery(b));
    CHECK(!cudaEventSynchronize(b));
    CHECK(!cudaEventElapsedTime(&ms, a, b));
    CHECK(ms >= 0);
    CHECK(!cudaEventRecord(untimed, 0));
    CHECK_CODE(cudaEventElapsedTime(&ms, a, untimed),
               cudaErrorInvalidResourceHandle);
    CHECK(!cudaEventDestroy(a));
    if (is_real())
        SKIP("undefined from here on");
    CHECK_CODE(cudaEventQuery(a), cudaErrorContextIsDestroyed);
}

static uint64_t recorded(enum trace_kind kind)
{
    return (uint64_t)trace_seen(kind).count;
}

/* As a watchdog does for hours, where another rank never comes. */
TEST(queries_that_repeat_are_recorded_once)
{
    cudaStream_t stream;
    cudaEvent_t events[2];

    CHECK(!cudaStreamCreate(&stream));
    for (int i = 0; i < 2; i++)
        CHECK(!cudaEventCreate(&events[i]));
    uint64_t of_events = recorded(TRACE_EVENT_QUERY);
    uint64_t of_streams = recorded(TRACE_STREAM_QUERY);
    for (int i = 0; i < 1000; i++) {
        CHECK(!cudaEventQuery(events[i % 2]));
        CHECK(!cudaStreamQuery(stream));
        CHECK(!cudaStreamQuery(0));
    }
    CHECK_UINT(recorded(TRACE_EVENT_QUERY), of_events + 2);
    CHECK_UINT(recorded(TRACE_STREAM_QUERY), of_streams + 2);
    CHECK(!cudaEventRecord(events[0], stream));
    CHECK(!cudaEventQuery(events[0]));
    CHECK(!cudaEventQuery(events[0]));
    CHECK_UINT(recorded(TRACE_EVENT_QUERY), of_events + 3);
}

TEST(devices_are_checked)
{
    int device = -1, count = 0;

    CHECK(!cudaGetDeviceCount(&count));
    CHECK_UINT((uint64_t)count, 1);
    CHECK_CODE(cudaSetDevice(1), cudaErrorInvalidDevice);
    CHECK_CODE(cudaSetDevice(-1), cudaErrorInvalidDevice);
    CHECK(!cudaGetDevice(&device));
    CHECK(device == 0);
}

TEST(the_first_card_is_as_good_as_any)
{
    struct cudaDeviceProp wanted = {.major = 9};
    int device = -1;

    CHECK(!cudaChooseDevice(&device, &wanted));
    CHECK_UINT((uint64_t)device, 0);
    CHECK_CODE(cudaChooseDevice(NULL, &wanted), cudaErrorInvalidValue);
    CHECK_CODE(cudaChooseDevice(&device, NULL), cudaErrorInvalidValue);
}

TEST(properties_agree_with_attributes)
{
    struct cudaDeviceProp p;
    int sms, threads;

    CHECK(!cudaGetDeviceProperties(&p, 0));
    CHECK(!cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    CHECK(!cudaDeviceGetAttribute(
        &threads, cudaDevAttrMaxThreadsPerMultiProcessor, 0));
    CHECK(p.multiProcessorCount == sms && sms > 0);
    CHECK(p.maxThreadsPerMultiProcessor == threads && threads >= 1024);
    CHECK(10 * p.major + p.minor == gpu_capability() && p.major >= 6);
}

static int called;

static void callback(void *data)
{
    called += *(int *)data;
}

TEST(host_functions_are_called)
{
    int one = 1;

    CHECK(!cudaLaunchHostFunc(0, callback, &one));
    CHECK(!cudaDeviceSynchronize());
    CHECK(called == 1);
}

TEST(a_forked_child_cannot_use_the_device)
{
    int status;
    void *p;

    CHECK(!cudaMalloc(&p, 1));
    if (!fork())
        _exit(cudaMalloc(&p, 1) == cudaErrorInitializationError ? 7 : 8);
    wait(&status);
    CHECK(WEXITSTATUS(status) == 7);
}

static int code_in_a_child(void)
{
    int status = 0, count = 1;
    void *p;

    if (!fork()) {
        if (cudaGetDeviceCount(&count) != cudaErrorInitializationError ||
            cudaSetDevice(0) != cudaErrorInitializationError)
            _exit(99);
        _exit((int)cudaMalloc(&p, 1));
    }
    wait(&status);
    return WEXITSTATUS(status);
}

TEST(a_child_forked_after_the_count_cannot_use_the_device)
{
    int count;

    CHECK(!cudaGetDeviceCount(&count)); /* no context yet */
    CHECK(code_in_a_child() == cudaErrorInitializationError);
}

TEST(unregistered_kernels_are_refused)
{
    ANSWER_CODE(cudaLaunchKernel((void *)callback, (dim3){1, 1, 1},
                                 (dim3){1, 1, 1}, NULL, 0, 0),
                cudaErrorInvalidDeviceFunction, "a launch of no kernel");
}
