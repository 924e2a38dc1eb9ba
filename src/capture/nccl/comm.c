/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/nccl/nccl_fake.h"

#include <string.h>
#include <unistd.h>

#include "capture/core/device.h"
#include "capture/core/handle.h"
#include "capture/core/log.h"
#include "capture/core/record.h"

#define VERSION 22809 /* of the nccl.h that torch 2.11 is built with */

struct communicator *communicator_get(ncclComm_t comm)
{
    return memsim_handle_get(HANDLE_NCCL, comm);
}

ncclResult_t nccl_result(int rc)
{
    switch (rc) {
    case CORE_OK:
        return ncclSuccess;
    case CORE_INVALID_VALUE:
    case CORE_INVALID_HANDLE:
        return ncclInvalidArgument;
    default:
        return ncclUnhandledCudaError;
    }
}

ncclResult_t ncclGetVersion(int *version)
{
    *version = VERSION;
    return ncclSuccess;
}

/* Unique among the processes of this machine, as NCCL's are. */
ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    static _Atomic uint64_t count;
    const uint64_t words[] = {(uint64_t)getpid(), memsim_clock_ns(), ++count};

    memset(id, 0, sizeof *id);
    memcpy(id, words, sizeof words);
    return ncclSuccess;
}

static ncclResult_t communicator_new(ncclComm_t *comm, int ranks, int rank,
                                     int device, const char *id, size_t bytes)
{
    if (!comm || ranks < 1 || rank < 0 || rank >= ranks)
        return ncclInvalidArgument;
    int rc = memsim_device_open(device);
    if (rc)
        return nccl_result(rc);
    struct communicator *c = memsim_handle_new(HANDLE_NCCL, sizeof *c);
    if (!c)
        return ncclSystemError;
    *c = (struct communicator){.device = device, .rank = rank, .ranks = ranks};
    *comm = (ncclComm_t)c;
    const uint64_t fields[] = {(uint64_t)device, (uint64_t)c, (uint64_t)rank,
                               (uint64_t)ranks};
    memsim_record_text(TRACE_COMMUNICATOR, fields, 4, id, bytes);
    return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id,
                              int rank)
{
    return communicator_new(comm, ranks, rank, memsim_device_current(),
                            id.internal, 24);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks,
                                    ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    (void)config;
    return ncclCommInitRank(comm, ranks, id, rank);
}

ncclResult_t ncclCommInitRankScalable(ncclComm_t *comm, int ranks, int rank,
                                      int count, ncclUniqueId *ids,
                                      ncclConfig_t *config)
{
    (void)config;
    return count > 0 ? ncclCommInitRank(comm, ranks, ids[0], rank)
                     : ncclInvalidArgument;
}

ncclResult_t ncclCommInitAll(ncclComm_t *comms, int count, const int *devices)
{
    ncclResult_t result = ncclSuccess;

    for (int i = 0; i < count && result == ncclSuccess; i++)
        result = communicator_new(&comms[i], count, i,
                                  devices ? devices[i] : i, "", 0);
    return result;
}

/* Who else has this color is not known in one process: the child keeps all
 * ranks, as an upper bound. */
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key,
                           ncclComm_t *child, ncclConfig_t *config)
{
    const struct communicator *c = communicator_get(comm);

    (void)key;
    (void)config;
    if (!c)
        return ncclInvalidArgument;
    *child = NULL;
    if (color == NCCL_SPLIT_NOCOLOR)
        return ncclSuccess;
    return communicator_new(child, c->ranks, c->rank, c->device, "split", 5);
}

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    return communicator_get(comm) ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    return memsim_handle_free(HANDLE_NCCL, comm) ? ncclInvalidArgument
                                                 : ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    return ncclCommDestroy(comm);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
    *error = ncclSuccess;
    return ncclCommFinalize(comm);
}

#define GET(name, field)                                                       \
    ncclResult_t name(const ncclComm_t comm, int *value)                       \
    {                                                                          \
        const struct communicator *c = communicator_get(comm);                 \
                                                                               \
        if (!c)                                                                \
            return ncclInvalidArgument;                                        \
        *value = c->field;                                                     \
        return ncclSuccess;                                                    \
    }
GET(ncclCommCount, ranks)
GET(ncclCommCuDevice, device)
GET(ncclCommUserRank, rank)

ncclResult_t ncclCommRegister(const ncclComm_t comm, void *buffer, size_t size,
                              void **handle)
{
    (void)size;
    *handle = buffer;
    return ncclCommFinalize(comm);
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle)
{
    (void)handle;
    return ncclCommFinalize(comm);
}

ncclResult_t ncclMemAlloc(void **p, size_t bytes)
{
    uint64_t address;
    int rc = memsim_device_malloc(memsim_device_current(), bytes,
                                  TRACE_HOW_VMM, false, &address);

    if (!rc)
        *p = (void *)address;
    return nccl_result(rc);
}

ncclResult_t ncclMemFree(void *p)
{
    return nccl_result(memsim_device_free((uint64_t)p, TRACE_HOW_VMM));
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar,
                                      ncclDataType_t type,
                                      ncclScalarResidence_t residence,
                                      ncclComm_t comm)
{
    (void)scalar;
    (void)type;
    (void)residence;
    *op = ncclSum;
    return ncclCommFinalize(comm);
}

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm)
{
    (void)op;
    return ncclCommFinalize(comm);
}

const char *ncclGetErrorString(ncclResult_t result)
{
    static const char *const texts[] = {
        "no error",
        "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
        "unhandled system error (run with NCCL_DEBUG=INFO for details)",
        "internal error - please report this issue to the NCCL developers",
        "invalid argument (run with NCCL_DEBUG=WARN for details)",
        "invalid usage (run with NCCL_DEBUG=WARN for details)",
        "remote process exited or there was a network error",
        "NCCL operation in progress",
    };

    return (unsigned)result < sizeof texts / sizeof *texts
               ? texts[result]
               : "unknown result code";
}

const char *ncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    return "";
}
