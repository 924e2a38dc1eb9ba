/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/diagnose/misuse.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "capture/core/memory/watch.h"
#include "capture/core/memory/owner.h"
#include "capture/core/base/launch.h"
#include "capture/core/memory/device.h"
#include "capture/core/diagnose/fault.h"
#include "capture/core/memory/host.h"
#include "capture/core/run/process.h"
#include "capture/core/run/record.h"
#include "capture/core/torch/tag.h"
#include "capture/core/memory/values.h"

#define FREED_KEPT 1024 /* the newest */
#define HOST_LOOKS 1000 /* at addresses that may be the host's */

static uint64_t freed[FREED_KEPT];
static _Atomic uint32_t freed_next;
static _Thread_local char pending[SESSION_TEXT_BYTES];

void memsim_misuse_call(const char *function)
{
    char place[TAG_TEXT_BYTES];

    if (!*pending)
        return;
    tag_text(place, sizeof place);
    memsim_note("%s: the program %s%s", function, pending, place);
    *pending = 0;
}

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(pending, sizeof pending, format, args);
    va_end(args);
}

static void remember_free(uint64_t address)
{
    freed[freed_next++ % FREED_KEPT] = address;
}

static bool was_freed(uint64_t address)
{
    for (uint32_t i = 0; address && i < FREED_KEPT; i++)
        if (freed[i] == address)
            return true;
    return false;
}

static void judge_free(uint64_t address)
{
    struct host_range range;

    if (memsim_host_find(address, &range))
        say("freed host memory as device memory");
    else if (!memsim_values_is_device(address))
        say("freed an address that is no device memory");
    else if (owner_has(OWNER_FOREIGN, address))
        say("freed another process's memory: it is closed with "
            "cudaIpcCloseMemHandle");
    else if (was_freed(address))
        say("freed device memory twice");
    else
        say("freed an address inside device memory that no allocation starts "
            "at");
}

static void judge_free_host(uint64_t address)
{
    say(memsim_values_is_device(address)
            ? "freed device memory as host memory"
            : "freed host memory that is not pinned, or not any more");
}

/* hip-tests, run on NVIDIA's runtime (HT_NVIDIA): hipStreamIsCapturing.cc,
 * hipMemcpy2DAsync.cc, hipEventDestroy.cc have 709 for what was destroyed. The
 * real runtime may crash as well; of a handle that never was it mostly does. */
int misuse_handle(enum handle_kind kind, uint64_t handle)
{
    const char *name = kind == HANDLE_STREAM ? "a stream" : "an event";
    bool was = memsim_handle_was(kind, (const void *)handle);

    say(was ? "used %s after destroying it" : "used %s that never was", name);
    return was ? CORE_CONTEXT_DESTROYED : CORE_INVALID_HANDLE;
}

void misuse_device(const char *what, int a, int b)
{
    say("used %s of device %d with device %d", what, a, b);
}

static void judge_ordinal(int device, int count)
{
    say("asked for device %d where there %s %d (--gpus)", device,
        count == 1 ? "is" : "are", count);
}

void misuse_range(uint64_t address)
{
    if (!memsim_values_is_device(address))
        say("copied or set an address that is no device memory");
    else if (was_freed(address))
        say("copied or set device memory after freeing it");
    else
        say("copied or set memory beyond an allocation's end");
}

void misuse_launch(const char *what)
{
    say("launched a kernel with %s", what);
}

static void kernel_misuse(const struct kernel *kernel, int device,
                          const char *what, bool fatal)
{
    char text[SESSION_TEXT_BYTES];

    snprintf(text, sizeof text, "kernel %.60s was given %s",
             record_name(kernel->name), what);
    if (fatal)
        fault_raise(device, CORE_ILLEGAL_ADDRESS, text);
    else
        memsim_note("%s", text);
}

/* Only what starts an allocation: an address inside one, or just behind it,
 * may be an end that nobody touches. */
static void freed_check(const struct kernel *kernel, uint64_t address,
                        int device)
{
    if (!was_freed(address) || memsim_device_find(address, NULL, NULL, NULL))
        return;
    if (device_is_mapped(address))
        kernel_misuse(kernel, device,
                      "memory that the program had freed: it reads or writes "
                      "whatever is there now",
                      false);
    else
        kernel_misuse(kernel, device, "memory that the program had freed",
                      true);
}

uint32_t misuse_frees(void)
{
    return freed_next;
}

void misuse_graph(const struct kernel *kernel, uint64_t address, int device)
{
    char text[SESSION_TEXT_BYTES];
    bool is_mapped = device_is_mapped(address);

    if (memsim_device_find(address, NULL, NULL, NULL))
        return;
    snprintf(text, sizeof text,
             "%s%.60s of a graph uses memory that the program has freed since "
             "the graph was made%s",
             kernel ? "kernel " : "a node",
             kernel ? record_name(kernel->name) : "",
             is_mapped ? ": it reads or writes whatever is there now" : "");
    if (is_mapped)
        memsim_note("%s", text);
    else
        fault_raise(device, CORE_ILLEGAL_ADDRESS, text);
}

/* Pools and maps (cuMemMap) have access rights of their own. */
static void owner_check(const struct kernel *kernel, uint64_t address,
                        int device)
{
    int owner = device;
    uint64_t start, bytes;

    if (!device_owns(address, &owner, &start, &bytes) || owner == device ||
        device_peer_enabled(device, owner) || owner_has(OWNER_POOL, start))
        return;
    kernel_misuse(kernel, device,
                  "another device's memory, without peer access to it", true);
}

/* cudaDevAttrPageableMemoryAccess is 0: a GPU of the catalogue cannot reach
 * plain host memory. But who knows that it would try. */
static void host_check(const struct kernel *kernel, uint64_t address,
                       int device)
{
    static _Atomic uint32_t looks;
    struct host_range range;

    if (looks >= HOST_LOOKS || ++looks > HOST_LOOKS ||
        memsim_host_find(address, &range) ||
        memsim_device_find(address, NULL, NULL, NULL))
        return;
    kernel_misuse(kernel, device,
                  "a host address that is neither pinned nor managed", false);
}

void misuse_given(const struct kernel *kernel, uint64_t address, int device)
{
    if (freed_next)
        freed_check(kernel, address, device);
    if (memsim_device_count() > 1)
        owner_check(kernel, address, device);
}

void misuse_arguments(const struct kernel *kernel,
                      const struct kernel_launch *launch, int device)
{
    for (uint32_t i = 0, left = kernel->pointers; left; i++, left >>= 1) {
        uint64_t address;

        if (!(left & 1))
            continue;
        memcpy(&address, launch->arguments[i], sizeof address);
        if (!address)
            continue;
        if (memsim_values_is_device(address))
            misuse_given(kernel, address, device);
        else
            host_check(kernel, address, device);
    }
}

static struct memory_watch watch = {
    .bad_device = judge_ordinal,
    .bad_free = judge_free,
    .bad_host_free = judge_free_host,
    .freed = remember_free,
};

__attribute__((constructor)) static void misuse_start(void)
{
    memory_watch_add(&watch);
}
