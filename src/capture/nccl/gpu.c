/* SPDX-License-Identifier: Apache-2.0
 * The simulated GPU: values travel by exchange.h, and the time is the
 * simulator's, by the record of each call. */
#include "capture/nccl/gpu.h"

#include "capture/core/diagnose/misuse.h"
#include "capture/core/memory/device.h"
#include "capture/core/memory/values.h"
#include "capture/core/memory/values_pack.h"
#include "capture/core/work/await.h"
#include "capture/core/work/kernel.h"
#include "capture/core/work/stream.h"
#include "capture/core/work/stream_capture.h"
#include "capture/core/work/submit.h"

int nccl_gpu_current(void)
{
    return memsim_device_current();
}

int nccl_gpu_open(int device)
{
    return memsim_device_open(device);
}

int nccl_gpu_of_stream(uint64_t stream, int *device)
{
    int rc = memsim_stream_device(stream, device);

    if (rc)
        memsim_misuse_call("NCCL");
    return rc;
}

int nccl_gpu_library(int device, const char *who, uint64_t bytes)
{
    return memsim_device_library(device, who, bytes);
}

int nccl_gpu_object(int device, const char *who, uint64_t bytes)
{
    return memsim_device_library_object(device, who, bytes);
}

void nccl_gpu_object_end(int device, const char *who)
{
    memsim_device_library_object_end(device, who);
}

/* In a capture a node is made that does, when the graph is launched, as if all
 * ranks sent the same: what ranks send each other in graphs is not known. */
static bool capture_call(const struct nccl_call *call,
                         const struct communicator *c)
{
    const struct exchange *e = &call->exchange;
    bool captured = false;

    for (int i = 0; i < call->receives && e->receive && e->send; i++) {
        const uint64_t step[STEP_WORDS] = {
            e->receive + (uint64_t)i * e->share,
            e->send + (call->sends > 1 ? (uint64_t)c->rank * e->share : 0),
            e->share};

        captured = memsim_capture_step(e->stream, STEP_COPY, step);
    }
    return captured || memsim_capture_holds(e->stream);
}

ncclResult_t nccl_gpu_call(struct communicator *c, const struct nccl_call *call)
{
    if (!capture_call(call, c))
        exchange_begin(&call->exchange);
    memsim_kernel_count((int)call->record.device);
    memsim_submit(TRACE_COLLECTIVE, (const uint64_t *)&call->record,
                  TRACE_WORD_COUNT(COLLECTIVE), NULL, 0);
    return ncclSuccess;
}

bool nccl_gpu_take(uint64_t address, uint64_t bytes, void *data,
                   unsigned char *marks)
{
    return memsim_values_take(address, bytes, data, marks);
}

void nccl_gpu_give(uint64_t address, uint64_t bytes, const void *data,
                   const unsigned char *marks)
{
    memsim_values_give(address, bytes, data, marks);
}

void nccl_gpu_forget(uint64_t address, uint64_t bytes)
{
    memsim_values_forget(address, bytes);
}

ncclResult_t nccl_gpu_group_end(void)
{
    memsim_await_poll();
    return ncclSuccess;
}
