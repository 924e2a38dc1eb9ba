/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/misuse.h"

#include "capture/core/ipc.h"
#include "capture/core/process.h"
#include "capture/core/values.h"

#define FREED_KEPT 1024 /* the newest */

static uint64_t freed[FREED_KEPT];
static _Atomic uint32_t freed_next;

void misuse_remember_free(uint64_t address)
{
    freed[freed_next++ % FREED_KEPT] = address;
}

static bool was_freed(uint64_t address)
{
    for (uint32_t i = 0; i < FREED_KEPT; i++)
        if (freed[i] == address)
            return true;
    return false;
}

void misuse_free(uint64_t address)
{
    if (!memsim_values_is_device(address))
        memsim_note("the program freed an address that is no device memory; "
                    "CUDA answers 'invalid argument'");
    else if (ipc_is_foreign(address))
        memsim_note("the program freed another process's memory: it is closed "
                    "with cudaIpcCloseMemHandle");
    else if (was_freed(address))
        memsim_note("the program freed device memory twice");
    else
        memsim_note("the program freed an address inside device memory that "
                    "no allocation starts at");
}

void misuse_handle(enum handle_kind kind, uint64_t handle)
{
    const char *name = kind == HANDLE_STREAM ? "a stream" : "an event";

    if (memsim_handle_was(kind, (const void *)handle))
        memsim_note("the program used %s after destroying it", name);
    else
        memsim_note("the program used %s that never was: CUDA answers 'invalid "
                    "resource handle'",
                    name);
}

void misuse_device(const char *what, int a, int b)
{
    memsim_note("the program used %s of device %d with device %d", what, a, b);
}

void misuse_range(uint64_t address)
{
    memsim_note(was_freed(address)
                    ? "the program copied or set device memory after freeing it"
                    : "the program copied or set memory beyond an allocation's "
                      "end");
}
