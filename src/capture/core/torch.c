/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/torch.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/core/device.h"
#include "capture/core/log.h"
#include "capture/core/process.h"
#include "capture/core/record.h"
#include "capture/core/tag.h"
#include "capture/core/values.h"

/* c10::Device, passed in a register. */
struct c10_device {
    int8_t type; /* 1: CUDA */
    int8_t index;
};

/* c10::CachingDeviceAllocator::TraceEntry (before 2.9 in CUDACachingAllocator),
 * as far as it is read. */
struct trace_entry {
    int32_t action;
    int8_t device;
    uint64_t address; /* of an OOM: the free bytes */
    void *context[2];
    uint64_t stream;
    uint64_t bytes; /* as requested */
    uint64_t pool[2];
};

enum trace_action {
    ACTION_ALLOC,
    ACTION_FREE_REQUESTED,
    ACTION_FREE_COMPLETED,
    ACTION_SEGMENT_ALLOC,
    ACTION_SEGMENT_FREE,
    ACTION_SEGMENT_MAP,
    ACTION_SEGMENT_UNMAP,
    ACTION_SNAPSHOT,
    ACTION_OOM,
};

/* std::function<void(const TraceEntry &)> of libstdc++. */
struct std_function {
    void *functor[2];
    bool (*manager)(void *, const void *, int);
    void (*invoker)(const void *functor, const struct trace_entry *entry);
};

/* Where CUDAAllocator::attachAllocatorTraceTracker is in the virtual table, by
 * PyTorch version: printed by tools/torch-abi from each wheel's headers. */
static const struct abi {
    const char *version; /* "2.11." matches 2.11.0+cu130 */
    int attach_slot;
} abis[] = {
#include "capture/core/torch_abi.inc"
};

/* What the trace said of the block whose report comes next on this thread. */
static _Thread_local struct {
    uint64_t address, requested, stream, pool[2];
    uint64_t freeing; /* address of a free that was requested */
    bool done;        /* ... and carried out at once */
} pending;

static _Atomic bool met; /* torch's allocator has called */
static bool tracked;     /* its trace is attached */

static void entry_segment(enum trace_kind kind, const struct trace_entry *e)
{
    memsim_record(kind,
                  (const uint64_t[]){(uint64_t)e->device, e->address, e->bytes,
                                     e->stream, e->pool[0], e->pool[1]},
                  kind == TRACE_SEGMENT_ALLOC || kind == TRACE_SEGMENT_MAP ? 6
                                                                           : 4);
}

static void entry_oom(const struct trace_entry *e)
{
    const struct session_usage *usage = device_usage(e->device);
    struct tag tag;

    if (!usage)
        return;
    tag_now(&tag);
    RECORD(OOM, (uint64_t)e->device, e->bytes, e->address,
           atomic_load(&usage->allocated), atomic_load(&usage->reserved),
           e->stream, tag.module, tag.phase, tag.operation, tag.range);
    device_give_up(e->device, true, e->bytes);
}

static void entry_done(const struct trace_entry *e)
{
    if (pending.freeing == e->address)
        pending.done = true;
    else
        RECORD(FREE_DONE, (uint64_t)e->device, e->address, e->bytes, e->stream);
}

static void entry_see(const void *functor, const struct trace_entry *e)
{
    (void)functor;
    switch ((enum trace_action)e->action) {
    case ACTION_ALLOC:
        pending.address = e->address;
        pending.requested = e->bytes;
        pending.stream = e->stream;
        pending.pool[0] = e->pool[0];
        pending.pool[1] = e->pool[1];
        break;
    case ACTION_FREE_REQUESTED:
        pending.freeing = e->address;
        pending.stream = e->stream;
        pending.done = false;
        break;
    case ACTION_FREE_COMPLETED:
        entry_done(e);
        break;
    case ACTION_SEGMENT_ALLOC:
        entry_segment(TRACE_SEGMENT_ALLOC, e);
        break;
    case ACTION_SEGMENT_FREE:
        entry_segment(TRACE_SEGMENT_FREE, e);
        break;
    case ACTION_SEGMENT_MAP:
        entry_segment(TRACE_SEGMENT_MAP, e);
        break;
    case ACTION_SEGMENT_UNMAP:
        entry_segment(TRACE_SEGMENT_UNMAP, e);
        break;
    case ACTION_OOM:
        entry_oom(e);
        break;
    case ACTION_SNAPSHOT:
        break;
    }
}

/* Nothing is owned, so cloning and destroying are copying and nothing. */
static bool functor_manage(void *to, const void *from, int operation)
{
    (void)operation;
    if (from)
        memcpy(to, from, 2 * sizeof(void *));
    return false;
}

/* "2.11.0+cu130" from DIRECTORY-OF-PATH/../version.py. */
static bool version_read(const char *library, char *version, size_t size)
{
    char path[4096], text[1024];
    const char *slash = strrchr(library, '/');

    if (!slash || snprintf(path, sizeof path, "%.*s/../version.py",
                           (int)(slash - library),
                           library) >= (int)sizeof path)
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[n < 0 ? 0 : n] = '\0';
    const char *start = strstr(text, "__version__ = '");
    if (!start)
        return false;
    start += strlen("__version__ = '");
    snprintf(version, size, "%.*s", (int)strcspn(start, "'"), start);
    return true;
}

static const struct abi *abi_find(const char *version)
{
    for (size_t i = 0; i < sizeof abis / sizeof *abis; i++)
        if (!strncmp(version, abis[i].version, strlen(abis[i].version)))
            return &abis[i];
    return NULL;
}

static void tracker_attach(int slot)
{
    const struct std_function tracker = {.manager = functor_manage,
                                         .invoker = entry_see};
    void **allocator = dlsym(
        dlopen("libc10_cuda.so", RTLD_LAZY | RTLD_NOLOAD),
        "_ZN3c104cuda20CUDACachingAllocator9allocatorE");

    if (!allocator || !*allocator)
        return;
    void (**table)(void *, const struct std_function *) = **(
        void (****)(void *, const struct std_function *))allocator;
    table[slot](*allocator, &tracker);
    tracked = true;
}

static void torch_meet(const char *library, bool attach)
{
    char version[32], setting[48];

    process_join(); /* the first memory may come before any context */
    struct session_process *slot = process_slot();
    if (!slot)
        return;
    if (!version_read(library, version, sizeof version))
        snprintf(version, sizeof version, "unknown");
    snprintf(slot->torch_version, sizeof slot->torch_version, "%s", version);
    int n = snprintf(setting, sizeof setting, "torch=%s", version);
    memsim_record_text(TRACE_SETTING, NULL, 0, setting, (size_t)n);
    if (!attach)
        return;
    const struct abi *abi = abi_find(version);
    if (abi)
        tracker_attach(abi->attach_slot);
    else
        memsim_note("torch %s is not a version we know: requested sizes and "
                    "streams of its blocks are not recorded", version);
}

/* The path of libc10_cuda.so where RETURN_ADDRESS lies in it, else NULL. */
static const char *torch_library(const void *return_address)
{
    Dl_info info;

    if (!dladdr(return_address, &info) || !info.dli_fname)
        return NULL;
    const char *name = strrchr(info.dli_fname, '/');
    return strncmp(name ? name + 1 : info.dli_fname, "libc10_cuda.so", 14)
               ? NULL
               : info.dli_fname;
}

bool memsim_torch_calls(const void *return_address)
{
    const char *library = torch_library(return_address);

    if (library && !atomic_exchange(&met, true))
        torch_meet(library, true);
    return library;
}

/* Its allocator of this kind throws when an observer is attached. It calls
 * from one place, so the last answer is kept. */
bool memsim_torch_pools(const void *return_address)
{
    static _Thread_local const void *last;
    static _Thread_local bool is_torch;

    if (last == return_address)
        return is_torch;
    const char *library = torch_library(return_address);
    if (library && !atomic_exchange(&met, true))
        torch_meet(library, false);
    last = return_address;
    is_torch = library;
    return is_torch;
}

/* The function of the same name in libc10.so, which ours stands before. */
static void *torch_function(const char *name)
{
    void *library = dlopen("libc10.so", RTLD_LAZY | RTLD_NOLOAD);

    return library ? dlsym(library, name) : NULL;
}

#define REPORT_USAGE "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"
#define REPORT_OOM   "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE"

static void block_alloc(int device, uint64_t address, uint64_t bytes,
                        uint64_t allocated, uint64_t reserved)
{
    bool traced = pending.address == address;
    struct tag tag;

    memsim_values_forget(address, bytes);
    tag_now(&tag);
    RECORD(BLOCK_ALLOC, (uint64_t)device, address,
           traced ? pending.requested : bytes, bytes,
           traced ? pending.stream : 0, allocated, reserved,
           traced ? pending.pool[0] : 0, traced ? pending.pool[1] : 0,
           tag.module, tag.phase, tag.operation, tag.range);
    pending.address = 0;
}

static void block_free(int device, uint64_t address, uint64_t bytes,
                       uint64_t allocated, uint64_t reserved)
{
    bool traced = pending.freeing == address;

    RECORD(BLOCK_FREE, (uint64_t)device, address, bytes, allocated, reserved,
           traced ? pending.stream : 0, traced && !pending.done);
    pending.freeing = 0;
}

void torch_usage(int device, uint64_t allocated, uint64_t reserved)
{
    struct session_usage *usage = device_usage(device);

    if (!usage)
        return;
    atomic_store_explicit(&usage->allocated, allocated, memory_order_relaxed);
    atomic_store_explicit(&usage->reserved, reserved, memory_order_relaxed);
    session_raise(&usage->peak_allocated, allocated);
    session_raise(&usage->peak_reserved, reserved);
}

/* c10/core/Allocator.cpp. PyTorch calls it for every block handed out or taken
 * back, with what it has allocated and reserved after that. */
void torch_report_usage(void *p, int64_t bytes, size_t allocated,
                        size_t reserved, struct c10_device device)
    __asm__(REPORT_USAGE);
CORE_API void torch_report_usage(void *p, int64_t bytes, size_t allocated,
                                 size_t reserved, struct c10_device device)
{
    static __typeof__(&torch_report_usage) real;

    if (device.type == 1 && device_usage(device.index)) {
        if (bytes >= 0)
            block_alloc(device.index, (uint64_t)p, (uint64_t)bytes, allocated,
                        reserved);
        else
            block_free(device.index, (uint64_t)p, (uint64_t)-bytes, allocated,
                       reserved);
        torch_usage(device.index, allocated, reserved);
    }
    if (!real)
        real = torch_function(REPORT_USAGE);
    if (real)
        real(p, bytes, allocated, reserved, device);
}

/* The same for a request that it gave up; the attached trace knows more. */
void torch_report_oom(int64_t bytes, size_t allocated, size_t reserved,
                      struct c10_device device) __asm__(REPORT_OOM);
CORE_API void torch_report_oom(int64_t bytes, size_t allocated,
                               size_t reserved, struct c10_device device)
{
    static __typeof__(&torch_report_oom) real;

    if (device.type == 1 && !tracked)
        device_give_up(device.index, true, (uint64_t)bytes);
    if (!real)
        real = torch_function(REPORT_OOM);
    if (real)
        real(bytes, allocated, reserved, device);
}
