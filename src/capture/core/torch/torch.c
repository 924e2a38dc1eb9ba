/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/torch/torch.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/core/memory/blocks.h"
#include "capture/core/memory/watch.h"
#include "capture/core/memory/device.h"
#include "capture/core/base/log.h"
#include "capture/core/run/process.h"
#include "capture/core/run/record_put.h"
#include "capture/core/torch/kept.h"
#include "capture/core/torch/tag.h"
#include "capture/core/torch/shape.h"
#include "capture/core/torch/stack.h"
#include "capture/core/torch/torch_function.h"
#include "capture/core/torch/torch_slots.h"
#include "capture/core/memory/values.h"
#include "common/base/text_begins.h"
#include "common/trace/session.h"

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

/* What is known of the block whose report comes next on this thread: what its
 * trace said, and the segment that was taken for it. */
static _Thread_local struct {
    uint64_t address, requested, stream, pool[2];
    uint64_t freeing; /* address of a free that was requested */
    bool done;        /* ... and carried out at once */
    bool deferred;    /* an event was recorded behind it */
    uint64_t segment, segment_bytes;
    uint64_t refused_stream; /* of a request that is given up */
} pending;

static _Atomic bool met;     /* torch's allocator has called */
static _Atomic bool caching; /* ... and is the native one, of a version known */
static _Atomic bool watched; /* we stand before it */
static _Atomic bool observing; /* its trace is needed */
static _Atomic bool tracked;   /* ... and attached to */

torch_fresh_block *_Atomic torch_fresh;

static void entry_segment(enum trace_kind kind, const struct trace_entry *e)
{
    uint64_t pool[2];

    torch_slots_pool(e, pool);
    memsim_record(kind,
                  TRACE_WORDS(SEGMENT_ALLOC, .device = (uint64_t)e->device,
                              .address = e->address, .bytes = e->bytes,
                              .stream = e->stream, .pool_low = pool[0],
                              .pool_high = pool[1]),
                  TRACE_WORD_COUNT(SEGMENT_ALLOC));
}

static void entry_done(const struct trace_entry *e)
{
    if (pending.freeing == e->address)
        pending.done = true;
    else
        RECORD(FREE_DONE, .device = (uint64_t)e->device, .address = e->address,
               .bytes = e->bytes, .stream = e->stream);
}

static void entry_see(const void *functor, const struct trace_entry *e)
{
    (void)functor;
    switch ((enum trace_action)e->action) {
    case ACTION_ALLOC:
        pending.address = e->address;
        pending.requested = e->bytes;
        pending.stream = e->stream;
        torch_slots_pool(e, pending.pool);
        pending.segment = 0;
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
        pending.refused_stream = e->stream;
        break;
    case ACTION_SNAPSHOT:
        break;
    }
}

/* The path of libc10_cuda.so where RETURN_ADDRESS lies in it, else NULL. */
static const char *torch_library(const void *return_address)
{
    Dl_info info;

    if (!dladdr(return_address, &info) || !info.dli_fname)
        return NULL;
    const char *name = strrchr(info.dli_fname, '/');
    return !text_begins(name ? name + 1 : info.dli_fname, "libc10_cuda.so")
               ? NULL
               : info.dli_fname;
}

static void observe_torch(void)
{
    if (atomic_load(&caching) && !atomic_exchange(&tracked, true))
        torch_slots_attach(entry_see);
}

/* As long as all memory is the default stream's, in no pool of its own and
 * handed out as cudaMalloc gave it, the reports and what we stand before say
 * everything. PyTorch's trace says more, and costs more than all our recording:
 * it is attached to when the first of these ends. */
void torch_observe(void)
{
    atomic_store(&observing, true);
    observe_torch();
}

static void torch_meet(const char *library, bool native)
{
    char version[32], setting[48];

    process_join(); /* the first memory may come before any context */
    struct session_process *slot = process_slot();
    if (!slot)
        return;
    if (!torch_slots_version(library, version, sizeof version))
        snprintf(version, sizeof version, "unknown");
    snprintf(slot->torch_version, sizeof slot->torch_version, "%s", version);
    int n = snprintf(setting, sizeof setting, "torch=%s", version);
    RECORD_TEXT(SETTING, setting, (size_t)n);
    if (!native)
        return;
    if (torch_slots_find(version))
        atomic_store(&caching, true);
    else
        memsim_note("torch %s is not a version we know: requested sizes and "
                    "streams of its blocks are not recorded",
                    version);
    if (observing || !watched || getenv("PYTORCH_NO_CUDA_MEMORY_CACHING"))
        observe_torch();
}

const char *memsim_torch_version(void)
{
    const struct session_process *slot = process_slot();

    return slot ? slot->torch_version : "";
}

/* PyTorch counts the devices before it makes its allocators. */
void memsim_torch_counts(const void *return_address)
{
    static _Atomic bool done;
    const char *library = done ? NULL : torch_library(return_address);
    char version[32];

    if (library && !atomic_exchange(&done, true))
        watched = torch_slots_version(library, version, sizeof version) &&
                  torch_slots_find(version) && torch_slots_watch(torch_observe);
}

bool memsim_torch_calls(const void *return_address)
{
    const char *library = torch_library(return_address);

    if (library && !atomic_exchange(&met, true))
        torch_meet(library, true);
    return library;
}

bool memsim_torch_asks(const void *return_address)
{
    static _Thread_local const void *last;
    static _Thread_local bool is_torch;

    if (last != return_address) {
        is_torch = torch_library(return_address);
        last = return_address;
    }
    return is_torch;
}

/* The block stays taken for a while, which only PyTorch's trace says. */
void memsim_torch_defers(const void *return_address)
{
    const struct session *s = memsim_session();

    if (!s || !s->late_frees || !memsim_torch_asks(return_address))
        return;
    pending.deferred = true;
    torch_observe();
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

#define REPORT_USAGE "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"
#define REPORT_OOM   "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE"

static void segment_taken(uint64_t address, uint64_t bytes)
{
    if (tracked)
        return;
    pending.segment = address;
    pending.segment_bytes = bytes;
}

/* Before the segment at ADDRESS is given back. */
void memsim_torch_frees(const void *return_address, uint64_t address)
{
    uint64_t start, bytes;
    int device;

    if (!caching || tracked || !torch_library(return_address) ||
        !memsim_device_find(address, &device, &start, &bytes))
        return;
    RECORD(SEGMENT_FREE, .device = (uint64_t)device, .address = address,
           .bytes = bytes);
}

static void segment_record(int device)
{
    RECORD(SEGMENT_ALLOC, .device = (uint64_t)device,
           .address = pending.segment, .bytes = pending.segment_bytes);
    pending.segment = 0;
}

/* As PyTorch asked for it: its trace knows, or we stood before. */
static uint64_t block_requested(uint64_t address, uint64_t bytes)
{
    uint64_t requested = torch_slots_requested();

    if (pending.address == address)
        return pending.requested;
    return requested && requested <= bytes ? requested : bytes;
}

/* Fields that are never 0 in a PyTorch that allocates. A block's records are
 * the most frequent of all, so that their time is a coarse one. */
#define ALLOC_ALWAYS                                                           \
    (TRACE_BIT(BLOCK_ALLOC, address) |                                         \
     TRACE_BIT(BLOCK_ALLOC, requested_bytes) |                                 \
     TRACE_BIT(BLOCK_ALLOC, block_bytes))
#define FREE_ALWAYS                                                            \
    (TRACE_BIT(BLOCK_FREE, address) | TRACE_BIT(BLOCK_FREE, block_bytes))

static void block_alloc(int device, uint64_t address, uint64_t bytes,
                        uint64_t allocated, uint64_t reserved)
{
    bool traced = pending.address == address;
    uint64_t pool[2] = {traced ? pending.pool[0] : 0,
                        traced ? pending.pool[1] : 0};
    torch_fresh_block *fresh = torch_fresh;
    uint64_t requested = block_requested(address, bytes);
    struct tag tag;

    if (pending.segment)
        segment_record(device);
    memsim_values_forget(address, bytes);
    blocks_add(address, bytes);
    process_goes_on();
    if (fresh)
        fresh(traced ? &pending.stream : NULL, address, bytes);
    tag_now(&tag);
    kept_add(address, bytes, &tag);
    RECORD_PUT(
        true, ALLOC_ALWAYS, BLOCK_ALLOC, .device = (uint64_t)device,
        .address = address, .requested_bytes = requested, .block_bytes = bytes,
        .stream = traced ? pending.stream : 0,
        .allocated_bytes = allocated, .reserved_bytes = reserved,
        .pool_low = pool[0], .pool_high = pool[1], .module = tag.module,
        .phase = tag.phase, .operator= tag.operation, .range = tag.range,
        .stack = stack_take(), .shape = shape_take(requested));
    pending.address = 0;
}

static void block_free(int device, uint64_t address, uint64_t bytes,
                       uint64_t allocated, uint64_t reserved)
{
    bool traced = pending.freeing == address;

    blocks_remove(address, bytes);
    kept_remove(address);
    RECORD_PUT(true, FREE_ALWAYS, BLOCK_FREE, .device = (uint64_t)device,
               .address = address, .block_bytes = bytes,
               .allocated_bytes = allocated, .reserved_bytes = reserved,
               .stream = traced ? pending.stream : 0,
               .deferred = traced ? !pending.done : pending.deferred);
    pending.freeing = 0;
    pending.deferred = false;
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

/* As Python writes them; "": not set. */
static char fractions[SESSION_DEVICES][32];

static void fraction_record(int device)
{
    const char *text = fractions[device];

    if (*text)
        RECORD_TEXT(MEMORY_FRACTION, text, strlen(text),
                    .device = (uint64_t)device);
}

void memsim_torch_fraction(int device, const char *fraction)
{
    if (device < 0 || device >= SESSION_DEVICES)
        return;
    snprintf(fractions[device], sizeof fractions[device], "%s", fraction);
    if (memsim_device_is_open(device))
        fraction_record(device);
}

void memsim_torch_settings(const char *settings)
{
    process_join();
    RECORD_TEXT(ALLOCATOR_SETTINGS, settings, strlen(settings));
}

static struct memory_watch watch = {
    .context_made = fraction_record,
    .taken = segment_taken,
    .physical_asked = torch_observe, /* of expandable segments */
};

__attribute__((constructor)) static void torch_start(void)
{
    memory_watch_add(&watch);
}

/* c10/core/Allocator.cpp. PyTorch calls it for every block handed out or taken
 * back, with what it has allocated and reserved after that. */
void torch_report_usage(void *p, int64_t bytes, size_t allocated,
                        size_t reserved,
                        struct c10_device device) __asm__(REPORT_USAGE);
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
        real = torch_function("libc10.so", REPORT_USAGE);
    if (real)
        real(p, bytes, allocated, reserved, device);
}

/* The same for a request that it gave up, after it has given back the segments
 * that were empty; its trace has heard of it before. */
void torch_report_oom(int64_t bytes, size_t allocated, size_t reserved,
                      struct c10_device device) __asm__(REPORT_OOM);
CORE_API void torch_report_oom(int64_t bytes, size_t allocated, size_t reserved,
                               struct c10_device device)
{
    static __typeof__(&torch_report_oom) real;

    if (device.type == 1 && device_usage(device.index)) {
        uint64_t free_bytes, total_bytes;
        struct tag tag;

        memsim_device_memory(device.index, &free_bytes, &total_bytes);
        torch_usage(device.index, allocated, reserved);
        tag_now(&tag);
        RECORD(OOM, .device = (uint64_t)device.index,
               .requested_bytes = (uint64_t)bytes, .free_bytes = free_bytes,
               .allocated_bytes = allocated, .reserved_bytes = reserved,
               .stream = pending.refused_stream, .module = tag.module,
               .phase = tag.phase, .operator = tag.operation,
               .range = tag.range, .stack = stack_take());
        device_give_up(device.index, true, (uint64_t)bytes);
        pending.refused_stream = 0;
    }
    if (!real)
        real = torch_function("libc10.so", REPORT_OOM);
    if (real)
        real(bytes, allocated, reserved, device);
}
