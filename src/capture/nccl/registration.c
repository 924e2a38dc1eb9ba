/* SPDX-License-Identifier: Apache-2.0
 * Memory that a communicator knows beforehand: registered buffers, and windows
 * for symmetric memory. Both take none of the GPU's that the program has not
 * allocated itself. */
#include "capture/nccl/nccl_fake.h"

#include "capture/core/memory/device.h"
#include "capture/core/memory/values.h"

static ncclResult_t check(ncclComm_t comm, const void *buffer)
{
    if (!communicator_get(comm) || !buffer ||
        !memsim_values_is_device((uint64_t)buffer))
        return ncclInvalidArgument;
    return ncclSuccess;
}

ncclResult_t ncclCommRegister(const ncclComm_t comm, void *buffer, size_t size,
                              void **handle)
{
    ncclResult_t result = handle && size ? check(comm, buffer)
                                         : ncclInvalidArgument;

    if (!result)
        *handle = buffer;
    return result;
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle)
{
    return check(comm, handle);
}

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *buffer, size_t size,
                                    ncclWindow_t *window, int flags)
{
    (void)flags;
    ncclResult_t result = window && size ? check(comm, buffer)
                                         : ncclInvalidArgument;

    if (!result)
        *window = (ncclWindow_t)buffer;
    return result;
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window)
{
    return check(comm, window);
}

ncclResult_t ncclMemAlloc(void **p, size_t bytes)
{
    uint64_t address;
    int rc = memsim_device_malloc(memsim_device_current(), bytes, TRACE_HOW_VMM,
                                  false, &address);

    if (!rc)
        *p = (void *)address;
    return nccl_result(rc);
}

ncclResult_t ncclMemFree(void *p)
{
    return nccl_result(memsim_device_free((uint64_t)p, TRACE_HOW_VMM));
}

/* What is under way ends with the communicator, which only its end may follow.
 */
ncclResult_t ncclCommRevoke(ncclComm_t comm, int flags)
{
    (void)flags;
    return communicator_get(comm) ? ncclSuccess : ncclInvalidArgument;
}
