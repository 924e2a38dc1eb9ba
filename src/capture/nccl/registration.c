/* SPDX-License-Identifier: Apache-2.0
 * Memory that a communicator knows beforehand: registered buffers, and windows
 * for symmetric memory. Both take none of the GPU's that the program has not
 * allocated itself. */
#include "capture/nccl/window.h"

#include "capture/core/base/handle.h"
#include "capture/core/memory/device.h"
#include "capture/core/memory/values.h"

static ncclResult_t check_buffer(ncclComm_t comm, const void *buffer)
{
    if (!communicator_get(comm) || !buffer ||
        !memsim_values_is_device((uint64_t)buffer))
        return ncclInvalidArgument;
    return ncclSuccess;
}

ncclResult_t ncclCommRegister(const ncclComm_t comm, void *buffer, size_t size,
                              void **handle)
{
    ncclResult_t result =
        handle && size ? check_buffer(comm, buffer) : ncclInvalidArgument;

    if (!result)
        *handle = buffer;
    return result;
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle)
{
    return check_buffer(comm, handle);
}

/* A window that some address is looked up for. */
struct search {
    ncclComm_t comm;
    uint64_t address;
    struct window *found;
};

static void name_see(void *handle, void *data)
{
    struct window *w = handle;
    struct search *s = data;

    if (w->name == s->address)
        s->found = w;
}

struct window *window_get(ncclWindow_t window)
{
    struct search s = {.address = (uint64_t)window};

    if (window)
        memsim_handle_each(HANDLE_NCCL_WINDOW, name_see, &s);
    return s.found && communicator_get(s.found->comm) ? s.found : NULL;
}

static void memory_see(void *handle, void *data)
{
    struct window *w = handle;
    struct search *s = data;

    if (w->comm == s->comm && s->address - w->address < w->bytes)
        s->found = w;
}

struct window *window_around(ncclComm_t comm, const void *buffer)
{
    struct search s = {.comm = comm, .address = (uint64_t)buffer};

    memsim_handle_each(HANDLE_NCCL_WINDOW, memory_see, &s);
    return s.found;
}

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *buffer, size_t size,
                                    ncclWindow_t *window, int flags)
{
    ncclResult_t result =
        window && size ? check_buffer(comm, buffer) : ncclInvalidArgument;

    if (result)
        return result;
    struct window *w = memsim_handle_new(HANDLE_NCCL_WINDOW, sizeof *w);
    if (!w)
        return ncclSystemError;
    *w = (struct window){
        .comm = comm,
        .name = memsim_device_import(communicator_get(comm)->device, 1),
        .address = (uint64_t)buffer,
        .bytes = size,
        .symmetric = flags & NCCL_WIN_COLL_SYMMETRIC};
    if (!w->name) { /* no range of addresses is left */
        memsim_handle_free(HANDLE_NCCL_WINDOW, w);
        return ncclSystemError;
    }
    *window = (ncclWindow_t)w->name;
    return ncclSuccess;
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window)
{
    struct window *w = window_get(window);

    if (!w || w->comm != comm)
        return ncclInvalidArgument;
    memsim_device_forget_import(w->name);
    if (w->peers)
        memsim_device_forget_import(w->peers);
    memsim_handle_free(HANDLE_NCCL_WINDOW, w);
    return ncclSuccess;
}

static void window_forget(void *handle, void *data)
{
    const struct window *w = handle;

    if (w->comm == data)
        memsim_values_forget(w->address, w->bytes);
}

void windows_forget(ncclComm_t comm)
{
    memsim_handle_each(HANDLE_NCCL_WINDOW, window_forget, comm);
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
