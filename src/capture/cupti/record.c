/* SPDX-License-Identifier: Apache-2.0
 * What is not known is 0, or CUPTI's value for that. A library's work is one
 * kernel, whose grid is made up: as many blocks as hold the share of the device
 * that the simulation gives it. */
#include "capture/cupti/record.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "capture/core/base/pages.h"
#include "capture/core/memory/device.h"
#include "capture/core/memory/occupancy.h"
#include "capture/cupti/timestamp.h"
#include "common/base/text_begins.h"

#define STREAM_DEFAULT 7 /* CUPTI's number of the legacy default stream */
#define STREAMS        4096
#define NAMES          64
#define WORK_THREADS   256 /* of a block of a library's; usual ones have 128 to
                              384 */
#define NCCL_THREADS   512 /* NCCL's default; a block is a channel, on one SM */

size_t record_bytes(CUpti_ActivityKind kind)
{
    switch (kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        return sizeof(struct record_kernel);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
        return sizeof(CUpti_ActivityMemcpyPtoP4);
    case CUPTI_ACTIVITY_KIND_MEMSET:
        return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
        return sizeof(CUpti_ActivityAPI);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
        return sizeof(CUpti_ActivityExternalCorrelation);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
        return sizeof(CUpti_ActivitySynchronization2);
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
        return sizeof(CUpti_ActivityCudaEvent2);
    default:
        return 0;
    }
}

/* --- numbers and names ---------------------------------------------------- */

/* The default stream's as CUPTI numbers it, the others' as they come. */
static uint32_t stream_number(uint32_t device, uint64_t stream)
{
    static uint64_t *keys;
    static uint32_t count;
    uint64_t key = stream ^ (uint64_t)device << 56;

    if (stream <= 1)
        return STREAM_DEFAULT;
    if (!keys && !(keys = memsim_pages_reserve(0, STREAMS * sizeof *keys)))
        return STREAM_DEFAULT;
    uint32_t i = 0;
    while (i < count && keys[i] != key)
        i++;
    if (i == count && count < STREAMS)
        keys[count++] = key;
    return STREAM_DEFAULT + 1 + i;
}

static uint32_t context_number(uint32_t device)
{
    return device + 1;
}

/* NCCL's kernels begin with ncclDevKernel_, by which tools know them; the trace
 * has the function's name. The text stays. */
static const char *collective_name(const char *function)
{
    static struct {
        const char *function;
        char text[48];
    } *names;
    static uint32_t count;
    uint32_t i = 0;

    if (!names && !(names = memsim_pages_reserve(0, NAMES * sizeof *names)))
        return function;
    while (i < count && names[i].function != function)
        i++;
    if (i == NAMES)
        return function;
    if (i == count) {
        count++;
        names[i].function = function;
        snprintf(names[i].text, sizeof names[i].text, "ncclDevKernel_%s",
                 !text_begins(function, "nccl") ? function : function + 4);
    }
    return names[i].text;
}

/* --- work ----------------------------------------------------------------- */

static bool is_kernel(enum op_kind kind)
{
    return (kind >= OP_LAUNCH && kind <= OP_LIBRARY_CALL) ||
           kind == OP_COLLECTIVE;
}

/* A graph is known by its capture, one of its nodes is not. */
#define GRAPH(a) (uint32_t)(a)->capture

static void put_shape(struct record_kernel *r, const struct activity *a)
{
    const uint64_t *shape = a->shape;

    r->kernel.gridX = (int32_t)(uint32_t)shape[0];
    r->kernel.gridY = (int32_t)(shape[0] >> 32);
    r->kernel.gridZ = (int32_t)(uint32_t)shape[1];
    r->kernel.blockX = (int32_t)(shape[1] >> 32);
    r->kernel.blockY = (int32_t)(uint32_t)shape[2];
    r->kernel.blockZ = (int32_t)(shape[2] >> 32);
    r->kernel.dynamicSharedMemory = (int32_t)(uint32_t)shape[3];
    r->kernel.sharedMemoryExecuted = (uint32_t)shape[3];
    r->kernel.registersPerThread = OCCUPANCY_REGISTERS;
}

/* An import of the profile then finds the same share (playback/price.c,
 * blocks_held). */
static void put_share(struct record_kernel *r, const struct activity *a)
{
    const struct gpu *gpu = memsim_device_gpu();
    bool is_nccl = a->kind == OP_COLLECTIVE;
    uint64_t of_sm = is_nccl ? 1 : gpu->max_threads_per_sm / WORK_THREADS;
    uint64_t held = gpu->sm_count * of_sm;
    uint64_t blocks = (a->fill * held + ACTIVITY_WHOLE - 1) / ACTIVITY_WHOLE;

    r->kernel.gridX = blocks ? (int32_t)blocks : 1;
    r->kernel.blockX = is_nccl ? NCCL_THREADS : WORK_THREADS;
}

static void kernel_make(struct record_kernel *r, CUpti_ActivityKind kind,
                        const struct activity *a)
{
    *r = (struct record_kernel){
        .kernel = {
            .kind = kind,
            .start = timestamp_of(a->start_ns),
            .end = timestamp_of(a->end_ns),
            .completed = timestamp_of(a->end_ns),
            .deviceId = a->device,
            .contextId = context_number(a->device),
            .streamId = stream_number(a->device, a->stream),
            .correlationId = (uint32_t)a->call,
            .gridId = (int64_t)a->call,
            .name = a->kind == OP_COLLECTIVE ? collective_name(a->name)
                                             : a->name,
            .queued = CUPTI_TIMESTAMP_UNKNOWN,
            .submitted = CUPTI_TIMESTAMP_UNKNOWN,
            .graphId = GRAPH(a),
            .gridY = 1, .gridZ = 1,
            .blockY = 1, .blockZ = 1,
        }};
    if (a->kind == OP_LAUNCH)
        put_shape(r, a);
    else
        put_share(r, a);
}

static CUpti_ActivityMemoryKind host_memory(const struct activity *a)
{
    return a->shape[0] ? CUPTI_ACTIVITY_MEMORY_KIND_PINNED
                       : CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE;
}

static void copy_make(CUpti_ActivityMemcpy6 *r, const struct activity *a)
{
    static const uint8_t kinds[] = {
        [ACTIVITY_COPY_DEVICE] = CUPTI_ACTIVITY_MEMCPY_KIND_DTOD,
        [ACTIVITY_COPY_IN] = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD,
        [ACTIVITY_COPY_OUT] = CUPTI_ACTIVITY_MEMCPY_KIND_DTOH,
        [ACTIVITY_COPY_PEER] = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP,
    };
    const uint8_t device = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;

    *r = (CUpti_ActivityMemcpy6){
        .kind = CUPTI_ACTIVITY_KIND_MEMCPY,
        .copyKind = kinds[a->copy],
        .srcKind = a->copy == ACTIVITY_COPY_IN ? host_memory(a) : device,
        .dstKind = a->copy == ACTIVITY_COPY_OUT ? host_memory(a) : device,
        .flags = CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC,
        .bytes = a->bytes,
        .start = timestamp_of(a->start_ns),
        .end = timestamp_of(a->end_ns),
        .deviceId = a->device,
        .contextId = context_number(a->device),
        .streamId = stream_number(a->device, a->stream),
        .correlationId = (uint32_t)a->call,
        .graphId = GRAPH(a),
        .copyCount = 1,
    };
}

/* The trace has one device of the two: that which the call was made on. */
static void peer_make(CUpti_ActivityMemcpyPtoP4 *r, const struct activity *a)
{
    uint32_t context = context_number(a->device);

    *r = (CUpti_ActivityMemcpyPtoP4){
        .kind = CUPTI_ACTIVITY_KIND_MEMCPY2,
        .copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP,
        .srcKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE,
        .dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE,
        .flags = CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC,
        .bytes = a->bytes,
        .start = timestamp_of(a->start_ns),
        .end = timestamp_of(a->end_ns),
        .deviceId = a->device,
        .contextId = context,
        .streamId = stream_number(a->device, a->stream),
        .srcDeviceId = a->device,
        .srcContextId = context,
        .dstDeviceId = (uint32_t)a->shape[1],
        .dstContextId = context_number((uint32_t)a->shape[1]),
        .correlationId = (uint32_t)a->call,
        .graphId = GRAPH(a),
    };
}

static void set_make(CUpti_ActivityMemset4 *r, const struct activity *a)
{
    *r = (CUpti_ActivityMemset4){
        .kind = CUPTI_ACTIVITY_KIND_MEMSET,
        .value = (uint32_t)a->shape[0],
        .bytes = a->bytes,
        .start = timestamp_of(a->start_ns),
        .end = timestamp_of(a->end_ns),
        .deviceId = a->device,
        .contextId = context_number(a->device),
        .streamId = stream_number(a->device, a->stream),
        .correlationId = (uint32_t)a->call,
        .flags = CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC,
        .memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE,
        .graphId = GRAPH(a),
    };
}

/* --- calls ---------------------------------------------------------------- */

bool record_is_driver(const struct activity *a)
{
    return a->api == ACTIVITY_API_DRIVER || a->api == ACTIVITY_API_DRIVER_EX;
}

CUpti_CallbackId record_callback_id(const struct activity *a)
{
    static const CUpti_CallbackId named[] = {
        [ACTIVITY_API_LAUNCH_EX] =
            CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060,
        [ACTIVITY_API_COOPERATIVE] =
            CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernel_v9000,
        [ACTIVITY_API_DRIVER] = CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
        [ACTIVITY_API_DRIVER_EX] = CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
    };
    static const CUpti_CallbackId kinds[OP_KINDS] = {
        [OP_COPY] = CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020,
        [OP_SET] = CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020,
        [OP_HOST_FUNCTION] =
            CUPTI_RUNTIME_TRACE_CBID_cudaLaunchHostFunc_v10000,
        [OP_GRAPH_LAUNCH] = CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000,
        [OP_EVENT_RECORD] = CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_v3020,
        [OP_STREAM_WAIT] = CUPTI_RUNTIME_TRACE_CBID_cudaStreamWaitEvent_v3020,
        [OP_SYNC_STREAM] =
            CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020,
        [OP_SYNC_DEVICE] =
            CUPTI_RUNTIME_TRACE_CBID_cudaDeviceSynchronize_v3020,
        [OP_SYNC_EVENT] = CUPTI_RUNTIME_TRACE_CBID_cudaEventSynchronize_v3020,
        [OP_DEVICE_MALLOC] = CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020,
        [OP_DEVICE_FREE] = CUPTI_RUNTIME_TRACE_CBID_cudaFree_v3020,
        [OP_STREAM_CREATE] =
            CUPTI_RUNTIME_TRACE_CBID_cudaStreamCreateWithPriority_v5050,
        [OP_STREAM_DESTROY] = CUPTI_RUNTIME_TRACE_CBID_cudaStreamDestroy_v5050,
        [OP_EVENT_CREATE] =
            CUPTI_RUNTIME_TRACE_CBID_cudaEventCreateWithFlags_v3020,
        [OP_EVENT_DESTROY] = CUPTI_RUNTIME_TRACE_CBID_cudaEventDestroy_v3020,
    };

    if (a->api != ACTIVITY_API_PLAIN && is_kernel(a->kind))
        return named[a->api];
    return kinds[a->kind] ? kinds[a->kind]
                          : CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000;
}

static void api_make(CUpti_ActivityAPI *r, CUpti_ActivityKind kind,
                     const struct activity *a)
{
    *r = (CUpti_ActivityAPI){
        .kind = kind,
        .cbid = record_callback_id(a),
        .start = timestamp_of(a->start_ns),
        .end = timestamp_of(a->end_ns),
        .processId = (uint32_t)getpid(),
        .threadId = a->thread,
        .correlationId = (uint32_t)a->call,
    };
}

static void external_make(CUpti_ActivityExternalCorrelation *r,
                          const struct activity *a)
{
    *r = (CUpti_ActivityExternalCorrelation){
        .kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
        .externalKind = (CUpti_ExternalCorrelationKind)a->tag_kind,
        .externalId = a->tag,
        .correlationId = (uint32_t)a->call,
    };
}

/* Events' handles are addresses in one pool, 16 bytes apart at least. */
static uint32_t event_number(const struct activity *a)
{
    return (uint32_t)(a->event >> 4);
}

/* Returns false where A is no wait. */
static bool wait_make(CUpti_ActivitySynchronization2 *r,
                      const struct activity *a)
{
    static const CUpti_ActivitySynchronizationType types[OP_KINDS] = {
        [OP_SYNC_EVENT] = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE,
        [OP_STREAM_WAIT] =
            CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT,
        [OP_SYNC_STREAM] =
            CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE,
        [OP_SYNC_DEVICE] =
            CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE,
    };
    bool has_stream = a->kind == OP_STREAM_WAIT || a->kind == OP_SYNC_STREAM;
    bool has_event = a->kind == OP_STREAM_WAIT || a->kind == OP_SYNC_EVENT;

    if (!types[a->kind])
        return false;
    *r = (CUpti_ActivitySynchronization2){
        .kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
        .type = types[a->kind],
        .start = timestamp_of(a->start_ns),
        .end = timestamp_of(a->end_ns),
        .correlationId = (uint32_t)a->call,
        .contextId = context_number(a->device),
        .streamId = has_stream ? stream_number(a->device, a->stream)
                               : CUPTI_SYNCHRONIZATION_INVALID_VALUE,
        .cudaEventId = has_event ? event_number(a)
                                 : CUPTI_SYNCHRONIZATION_INVALID_VALUE,
    };
    return true;
}

/* The device's time of an event is not collected. */
static void event_make(CUpti_ActivityCudaEvent2 *r, const struct activity *a)
{
    *r = (CUpti_ActivityCudaEvent2){
        .kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT,
        .correlationId = (uint32_t)a->call,
        .contextId = context_number(a->device),
        .streamId = stream_number(a->device, a->stream),
        .eventId = event_number(a),
        .deviceId = a->device,
    };
}

/* --- what an activity is -------------------------------------------------- */

static bool work_make(union record *r, CUpti_ActivityKind kind,
                      const struct activity *a)
{
    switch (kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        if (is_kernel(a->kind))
            kernel_make(&r->kernel, kind, a);
        return is_kernel(a->kind);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        if (a->kind == OP_COPY)
            copy_make(&r->copy, a);
        return a->kind == OP_COPY;
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
        if (a->kind != OP_COPY || a->copy != ACTIVITY_COPY_PEER)
            return false;
        peer_make(&r->peer, a);
        return true;
    case CUPTI_ACTIVITY_KIND_MEMSET:
        if (a->kind == OP_SET)
            set_make(&r->set, a);
        return a->kind == OP_SET;
    default:
        return false;
    }
}

static bool call_make(union record *r, CUpti_ActivityKind kind,
                      const struct activity *a)
{
    switch (kind) {
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
        if (record_is_driver(a) != (kind == CUPTI_ACTIVITY_KIND_DRIVER))
            return false;
        api_make(&r->api, kind, a);
        return true;
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
        return wait_make(&r->wait, a);
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
        if (a->kind == OP_EVENT_RECORD)
            event_make(&r->event, a);
        return a->kind == OP_EVENT_RECORD;
    default:
        return false;
    }
}

bool record_make(union record *r, CUpti_ActivityKind kind,
                 const struct activity *a)
{
    switch (a->what) {
    case ACTIVITY_WORK:
        return work_make(r, kind, a);
    case ACTIVITY_CALL:
        return call_make(r, kind, a);
    default:
        if (kind != CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION)
            return false;
        external_make(&r->external, a);
        return true;
    }
}
