/* SPDX-License-Identifier: Apache-2.0
 * CUPTI: its activities, with simulated times, in the program's buffers. */
#include <cuda_runtime_api.h>
#include <cupti.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "answers.h"
#include "check.h"
#include "ptx.h"

#define COPIES    4
#define COPY      (64 << 20)
#define RECORDS   4096
#define BUFFER    (64 << 10)
#define NO_BUFFER SIZE_MAX

/* --- a profiler ----------------------------------------------------------- */

static size_t buffer_bytes, records_most;
static unsigned requested, completed;
static size_t valid_bytes;
static union {
    CUpti_Activity head;
    CUpti_ActivityKernel9 kernel;
    CUpti_ActivityMemcpy5 copy;
    CUpti_ActivityMemset4 set;
    CUpti_ActivityAPI api;
    CUpti_ActivityExternalCorrelation external;
    CUpti_ActivitySynchronization wait;
    char bytes[256];
} records[RECORDS];
static size_t record_count;

static void on_request(uint8_t **buffer, size_t *size, size_t *most)
{
    requested++;
    *most = records_most;
    *size = buffer_bytes == NO_BUFFER ? 0 : buffer_bytes;
    *buffer = buffer_bytes == NO_BUFFER ? NULL : malloc(buffer_bytes + 8);
}

static size_t bytes_of(const CUpti_Activity *a)
{
    switch (a->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        return sizeof(CUpti_ActivityKernel9);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        return sizeof(CUpti_ActivityMemcpy5);
    case CUPTI_ACTIVITY_KIND_MEMSET:
        return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_RUNTIME:
        return sizeof(CUpti_ActivityAPI);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
        return sizeof(CUpti_ActivityExternalCorrelation);
    default:
        return sizeof(CUpti_ActivitySynchronization);
    }
}

static void on_complete(CUcontext context, uint32_t stream, uint8_t *buffer,
                        size_t size, size_t valid)
{
    CUpti_Activity *record = NULL;
    CUptiResult rc;

    (void)context;
    (void)stream;
    (void)size;
    completed++;
    valid_bytes += valid;
    while (!(rc = cuptiActivityGetNextRecord(buffer, valid, &record)))
        if (record_count < RECORDS)
            memcpy(&records[record_count++], record, bytes_of(record));
    CHECK(rc == CUPTI_ERROR_MAX_LIMIT_REACHED);
    free(buffer);
}

static void profile(size_t bytes)
{
    buffer_bytes = bytes;
    records_most = record_count = requested = completed = valid_bytes = 0;
    CHECK(!cuptiActivityRegisterCallbacks(on_request, on_complete));
}

static size_t count_of(CUpti_ActivityKind kind)
{
    size_t n = 0;

    for (size_t i = 0; i < record_count; i++)
        n += records[i].head.kind == kind;
    return n;
}

static char *host, *device;

static void copies(int n)
{
    if (!host)
        CHECK(!cudaMallocHost((void **)&host, COPY));
    if (!device)
        CHECK(!cudaMalloc((void **)&device, COPY));
    for (int i = 0; i < n; i++)
        CHECK(!cudaMemcpyAsync(device, host, COPY, cudaMemcpyHostToDevice,
                               NULL));
}

static void enable(CUpti_ActivityKind kind)
{
    CHECK(!cuptiActivityEnable(kind));
}

static void disable_all(void)
{
    static const CUpti_ActivityKind kinds[] = {
        CUPTI_ACTIVITY_KIND_MEMCPY,
        CUPTI_ACTIVITY_KIND_MEMSET,
        CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
        CUPTI_ACTIVITY_KIND_RUNTIME,
        CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
        CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
    };

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        CHECK(!cuptiActivityDisable(kinds[i]));
}

static uint64_t wall(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* --- tests ---------------------------------------------------------------- */

TEST(a_copy_has_the_times_that_its_events_have)
{
    cudaEvent_t begin, end;
    float ms;

    copies(1);
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    cudaDeviceSynchronize();
    profile(BUFFER);
    enable(CUPTI_ACTIVITY_KIND_MEMCPY);
    uint64_t before = wall();
    cudaEventRecord(begin, NULL);
    copies(COPIES);
    cudaEventRecord(end, NULL);
    cudaDeviceSynchronize();
    uint64_t after = wall();
    cudaEventElapsedTime(&ms, begin, end);
    CHECK(!cuptiActivityFlushAll(0));
    CHECK_UINT(count_of(CUPTI_ACTIVITY_KIND_MEMCPY), COPIES);
    const CUpti_ActivityMemcpy5 *first = &records[0].copy;
    const CUpti_ActivityMemcpy5 *last = &records[COPIES - 1].copy;
    CHECK(before <= first->start && last->end <= after);
    /* an event is reached when the copy before it has ended */
    uint64_t ns = (uint64_t)((double)ms * 1e6);
    CHECK(last->end - first->start <= ns + 1000);
    CHECK(ns <= last->end - first->start + 20000);
    CHECK(first->end - first->start > 500000); /* 64 MiB at 64 GB/s */
    CHECK(first->copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
    CHECK(first->srcKind == CUPTI_ACTIVITY_MEMORY_KIND_PINNED);
    CHECK_UINT(first->bytes, COPY);
    CHECK_UINT(first->streamId, 7);
    CHECK_UINT(first->deviceId, 0);
    disable_all();
}

TEST(a_call_and_its_work_have_one_correlation_and_its_external_id)
{
    profile(BUFFER);
    copies(0);
    enable(CUPTI_ACTIVITY_KIND_MEMSET);
    enable(CUPTI_ACTIVITY_KIND_RUNTIME);
    enable(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
    const CUpti_ExternalCorrelationKind kind =
        CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
    uint64_t id = 0;
    CHECK(!cuptiActivityPushExternalCorrelationId(kind, 41));
    CHECK(!cuptiActivityPushExternalCorrelationId(kind, 42));
    cudaMemsetAsync(device, 7, 100, NULL);
    CHECK(!cuptiActivityPopExternalCorrelationId(kind, &id));
    CHECK_UINT(id, 42);
    CHECK(!cuptiActivityPopExternalCorrelationId(kind, NULL));
    CHECK_CODE(cuptiActivityPopExternalCorrelationId(kind, NULL),
               CUPTI_ERROR_QUEUE_EMPTY);
    CHECK_CODE(cuptiActivityPushExternalCorrelationId(99, 1),
               CUPTI_ERROR_INVALID_PARAMETER);
    cudaDeviceSynchronize();
    cuptiActivityFlushAll(0);
    CHECK_UINT(count_of(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION), 1);
    CHECK_UINT(count_of(CUPTI_ACTIVITY_KIND_MEMSET), 1);
    CHECK_UINT(count_of(CUPTI_ACTIVITY_KIND_RUNTIME), 2);
    uint32_t set = 0, call = 0;
    for (size_t i = 0; i < record_count; i++) {
        if (records[i].head.kind == CUPTI_ACTIVITY_KIND_MEMSET) {
            set = records[i].set.correlationId;
            CHECK_UINT(records[i].set.value, 7);
            CHECK_UINT(records[i].set.bytes, 100);
        }
        if (records[i].head.kind == CUPTI_ACTIVITY_KIND_RUNTIME &&
            records[i].api.cbid ==
                CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020)
            call = records[i].api.correlationId;
        if (records[i].head.kind ==
            CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) {
            CHECK_UINT(records[i].external.externalId, 42);
            CHECK_UINT(records[i].external.externalKind, kind);
            id = records[i].external.correlationId;
        }
    }
    CHECK(set);
    CHECK_UINT(call, set);
    CHECK_UINT(id, set);
    disable_all();
}

TEST(a_kernel_has_its_name_and_shape)
{
    const void *store = ptx_kernel(PTX_STORE);
    const dim3 grid = {5, 6, 7}, block = {32, 2, 4};
    cudaStream_t stream;

    copies(0);
    cudaStreamCreate(&stream);
    profile(BUFFER);
    enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    void *arguments[] = {&device, &(int){1}};
    CHECK(!cudaLaunchKernel(store, grid, block, arguments, 1024, stream));
    CHECK(!cudaLaunchKernel(store, grid, block, arguments, 0, NULL));
    cudaDeviceSynchronize();
    cuptiActivityFlushAll(0);
    CHECK_UINT(record_count, 2);
    const CUpti_ActivityKernel9 *k = &records[0].kernel;
    CHECK_STR(k->name, PTX_STORE);
    CHECK(k->gridX == 5 && k->gridY == 6 && k->gridZ == 7);
    CHECK(k->blockX == 32 && k->blockY == 2 && k->blockZ == 4);
    CHECK_UINT((unsigned)k->dynamicSharedMemory, 1024);
    CHECK(k->streamId != records[1].kernel.streamId);
    CHECK(k->end > k->start);
    disable_all();
}

TEST(what_was_called_before_is_not_recorded_and_what_was_called_is)
{
    profile(BUFFER);
    copies(COPIES);
    enable(CUPTI_ACTIVITY_KIND_MEMCPY);
    enable(CUPTI_ACTIVITY_KIND_MEMCPY); /* once more changes nothing */
    copies(1);
    CHECK(!cuptiActivityDisable(CUPTI_ACTIVITY_KIND_MEMCPY));
    CHECK(!cuptiActivityDisable(CUPTI_ACTIVITY_KIND_MEMCPY));
    copies(COPIES);
    cudaDeviceSynchronize();
    CHECK(!cuptiActivityFlushAll(0));
    CHECK_UINT(record_count, 1);
    CHECK(!cuptiActivityFlushAll(0)); /* once more gives nothing */
    CHECK_UINT(record_count, 1);
    enable(CUPTI_ACTIVITY_KIND_MEMCPY);
    copies(2);
    cudaDeviceSynchronize();
    CHECK(!cuptiActivityFlushAll(0));
    CHECK_UINT(record_count, 3);
    disable_all();
}

/* As Kineto, which flushes only where it has given a buffer. */
TEST(a_buffer_is_asked_for_when_a_kind_is_enabled)
{
    profile(BUFFER);
    CHECK_UINT(requested, 0);
    enable(CUPTI_ACTIVITY_KIND_MEMCPY);
    CHECK_UINT(requested, 1);
    CHECK(!cuptiActivityFlushAll(0));
    CHECK_UINT(completed, 0); /* nothing is in it */
    copies(1);
    cudaDeviceSynchronize();
    CHECK(!cuptiActivityFlushAll(0));
    CHECK_UINT(completed, 1);
    CHECK_UINT(requested, 2);
    disable_all();
    CHECK(!cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
    CHECK_UINT(completed, 2);
    CHECK(!cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
    CHECK_UINT(completed, 2);
}

TEST(small_buffers_are_filled_one_after_the_other)
{
    size_t dropped = 9;

    profile(3 * sizeof(CUpti_ActivityMemcpy6));
    enable(CUPTI_ACTIVITY_KIND_MEMCPY);
    copies(8);
    cudaDeviceSynchronize();
    cuptiActivityFlushAll(0);
    CHECK_UINT(record_count, 8);
    CHECK_UINT(completed, 3);
    profile(BUFFER);
    records_most = 2;
    disable_all();
    cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    completed = 0;
    enable(CUPTI_ACTIVITY_KIND_MEMCPY);
    copies(5);
    cudaDeviceSynchronize();
    cuptiActivityFlushAll(0);
    CHECK_UINT(record_count, 5);
    CHECK_UINT(completed, 3);
    CHECK(!cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped));
    CHECK_UINT(dropped, 0);
    disable_all();
    cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
}

TEST(without_room_records_are_lost_and_counted)
{
    static const size_t sizes[] = {NO_BUFFER, 8,
                                   sizeof(CUpti_ActivityMemcpy6) - 1};
    size_t dropped = 9;

    CHECK(!cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        profile(sizes[i]);
        enable(CUPTI_ACTIVITY_KIND_MEMCPY);
        copies(3);
        cudaDeviceSynchronize();
        CHECK(!cuptiActivityFlushAll(0));
        disable_all();
        CHECK(!cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
        CHECK_UINT(record_count, 0);
        CHECK_UINT(valid_bytes, 0);
        CHECK(!cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped));
        CHECK_UINT(dropped, 3);
    }
    CHECK(!cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped));
    CHECK_UINT(dropped, 0);
    CHECK_CODE(cuptiActivityGetNumDroppedRecords(NULL, 0, NULL),
               CUPTI_ERROR_INVALID_PARAMETER);
}

/* More than the core keeps: what the program does not take is counted. */
TEST(records_that_nobody_takes_are_bounded)
{
    need_fake("a bound on what CUPTI keeps");
    size_t dropped = 0;
    const int n = 300000;

    copies(0);
    profile(BUFFER);
    enable(CUPTI_ACTIVITY_KIND_RUNTIME);
    enable(CUPTI_ACTIVITY_KIND_MEMSET);
    for (int i = 0; i < n; i++)
        cudaMemsetAsync(device, 0, 1, NULL);
    cudaDeviceSynchronize();
    disable_all();
    CHECK(!cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
    CHECK(!cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped));
    size_t all = (valid_bytes - 0) / sizeof(CUpti_ActivityMemset4) + dropped;
    CHECK(dropped > 0 && dropped < (size_t)n);
    CHECK(all > (size_t)n);
}

static uint64_t ticks(void)
{
    return wall() / 1000 + 5;
}

TEST(a_registered_clock_tells_the_times)
{
    uint64_t now = 0;

    copies(0);
    CHECK(!cuptiActivityRegisterTimestampCallback(ticks));
    profile(BUFFER);
    enable(CUPTI_ACTIVITY_KIND_MEMCPY);
    uint64_t before = ticks();
    copies(COPIES);
    cudaDeviceSynchronize();
    uint64_t after = ticks();
    cuptiActivityFlushAll(0);
    CHECK_UINT(record_count, COPIES);
    CHECK(before <= records[0].copy.start + 100);
    CHECK(records[COPIES - 1].copy.end <= after + 100);
    CHECK(records[0].copy.end - records[0].copy.start > 500);
    CHECK(!cuptiGetTimestamp(&now) && now >= after && now < after + 10000000);
    disable_all();
    CHECK(cuptiActivityRegisterTimestampCallback(NULL));
}

static CUptiResult nested_enable, nested_flush;

static void on_complete_again(CUcontext context, uint32_t stream,
                              uint8_t *buffer, size_t size, size_t valid)
{
    nested_enable = cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET);
    nested_flush = cuptiActivityFlushAll(0);
    on_complete(context, stream, buffer, size, valid);
}

TEST(the_programs_functions_may_not_flush)
{
    profile(BUFFER);
    CHECK(!cuptiActivityRegisterCallbacks(on_request, on_complete_again));
    enable(CUPTI_ACTIVITY_KIND_MEMCPY);
    copies(1);
    cudaDeviceSynchronize();
    CHECK(!cuptiActivityFlushAll(0));
    CHECK_UINT(record_count, 1);
    CHECK(nested_flush == CUPTI_ERROR_INVALID_OPERATION);
    CHECK(nested_enable == CUPTI_ERROR_INVALID_OPERATION);
    disable_all();
}

TEST(arguments_that_make_no_sense_are_refused)
{
    CUpti_ActivityAPI api = {.kind = CUPTI_ACTIVITY_KIND_RUNTIME};
    CUpti_Activity *record = NULL;
    uint8_t *bytes = (uint8_t *)&api;
    size_t size = 8;
    uint64_t value = 5;

    CHECK_CODE(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_INVALID),
               CUPTI_ERROR_NOT_SUPPORTED);
    CHECK_CODE(cuptiActivityEnable((CUpti_ActivityKind)9999),
               CUPTI_ERROR_NOT_SUPPORTED);
    CHECK_CODE(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_PC_SAMPLING),
               CUPTI_ERROR_NOT_SUPPORTED);
    CHECK(!cuptiActivityEnable(CUPTI_ACTIVITY_KIND_OVERHEAD));
    CHECK(!cuptiActivityDisable(CUPTI_ACTIVITY_KIND_OVERHEAD));
    CHECK_CODE(cuptiActivityRegisterCallbacks(NULL, on_complete),
               CUPTI_ERROR_INVALID_PARAMETER);
    CHECK_CODE(cuptiActivityGetNextRecord(NULL, 8, &record),
               CUPTI_ERROR_INVALID_PARAMETER);
    CHECK_CODE(cuptiActivityGetNextRecord(bytes, 0, &record),
               CUPTI_ERROR_MAX_LIMIT_REACHED);
    CHECK_CODE(cuptiActivityGetNextRecord(bytes, sizeof api - 1, &record),
               CUPTI_ERROR_INVALID_KIND);
    CHECK(!cuptiActivityGetNextRecord(bytes, sizeof api, &record));
    CHECK_CODE(cuptiActivityGetNextRecord(bytes, sizeof api, &record),
               CUPTI_ERROR_MAX_LIMIT_REACHED);
    api.kind = (CUpti_ActivityKind)77;
    CHECK_CODE(cuptiActivityGetNextRecord(bytes, sizeof api, &record),
               CUPTI_ERROR_INVALID_KIND);
    const CUpti_ActivityAttribute pool =
        CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT;
    CHECK(!cuptiActivitySetAttribute(pool, &size, &value));
    value = 0;
    CHECK(!cuptiActivityGetAttribute(pool, &size, &value) && value == 5);
    size = 4;
    CHECK_CODE(cuptiActivityGetAttribute(pool, &size, &value),
               CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
}

/* --- callbacks ------------------------------------------------------------ */

static struct {
    CUpti_CallbackDomain domain;
    CUpti_CallbackId id;
    CUpti_ApiCallbackSite site;
    uint32_t correlation;
    uint64_t own; /* what the callback finds, and then sets to 7 */
    const void *graph;
} heard[16];
static size_t heard_count;

static void on_call(void *data, CUpti_CallbackDomain domain,
                    CUpti_CallbackId id, const void *what)
{
    const CUpti_CallbackData *call = what;

    CHECK(data == &heard_count && heard_count < 16);
    heard[heard_count].domain = domain;
    heard[heard_count].id = id;
    heard[heard_count].site = call->callbackSite;
    heard[heard_count].correlation = call->correlationId;
    heard[heard_count].own = *call->correlationData;
    if (id == CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch)
        heard[heard_count].graph =
            ((const cuGraphLaunch_params *)call->functionParams)->hGraph;
    *call->correlationData = 7;
    heard_count++;
    cudaMemsetAsync(device, 0, 64, NULL); /* nobody hears of this one */
}

TEST(a_subscriber_hears_of_the_calls_that_it_wants)
{
    const CUpti_CallbackId copy =
        CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020;
    CUpti_SubscriberHandle subscriber, other;

    copies(1);
    heard_count = 0;
    CHECK(!cuptiSubscribe(&subscriber, on_call, &heard_count));
    CHECK_CODE(cuptiSubscribe(&other, on_call, NULL),
               CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    profile(BUFFER);
    enable(CUPTI_ACTIVITY_KIND_MEMCPY);
    copies(1); /* not enabled yet */
    CHECK(!cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API,
                               copy));
    copies(1);
    CHECK(!cudaMemsetAsync(device, 0, COPY, NULL));
    cudaDeviceSynchronize();
    cuptiActivityFlushAll(0);
    CHECK_UINT(heard_count, 2);
    CHECK(heard[0].site == CUPTI_API_ENTER && heard[1].site == CUPTI_API_EXIT);
    CHECK(heard[0].id == copy && heard[1].own == 7);
    CHECK_UINT(record_count, 2);
    CHECK_UINT(heard[0].correlation, records[1].copy.correlationId);
    CHECK_UINT(heard[1].correlation, records[1].copy.correlationId);
    CHECK(!cuptiEnableCallback(0, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API,
                               copy));
    copies(1);
    CHECK_UINT(heard_count, 2);
    disable_all();
    CHECK(!cuptiUnsubscribe(subscriber));
}

TEST(a_graphs_launch_is_a_call_of_the_runtime_and_in_it_of_the_driver)
{
    CUpti_SubscriberHandle subscriber;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaStream_t stream;
    uint32_t of_graph = 0, of_exec = 0;

    copies(1);
    CHECK(!cudaStreamCreate(&stream));
    CHECK(!cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(!cudaMemsetAsync(device, 0, COPY, stream));
    CHECK(!cudaStreamEndCapture(stream, &graph));
    CHECK(!cudaGraphInstantiate(&exec, graph, 0));
    CHECK(!cuptiGetGraphId(graph, &of_graph) && of_graph);
    CHECK(!cuptiGetGraphExecId(exec, &of_exec) && of_exec == of_graph);
    CHECK_CODE(cuptiGetGraphId(NULL, &of_graph), CUPTI_ERROR_INVALID_PARAMETER);
    heard_count = 0;
    CHECK(!cuptiSubscribe(&subscriber, on_call, &heard_count));
    CHECK(!cuptiEnableAllDomains(1, subscriber));
    CHECK(!cudaGraphLaunch(exec, stream));
    CHECK(!cuptiUnsubscribe(subscriber));
    CHECK(!cudaGraphLaunch(exec, stream));
    CHECK_UINT(heard_count, 4);
    CHECK(heard[0].domain == CUPTI_CB_DOMAIN_RUNTIME_API &&
          heard[3].domain == CUPTI_CB_DOMAIN_RUNTIME_API);
    CHECK(heard[1].domain == CUPTI_CB_DOMAIN_DRIVER_API &&
          heard[2].domain == CUPTI_CB_DOMAIN_DRIVER_API);
    CHECK(heard[1].graph == exec && heard[2].site == CUPTI_API_EXIT);
    CHECK_UINT(heard[0].correlation, heard[1].correlation);
}

/* CUDA does not work in such a child; CUPTI does not hang. */
TEST(a_forked_child_may_flush)
{
    int status = -1;

    profile(BUFFER);
    enable(CUPTI_ACTIVITY_KIND_MEMCPY);
    copies(1);
    pid_t child = fork();
    if (!child) {
        record_count = 0;
        bool bad = cuptiActivityFlushAll(0) ||
                   cuptiActivityDisable(CUPTI_ACTIVITY_KIND_MEMCPY);
        _exit(bad || record_count);
    }
    CHECK(waitpid(child, &status, 0) == child && !status);
    cudaDeviceSynchronize();
    CHECK(!cuptiActivityFlushAll(0));
    CHECK_UINT(record_count, 1);
    disable_all();
}

TEST(after_the_end_it_can_begin_again)
{
    profile(BUFFER);
    enable(CUPTI_ACTIVITY_KIND_MEMCPY);
    copies(1);
    cudaDeviceSynchronize();
    CHECK(!cuptiFinalize());
    CHECK_UINT(record_count, 1);
    CHECK_CODE(cuptiActivityFlushAll(0), CUPTI_ERROR_INVALID_OPERATION);
    profile(BUFFER);
    enable(CUPTI_ACTIVITY_KIND_MEMCPY);
    copies(2);
    cudaDeviceSynchronize();
    CHECK(!cuptiActivityFlushAll(0));
    CHECK_UINT(record_count, 2);
    CHECK(!cuptiFinalize());
}

static void callback(void *data, CUpti_CallbackDomain domain,
                     CUpti_CallbackId id, const void *info)
{
    (void)data;
    (void)domain;
    (void)id;
    (void)info;
}

TEST(there_is_one_subscriber_at_a_time)
{
    CUpti_SubscriberHandle a, b;

    CHECK(!cuptiSubscribe(&a, callback, NULL));
    CHECK_CODE(cuptiSubscribe(&b, callback, NULL),
               CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    CHECK(!cuptiUnsubscribe(a));
    CHECK(!cuptiSubscribe(&b, callback, NULL));
    CHECK_CODE(cuptiSubscribe(NULL, callback, NULL),
               CUPTI_ERROR_INVALID_PARAMETER);
    CHECK_CODE(cuptiEnableCallback(1, NULL, CUPTI_CB_DOMAIN_DRIVER_API,
                                   CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel),
               CUPTI_ERROR_INVALID_PARAMETER);
    CHECK(!cuptiEnableDomain(0, b, CUPTI_CB_DOMAIN_RUNTIME_API));
    /* nobody is told of contexts, of which Kineto wants to hear */
    CHECK(!cuptiEnableCallback(1, b, CUPTI_CB_DOMAIN_RESOURCE,
                               CUPTI_CBID_RESOURCE_CONTEXT_CREATED));
    CHECK(!cuptiUnsubscribe(b));
}

TEST(the_calls_that_are_recorded_have_names)
{
    const char *name = NULL;

    profile(BUFFER);
    copies(0);
    enable(CUPTI_ACTIVITY_KIND_RUNTIME);
    cudaMemsetAsync(device, 7, 100, NULL);
    cudaDeviceSynchronize();
    cuptiActivityFlushAll(0);
    CHECK_UINT(record_count, 2);
    CHECK(!cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API,
                                records[0].api.cbid, &name));
    CHECK_STR(name, "cudaMemsetAsync_v3020");
    CHECK(!cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API,
                                records[1].api.cbid, &name));
    CHECK_STR(name, "cudaDeviceSynchronize_v3020");
    CHECK_CODE(cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API, 9999, &name),
               CUPTI_ERROR_INVALID_PARAMETER);
    disable_all();
}

TEST(time_is_that_of_the_wall_clock)
{
    uint64_t before = 0, after = 0;

    CHECK(!cuptiGetTimestamp(&before));
    uint64_t now = wall();
    CHECK(!cuptiGetTimestamp(&after));
    CHECK(before <= now && now <= after);
    CHECK_CODE(cuptiGetTimestamp(NULL), CUPTI_ERROR_INVALID_PARAMETER);
}

TEST(results_have_names)
{
    const char *text = NULL;
    uint32_t version = 0;

    CHECK(!cuptiGetVersion(&version) && version == CUPTI_API_VERSION);
    CHECK(!cuptiGetResultString(CUPTI_ERROR_NOT_SUPPORTED, &text));
    CHECK_STR(text, "CUPTI_ERROR_NOT_SUPPORTED");
}
