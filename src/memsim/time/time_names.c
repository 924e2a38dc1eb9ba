/* SPDX-License-Identifier: Apache-2.0
 * What PyTorch's profiler calls operations, calls and streams. Names are those
 * of kineto's libkineto/src: CuptiActivity.cpp, cupti_strings.cpp. */
#include <stdio.h>
#include <string.h>

#include "common/base/demangle.h"
#include "common/base/text_begins.h"
#include "memsim/time/time_log.h"

#define NCCL_KERNEL "ncclDevKernel"

/* NCCL's kernels begin with NCCL_KERNEL, by which tools know them. NAME is a
 * function's, or in an imported profile a kernel's. */
static void collective_name(const char *name, char *text, size_t size)
{
    if (text_begins(name, NCCL_KERNEL))
        snprintf(text, size, "%s", name);
    else
        snprintf(text, size, NCCL_KERNEL "_%s",
                 !text_begins(name, "nccl") ? name : name + 4);
}

void time_log_op_name(const struct simulation_op *op,
                      const struct trace_names *names, char *text, size_t size)
{
    static const char *const copies[SIM_ENGINES] = {
        [SIM_COMPUTE] = "Memcpy DtoD (Device -> Device)",
        [SIM_COPY_IN] = "Memcpy HtoD (Pinned -> Device)",
        [SIM_COPY_OUT] = "Memcpy DtoH (Device -> Pinned)",
        [SIM_COPY_PEER] = "Memcpy PtoP (Device -> Device)",
    };
    const char *name = trace_names_get(names, op->name);

    if (op->delay)
        snprintf(text, size, "delay");
    else if (op->kind == OP_COPY && copies[op->price.engine])
        snprintf(text, size, "%s", copies[op->price.engine]);
    else if (op->kind == OP_SET)
        snprintf(text, size, "Memset (Device)");
    else if (op->kind == OP_COLLECTIVE)
        collective_name(name, text, size);
    else if (op->kind == OP_ATTENTION) /* its call is named "forward" */
        snprintf(text, size, "%s", work_family_name(op->price.family));
    else if (*name)
        demangle(name, text, size);
    else
        snprintf(text, size, "%s", work_family_name(op->price.family));
}

const char *time_log_call_name(enum op_kind kind)
{
    static const char *const names[OP_KINDS] = {
        [OP_COPY] = "cudaMemcpyAsync",
        [OP_SET] = "cudaMemsetAsync",
        [OP_HOST_FUNCTION] = "cudaLaunchHostFunc",
        [OP_GRAPH_LAUNCH] = "cudaGraphLaunch",
        [OP_EVENT_RECORD] = "cudaEventRecord",
        [OP_STREAM_WAIT] = "cudaStreamWaitEvent",
        [OP_SYNC_STREAM] = "cudaStreamSynchronize",
        [OP_SYNC_DEVICE] = "cudaDeviceSynchronize",
        [OP_SYNC_EVENT] = "cudaEventSynchronize",
        [OP_DEVICE_MALLOC] = "cudaMalloc",
        [OP_DEVICE_FREE] = "cudaFree",
        [OP_STREAM_CREATE] = "cudaStreamCreateWithPriority",
        [OP_STREAM_DESTROY] = "cudaStreamDestroy",
        [OP_EVENT_CREATE] = "cudaEventCreateWithFlags",
        [OP_EVENT_DESTROY] = "cudaEventDestroy",
    };

    return names[kind] ? names[kind] : "cudaLaunchKernel";
}

uint32_t time_log_stream(struct time_log_streams *s, uint32_t device,
                         uint64_t stream, bool *is_new)
{
    uint64_t key = stream ^ (uint64_t)device << 56;
    uint32_t number = (uint32_t)(uintptr_t)map_get(&s->numbers, key);

    *is_new = !number;
    if (number)
        return number;
    number = stream <= 1 ? TIME_LOG_STREAM_DEFAULT
                         : TIME_LOG_STREAM_DEFAULT + ++s->count;
    map_put(&s->numbers, key, (void *)(uintptr_t)number);
    return number;
}

void time_log_streams_fini(struct time_log_streams *s)
{
    map_fini(&s->numbers);
}
