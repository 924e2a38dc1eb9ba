/* SPDX-License-Identifier: Apache-2.0
 * One-sided calls of NCCL 2.29 and later: a put writes to another rank's window
 * and signals it, and that rank waits for signals only. The headers that memsim
 * is built with may be older.
 *
 * What is put does not travel: after a wait, what the windows hold is not
 * known. Each call is in the trace, with its time; whom a wait waits for the
 * simulator does not look up.
 *
 * The arguments that are refused are those that NCCL 2.30 refuses
 * (src/enqueue.cc, rmaTaskAppend). */
#include "capture/nccl/window.h"

#include "capture/core/diagnose/misuse.h"
#include "capture/core/memory/values.h"
#include "capture/core/run/record.h"
#include "capture/core/work/kernel.h"
#include "capture/core/work/stream.h"
#include "capture/core/work/submit.h"
#include "capture/nccl/operation.h"

struct wait_signal { /* ncclWaitSignalDesc_t */
    int count, peer, signal, context;
};

ncclResult_t ncclPutSignal(const void *buffer, size_t count,
                           ncclDataType_t type, int peer, ncclWindow_t window,
                           size_t offset, int signal, int context,
                           unsigned flags, ncclComm_t comm,
                           cudaStream_t stream);
ncclResult_t ncclSignal(int peer, int signal, int context, unsigned flags,
                        ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclWaitSignal(int count, struct wait_signal *waits,
                            ncclComm_t comm, cudaStream_t stream);

struct one_sided {
    uint32_t name;
    ncclComm_t comm;
    int peer;
    uint64_t count, type, bytes, send;
    cudaStream_t stream;
};

static ncclResult_t submit_call(const struct one_sided *call)
{
    const struct communicator *c = communicator_get(call->comm);
    int device;
    int rc = memsim_stream_device((uint64_t)call->stream, &device);

    if (rc) {
        memsim_misuse_call("NCCL");
        return nccl_result(rc);
    }
    memsim_kernel_count(device);
    SUBMIT(COLLECTIVE, .name = call->name, .device = (uint64_t)device,
           .stream = (uint64_t)call->stream, .communicator = (uint64_t)c,
           .rank = (uint64_t)c->rank, .ranks = (uint64_t)c->ranks,
           .count = call->count, .type = call->type,
           .root = (uint64_t)call->peer, .bytes = call->bytes,
           .send = call->send, .stack = communicator_stack(c));
    return ncclSuccess;
}

/* NCCL has one signal and one context, and no flags yet. */
static ncclResult_t check_call(ncclComm_t comm, int peer, int signal,
                               int context, unsigned flags)
{
    const struct communicator *c = communicator_get(comm);

    if (!c || peer < 0 || peer >= c->ranks || signal || context || flags)
        return ncclInvalidArgument;
    return c->suspended ? ncclInvalidUsage : ncclSuccess;
}

/* BYTES at OFFSET of PEER's WINDOW are this rank's BUFFER: what they are is
 * known where PEER is this rank. */
static ncclResult_t window_put(ncclComm_t comm, const void *buffer,
                               uint64_t bytes, int peer,
                               const struct window *window, uint64_t offset)
{
    const struct window *from = buffer ? window_around(comm, buffer) : NULL;

    if (!from || !from->symmetric || !window || window->comm != comm ||
        offset > window->bytes || bytes > window->bytes - offset)
        return ncclInvalidArgument;
    if (peer == communicator_get(comm)->rank)
        memsim_values_copy(window->address + offset, (uint64_t)buffer, bytes);
    return ncclSuccess;
}

ncclResult_t ncclPutSignal(const void *buffer, size_t count,
                           ncclDataType_t type, int peer, ncclWindow_t window,
                           size_t offset, int signal, int context,
                           unsigned flags, ncclComm_t comm, cudaStream_t stream)
{
    uint64_t bytes = count * nccl_type_bytes((int)type);
    ncclResult_t result = check_call(comm, peer, signal, context, flags);

    if (!result)
        result =
            window_put(comm, buffer, bytes, peer, window_get(window), offset);
    if (result)
        return result;
    return submit_call(
        &(const struct one_sided){.name = NAME_OF("ncclPutSignal"),
                                  .comm = comm,
                                  .peer = peer,
                                  .count = count,
                                  .type = (uint64_t)type,
                                  .bytes = bytes,
                                  .send = (uint64_t)buffer,
                                  .stream = stream});
}

ncclResult_t ncclSignal(int peer, int signal, int context, unsigned flags,
                        ncclComm_t comm, cudaStream_t stream)
{
    ncclResult_t result = check_call(comm, peer, signal, context, flags);

    if (result)
        return result;
    return submit_call(&(const struct one_sided){.name = NAME_OF("ncclSignal"),
                                                 .comm = comm,
                                                 .peer = peer,
                                                 .stream = stream});
}

ncclResult_t ncclWaitSignal(int count, struct wait_signal *waits,
                            ncclComm_t comm, cudaStream_t stream)
{
    ncclResult_t result = count > 0 && waits ? ncclSuccess
                                             : ncclInvalidArgument;

    for (int i = 0; i < count && !result; i++)
        result = waits[i].count > 0
                     ? check_call(comm, waits[i].peer, waits[i].signal,
                                  waits[i].context, 0)
                     : ncclInvalidArgument;
    if (result)
        return result;
    int i = 0;
    while (i < count && waits[i].peer == communicator_get(comm)->rank)
        i++;
    if (i < count) /* another rank's */
        windows_forget(comm);
    return submit_call(
        &(const struct one_sided){.name = NAME_OF("ncclWaitSignal"),
                                  .comm = comm,
                                  .peer = waits[0].peer,
                                  .count = (uint64_t)count,
                                  .stream = stream});
}
