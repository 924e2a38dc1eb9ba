/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/memory/blocks.h"
#include "capture/core/memory/device.h"
#include "capture/core/memory/device_visible.h"

#include <stdlib.h>
#include <string.h>

#include "capture/core/memory/watch.h"
#include "capture/core/memory/owner.h"
#include "capture/core/base/lock.h"
#include "capture/core/base/pages.h"
#include "capture/core/run/process.h"
#include "capture/core/run/clock.h"
#include "capture/core/run/differ.h"
#include "capture/core/run/record.h"
#include "capture/core/memory/values.h"
#include "capture/core/memory/vmm.h"
#include "common/catalogue/vaspace.h"

/* Addresses of device i: a window of 1 TiB that can only be named, not
 * touched; a host program that follows a device pointer faults, as it does
 * over the real driver. The same in every run, where they are free. */
#define WINDOW_BYTES  (UINT64_C(1) << 40)
#define WINDOW_BASE   UINT64_C(0x700000000000)
#define LIBRARIES_MAX 32

static struct device {
    bool open;
    bool placed;
    struct vaspace va;
    const char *libraries[LIBRARIES_MAX]; /* who took memory already */
    struct {
        const char *who;
        uint32_t count;
    } spare[LIBRARIES_MAX]; /* what ended objects left */
} devices[SESSION_DEVICES];

_Atomic int device_faults[SESSION_DEVICES];
static int visible[SESSION_DEVICES]; /* physical numbers */
static int visible_count = -1;
static _Thread_local int current;
static _Thread_local bool bound; /* a context is current in this thread */
static _Thread_local uint64_t refused_bytes; /* the last that was refused */

int memsim_device_count(void)
{
    if (visible_count < 0) {
        core_lock(LOCK_DEVICE);
        if (visible_count < 0)
            visible_count = device_visible_find(visible);
        core_unlock(LOCK_DEVICE);
        process_begin();
        device_visible_note(visible_count);
    }
    return visible_count;
}

/* As on a GPU: cuInit in the parent is enough for CUDA to fail in the child. */
static int refuse_forked(void)
{
    memsim_note("CUDA fails in a process that was forked after its parent had "
                "initialized CUDA (cuInit, cudaGetDeviceCount, torch.cuda), as "
                "it does on a GPU: start it with spawn or forkserver");
    return CORE_NOT_INITIALIZED;
}

int memsim_device_ready(void)
{
    if (memsim_process_forked())
        return refuse_forked();
    return memsim_device_count() ? CORE_OK : CORE_NO_DEVICE;
}

int memsim_device_check(int device)
{
    int rc = memsim_device_ready();

    if (rc)
        return rc;
    return device < 0 || device >= visible_count ? CORE_INVALID_DEVICE
                                                 : CORE_OK;
}

bool memsim_device_started(void)
{
    return visible_count >= 0;
}

const struct gpu *memsim_device_gpu(void)
{
    return &memsim_session()->gpu;
}

int memsim_device_physical(int device)
{
    return visible[device];
}

int memsim_device_current(void)
{
    return current;
}

int memsim_device_select(int device)
{
    int rc = memsim_device_check(device);

    if (!rc)
        current = device;
    else if (rc == CORE_INVALID_DEVICE)
        MEMORY_TELL(bad_device, device, visible_count);
    return rc;
}

bool memsim_device_is_open(int device)
{
    return devices[device].open;
}

int memsim_device_fault(int device)
{
    return device_fault(device);
}

bool device_fail(int device, int code)
{
    int none = CORE_OK;

    return atomic_compare_exchange_strong(&device_faults[device], &none, code);
}

bool memsim_device_is_bound(void)
{
    return bound && devices[current].open;
}

void memsim_device_bind(bool now)
{
    bound = now;
}

static struct session_device *device_shared(int device)
{
    return &memsim_session()->devices[visible[device]];
}

struct session_usage *device_usage(int device)
{
    struct session_process *slot = process_slot();

    return slot ? &slot->usage[visible[device]] : NULL;
}

/* Memory belongs to living processes: what others left is taken back before
 * the GPU is said to be full, or fuller than ever. */
static void card_reclaim(int device, uint64_t bytes)
{
    struct session_device *card = device_shared(device);
    uint64_t used = atomic_load(&card->used_bytes);
    uint64_t peak = atomic_load(&card->peak_used_bytes);

    if (used > peak || bytes > peak - used)
        memsim_process_reclaim((unsigned)visible[device]);
}

/* BYTES more of the GPU are taken, USED in all. */
static void card_taken(int device, uint64_t used, uint64_t bytes)
{
    struct session_usage *usage = device_usage(device);

    session_raise(&device_shared(device)->peak_used_bytes, used);
    if (usage) {
        uint64_t mine = atomic_fetch_add(&usage->used, bytes) + bytes;
        session_raise(&usage->peak_used, mine);
    }
}

/* Takes BYTES of the GPU, unless they would pass its capacity. */
static bool card_take(int device, uint64_t bytes)
{
    struct session_device *card = device_shared(device);

    card_reclaim(device, bytes);
    uint64_t used = atomic_load(&card->used_bytes);
    do {
        if (bytes > card->capacity_bytes - used)
            return false;
    } while (
        !atomic_compare_exchange_weak(&card->used_bytes, &used, used + bytes));
    card_taken(device, used + bytes, bytes);
    return true;
}

/* Takes BYTES from what USAGE counts, as far as it still does: a program that
 * has closed our descriptors is taken for dead, and its memory is gone. */
static uint64_t usage_take_back(struct session_usage *usage, uint64_t bytes)
{
    uint64_t used = atomic_load(&usage->used), left;

    do
        left = used > bytes ? used - bytes : 0;
    while (!atomic_compare_exchange_weak(&usage->used, &used, left));
    return used - left;
}

static void card_give(int device, uint64_t bytes)
{
    struct session_usage *usage = device_usage(device);

    atomic_fetch_sub(&device_shared(device)->used_bytes,
                     usage ? usage_take_back(usage, bytes) : bytes);
}

static uint64_t card_used(int device)
{
    return atomic_load(&device_shared(device)->used_bytes);
}

static uint64_t card_free(int device)
{
    return device_shared(device)->capacity_bytes - card_used(device);
}

static int window_place(int device)
{
    struct device *d = &devices[device];
    uint64_t want = WINDOW_BASE + (uint64_t)device * WINDOW_BYTES;
    uint64_t base = (uint64_t)pages_reserve_untouchable(want, WINDOW_BYTES);

    if (!base)
        return CORE_OUT_OF_MEMORY;
    uint64_t aligned =
        (base + VASPACE_CHUNK_BYTES - 1) & ~(VASPACE_CHUNK_BYTES - 1);
    uint64_t size = WINDOW_BYTES - VASPACE_CHUNK_BYTES;
    if (vaspace_init(&d->va, aligned, size, memsim_session()->address_model,
                     NULL))
        return CORE_OUT_OF_MEMORY;
    values_place(device, aligned, size);
    blocks_place(device, aligned, size);
    d->placed = true;
    return CORE_OK;
}

/* DEVICE has a context, which took BYTES of its memory. */
static void context_opened(int device, uint64_t bytes)
{
    const char *name = memsim_device_gpu()->name;
    struct session_usage *usage = device_usage(device);

    if (usage)
        atomic_store(&usage->context, bytes);
    devices[device].open = true;
    RECORD_TEXT(DEVICE, name, strlen(name), .device = (uint64_t)device,
                .capacity_bytes = device_shared(device)->capacity_bytes,
                .context_bytes = bytes, .card = (uint64_t)visible[device]);
    ranks_use((uint32_t)visible[device]);
    MEMORY_TELL(context_made, device);
}

static int context_make(int device)
{
    const struct gpu *gpu = memsim_device_gpu();
    uint64_t bytes = gpu->context_bytes;

    if (!devices[device].placed && window_place(device)) {
        memsim_note("no address space for a GPU's memory: raise `ulimit -v`");
        return CORE_OUT_OF_MEMORY;
    }
    if (!card_take(device, bytes)) {
        RECORD(DEVICE_REFUSE, .device = (uint64_t)device, .bytes = bytes,
               .how = TRACE_HOW_MALLOC, .used_bytes = card_used(device),
               .free_bytes = card_free(device));
        memsim_note("device %d: no room for this process's context", device);
        return CORE_OUT_OF_MEMORY;
    }
    context_opened(device, bytes);
    return CORE_OK;
}

/* Without lazy loading a context takes every kernel of the process at once.
 * Lazy is CUDA's default since 12.2, and PyTorch sets it where the user has
 * said nothing (c10/cuda, 1.13 on), before any context. */
static bool modules_are_eager(void)
{
    const char *loading = getenv("CUDA_MODULE_LOADING");

    return loading && !strcmp(loading, "EAGER");
}

static int modules_load(int device)
{
    if (!modules_are_eager())
        return CORE_OK;
    return memsim_device_library(device, "all kernels",
                                 memsim_device_gpu()->modules_eager_bytes);
}

int memsim_device_open(int device)
{
    int rc = CORE_OK;

    if (device >= 0 && device < visible_count && devices[device].open) {
        bound = true;
        return memsim_process_forked() ? refuse_forked()
                                       : device_fault(device);
    }
    rc = memsim_device_check(device);
    if (rc)
        return rc;
    process_join();
    if (!process_slot())
        return CORE_NOT_INITIALIZED;
    core_lock(LOCK_DEVICE);
    if (!devices[device].open)
        rc = context_make(device);
    core_unlock(LOCK_DEVICE);
    bound = bound || !rc;
    return rc ? rc : modules_load(device);
}

void device_give_up(int device, bool torch, uint64_t requested_bytes)
{
    struct session *session = memsim_session();
    struct session_process *slot = process_slot();
    struct session_usage *usage = device_usage(device);

    if (!usage)
        return;
    atomic_store(&slot->last_oom_ns, clock_now());
    atomic_fetch_add(&usage->ooms, 1);
    uint32_t i = atomic_fetch_add(&session->oom_count, 1);
    if (i >= SESSION_OOMS)
        return;
    struct session_oom *oom = &session->ooms[i];
    oom->process = (uint32_t)(slot - session->processes);
    oom->device = (uint32_t)visible[device];
    oom->torch = torch;
    oom->time_ns = clock_now();
    oom->requested_bytes = requested_bytes;
    oom->refused_bytes = refused_bytes;
    oom->free_bytes = card_free(device);
    oom->used_bytes = card_used(device);
    oom->allocated_bytes = atomic_load(&usage->allocated);
    oom->reserved_bytes = atomic_load(&usage->reserved);
    atomic_store(&oom->ready, 1);
}

/* An address range and the GPU's memory behind it, or neither. */
static uint64_t device_place(int device, uint64_t bytes)
{
    struct vaspace *va = &devices[device].va;
    uint64_t before = va->used_bytes;

    card_reclaim(device, bytes);
    if (bytes > card_free(device))
        return 0;
    uint64_t address = vaspace_alloc(va, bytes);
    if (!address)
        return 0;
    uint64_t taken = va->used_bytes - before;
    if (card_take(device, taken))
        return address;
    vaspace_free(va, address);
    return 0;
}

static int memory_refuse(int device, uint64_t bytes, enum trace_how how,
                         bool caller_retries)
{
    RECORD(DEVICE_REFUSE, .device = (uint64_t)device, .bytes = bytes,
           .how = how, .used_bytes = card_used(device),
           .free_bytes = card_free(device));
    refused_bytes = bytes;
    if (!caller_retries)
        device_give_up(device, false, bytes);
    return CORE_OUT_OF_MEMORY;
}

static void note_malloc(int device, uint64_t address, uint64_t bytes,
                        enum trace_how how)
{
    struct session_usage *usage = device_usage(device);

    if (usage)
        atomic_fetch_add(&usage->device, bytes);
    RECORD(DEVICE_MALLOC, .device = (uint64_t)device, .address = address,
           .bytes = bytes, .how = how, .used_bytes = card_used(device),
           .free_bytes = card_free(device));
}

static void note_free(int device, uint64_t address, uint64_t bytes,
                      enum trace_how how)
{
    struct session_usage *usage = device_usage(device);

    if (usage)
        atomic_fetch_sub(&usage->device, bytes);
    RECORD(DEVICE_FREE, .device = (uint64_t)device, .address = address,
           .bytes = bytes, .how = how, .used_bytes = card_used(device));
}

int memsim_device_malloc(int device, uint64_t bytes, enum trace_how how,
                         bool caller_retries, uint64_t *address)
{
    int rc = memsim_device_open(device);

    if (rc)
        return rc;
    core_lock(LOCK_DEVICE);
    uint64_t place = device_place(device, bytes);
    core_unlock(LOCK_DEVICE);
    if (!place)
        return memory_refuse(device, bytes, how, caller_retries);
    note_malloc(device, place, bytes, how);
    if (caller_retries)
        MEMORY_TELL(taken, place, bytes);
    else
        process_goes_on();
    *address = place;
    return CORE_OK;
}

int device_take(int device, uint64_t bytes, enum trace_how how,
                bool caller_retries, uint64_t name)
{
    int rc = memsim_device_open(device);

    if (rc)
        return rc;
    if (!card_take(device, bytes))
        return memory_refuse(device, bytes, how, caller_retries);
    note_malloc(device, name, bytes, how);
    if (!caller_retries)
        process_goes_on();
    return CORE_OK;
}

void device_give(int device, uint64_t bytes, enum trace_how how, uint64_t name)
{
    card_give(device, bytes);
    note_free(device, name, bytes, how);
}

static int address_device(uint64_t address)
{
    for (int i = 0; i < visible_count; i++)
        if (devices[i].placed &&
            address - devices[i].va.base < devices[i].va.size_bytes)
            return i;
    return -1;
}

bool device_owns(uint64_t address, int *device, uint64_t *start,
                 uint64_t *bytes)
{
    return address_device(address) >= 0 &&
           memsim_device_find(address, device, start, bytes) &&
           !owner_has(OWNER_FOREIGN, *start);
}

uint64_t memsim_device_import(int device, uint64_t bytes)
{
    core_lock(LOCK_DEVICE);
    uint64_t address = vaspace_alloc(&devices[device].va, bytes);
    core_unlock(LOCK_DEVICE);
    return address;
}

void memsim_device_forget_import(uint64_t address)
{
    uint64_t bytes;

    core_lock(LOCK_DEVICE);
    bytes = vaspace_free(&devices[address_device(address)].va, address);
    core_unlock(LOCK_DEVICE);
    memsim_values_forget(address, bytes);
}

int memsim_device_free(uint64_t address, enum trace_how how)
{
    int device = address_device(address);

    if (device < 0 || owner_has(OWNER_FOREIGN, address) ||
        (how != TRACE_HOW_ASYNC && owner_has(OWNER_POOL, address))) {
        MEMORY_TELL(bad_free, address);
        return CORE_INVALID_VALUE;
    }
    if (device_fault(device))
        return device_fault(device);
    core_lock(LOCK_DEVICE);
    struct vaspace *va = &devices[device].va;
    uint64_t before = va->used_bytes;
    uint64_t bytes = vaspace_free(va, address);
    uint64_t given = before - va->used_bytes;
    core_unlock(LOCK_DEVICE);
    if (!bytes) {
        MEMORY_TELL(bad_free, address);
        return CORE_INVALID_VALUE;
    }
    MEMORY_TELL(freed, address);
    memsim_values_forget(address, bytes);
    card_give(device, given);
    note_free(device, address, bytes, how);
    return CORE_OK;
}

bool memsim_device_find(uint64_t address, int *device, uint64_t *start,
                        uint64_t *bytes)
{
    int owner = address_device(address);

    core_lock(LOCK_DEVICE);
    bool found = owner < 0
                     ? vmm_find(address, device, start, bytes)
                     : vaspace_find(&devices[owner].va, address, start, bytes);
    core_unlock(LOCK_DEVICE);
    if (found && device && owner >= 0)
        *device = owner;
    return found;
}

bool device_is_mapped(uint64_t address)
{
    uint64_t page = address & ~(VASPACE_GRANULE_BYTES - 1), next, bytes;
    int owner = address_device(address);

    if (owner < 0)
        return false;
    core_lock(LOCK_DEVICE);
    const struct vaspace *va = &devices[owner].va;
    bool live = vaspace_find(va, page, NULL, NULL) ||
                (vaspace_next(va, page, &next, &bytes) &&
                 next < page + VASPACE_GRANULE_BYTES);
    core_unlock(LOCK_DEVICE);
    return live;
}

void memsim_device_memory(int device, uint64_t *free_bytes,
                          uint64_t *total_bytes)
{
    memsim_process_reclaim((unsigned)visible[device]);
    *free_bytes = card_free(device);
    *total_bytes = device_shared(device)->capacity_bytes;
}

/* True the first time that WHO asks. */
static bool library_is_new(struct device *d, const char *who)
{
    int i = 0;

    while (i < LIBRARIES_MAX && d->libraries[i] && d->libraries[i] != who)
        i++;
    if (i == LIBRARIES_MAX || d->libraries[i] == who)
        return false;
    d->libraries[i] = who;
    return true;
}

int memsim_device_library(int device, const char *who, uint64_t bytes)
{
    int rc = memsim_device_open(device);

    if (rc || !bytes)
        return rc;
    core_lock(LOCK_DEVICE);
    bool fresh = library_is_new(&devices[device], who);
    core_unlock(LOCK_DEVICE);
    return fresh ? memsim_device_library_more(device, who, bytes) : CORE_OK;
}

int memsim_device_library_kernels(int device, const char *who, uint64_t bytes)
{
    return modules_are_eager() ? memsim_device_open(device)
                               : memsim_device_library(device, who, bytes);
}

int memsim_device_library_more(int device, const char *who, uint64_t bytes)
{
    int rc = memsim_device_open(device);

    if (rc || !bytes)
        return rc;
    if (!card_take(device, bytes)) {
        refused_bytes = bytes;
        device_give_up(device, false, bytes);
        return CORE_OUT_OF_MEMORY;
    }
    core_lock(LOCK_DEVICE);
    vaspace_library(&devices[device].va, who, bytes);
    core_unlock(LOCK_DEVICE);
    struct session_usage *usage = device_usage(device);
    if (usage)
        atomic_fetch_add(&usage->libraries, bytes);
    RECORD_TEXT(LIBRARY_MEMORY, who, strlen(who), .device = (uint64_t)device,
                .bytes = bytes, .used_bytes = card_used(device));
    return CORE_OK;
}

/* WHO's count of spare parts, or NULL where there is no room for one. */
static uint32_t *spare_of(struct device *d, const char *who)
{
    for (int i = 0; i < LIBRARIES_MAX; i++) {
        if (!d->spare[i].who)
            d->spare[i].who = who;
        if (d->spare[i].who == who)
            return &d->spare[i].count;
    }
    return NULL;
}

int memsim_device_library_object(int device, const char *who, uint64_t bytes)
{
    core_lock(LOCK_DEVICE);
    uint32_t *spare = spare_of(&devices[device], who);
    bool reused = spare && *spare;
    if (reused)
        --*spare;
    core_unlock(LOCK_DEVICE);
    return reused ? CORE_OK : memsim_device_library_more(device, who, bytes);
}

void memsim_device_library_object_end(int device, const char *who)
{
    core_lock(LOCK_DEVICE);
    uint32_t *spare = spare_of(&devices[device], who);
    if (spare)
        ++*spare;
    core_unlock(LOCK_DEVICE);
}

/* --- real GPUs ------------------------------------------------------------ */

/* A real GPU has given BYTES: it knows whether there is room. */
static void card_take_real(int device, uint64_t bytes)
{
    card_reclaim(device, bytes);
    uint64_t before = atomic_fetch_add(&device_shared(device)->used_bytes,
                                       bytes);
    card_taken(device, before + bytes, bytes);
}

void device_real_open(int device, uint64_t bytes)
{
    process_join();
    if (!process_slot())
        return;
    core_lock(LOCK_DEVICE);
    bool fresh = !devices[device].open;
    if (fresh) {
        card_take_real(device, bytes);
        context_opened(device, bytes);
    }
    core_unlock(LOCK_DEVICE);
}

void device_real_give(int device, uint64_t address, uint64_t bytes,
                      enum trace_how how, bool caller_retries)
{
    card_take_real(device, bytes);
    note_malloc(device, address, bytes, how);
    if (caller_retries)
        MEMORY_TELL(taken, address, bytes);
    else
        process_goes_on();
}

void device_real_refuse(int device, uint64_t bytes, enum trace_how how,
                        bool caller_retries)
{
    memory_refuse(device, bytes, how, caller_retries);
}

void device_real_take_back(int device, uint64_t address, uint64_t bytes,
                           enum trace_how how)
{
    card_give(device, bytes);
    note_free(device, address, bytes, how);
}

void device_real_library(int device, const char *who, uint64_t bytes)
{
    struct session_usage *usage = device_usage(device);

    card_take_real(device, bytes);
    if (usage)
        atomic_fetch_add(&usage->libraries, bytes);
    RECORD_TEXT(LIBRARY_MEMORY, who, strlen(who), .device = (uint64_t)device,
                .bytes = bytes, .used_bytes = card_used(device));
}

/* Every allocation, and then what the context and libraries took. */
void device_close(int device)
{
    struct device *d = &devices[device];
    struct session_usage *usage = device_usage(device);
    uint64_t address, bytes;

    while (vaspace_next(&d->va, 0, &address, &bytes))
        memsim_device_free(address, TRACE_HOW_MALLOC);
    core_lock(LOCK_DEVICE);
    vaspace_reset(&d->va);
    memset(d->libraries, 0, sizeof d->libraries);
    memset(d->spare, 0, sizeof d->spare);
    d->open = false;
    core_unlock(LOCK_DEVICE);
    bound = false;
    if (!usage)
        return;
    /* The report tells what the context took while there was one. */
    card_give(device, atomic_load(&usage->context) +
                          atomic_exchange(&usage->libraries, 0));
    RECORD(DEVICE_RESET, .device = (uint64_t)device,
           .used_bytes = card_used(device));
}

/* The process is going, and the driver takes all of its memory back. */
static void close_all(void)
{
    for (int i = 0; i < visible_count; i++) {
        struct session_usage *usage = device_usage(i);

        if (usage)
            card_give(i, atomic_load(&usage->used));
    }
}

static struct process_hook hook = {.at_end = close_all};

__attribute__((constructor)) static void device_hook(void)
{
    process_hook_add(&hook);
}
