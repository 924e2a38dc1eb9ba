/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/memory/host.h"

#include <stdatomic.h>
#include <sys/mman.h>

#include "capture/core/memory/watch.h"
#include "capture/core/memory/device.h"
#include "capture/core/memory/values.h"
#include "capture/core/memory/values_return.h"
#include "capture/core/base/lock.h"
#include "capture/core/base/pages.h"
#include "capture/core/run/host_use.h"
#include "capture/core/run/process.h"
#include "capture/core/run/record.h"

#define RANGES_MAX (1u << 20)
#define PAGE       UINT64_C(4096)

static struct host_range *ranges; /* in no order; bytes 0: unused */
static uint32_t range_count;

static struct host_range *range_find(uint64_t address)
{
    for (uint32_t i = 0; i < range_count; i++)
        if (address - ranges[i].address < ranges[i].bytes)
            return &ranges[i];
    return NULL;
}

static int range_add(const struct host_range *range)
{
    uint32_t i = 0;

    if (!ranges)
        ranges = memsim_pages_reserve(0, RANGES_MAX * sizeof *ranges);
    while (ranges && i < range_count && ranges[i].bytes)
        i++;
    if (!ranges || i == RANGES_MAX)
        return CORE_OUT_OF_MEMORY;
    ranges[i] = *range;
    if (i == range_count)
        range_count++;
    return CORE_OK;
}

/* As host_use.h has it. */
static enum session_host_kind kind_used(enum host_kind kind)
{
    return kind == HOST_PINNED    ? SESSION_HOST_PINNED
           : kind == HOST_MANAGED ? SESSION_HOST_MANAGED
                                  : SESSION_HOST_REGISTERED;
}

/* Registered memory may be a tensor's: it has a key of its own. */
static uint64_t key_used(uint64_t address, enum host_kind kind)
{
    return kind == HOST_REGISTERED ? address | UINT64_C(1) << 63 : address;
}

static int range_insert(const struct host_range *range)
{
    core_lock(LOCK_DEVICE);
    int rc = range_add(range);
    core_unlock(LOCK_DEVICE);
    if (!rc)
        memsim_host_takes(kind_used(range->kind),
                          key_used(range->address, range->kind), range->bytes);
    if (!rc)
        RECORD(HOST_MALLOC, .address = range->address, .bytes = range->bytes,
               .flags = trace_pack(range->flags, range->kind));
    return rc;
}

#define MANAGED_BYTES (UINT64_C(1) << 40)

/* Managed memory lies side by side, so that kernels find it (values.h). A place
 * is used once: beyond that room, kernels do not. */
static void *managed_reserve(uint64_t bytes)
{
    static char *base;
    static uint64_t used;
    void *p = NULL;

    core_lock(LOCK_DEVICE);
    if (!base) {
        base = memsim_pages_reserve(0, MANAGED_BYTES);
        if (base)
            values_place_managed((uint64_t)base, MANAGED_BYTES);
    }
    if (base && bytes && bytes <= MANAGED_BYTES - used) {
        p = base + used;
        used += bytes;
    }
    core_unlock(LOCK_DEVICE);
    return p ? p : memsim_pages_reserve(0, bytes);
}

/* On a GPU the driver moves a page of managed memory to where it is used, and
 * out again when memory is short. */
static void note_managed(void)
{
    static _Atomic bool noted;

    if (!atomic_exchange(&noted, true))
        memsim_note("managed memory (cudaMallocManaged) counts as the host's: "
                    "the figures leave out what of it would be on the GPU");
}

int memsim_host_malloc(uint64_t bytes, enum host_kind kind, uint32_t flags,
                       uint64_t *address)
{
    int device = memsim_device_current();
    int rc = memsim_device_open(device);

    if (rc || !bytes) {
        *address = 0;
        return rc;
    }
    bytes = (bytes + PAGE - 1) & ~(PAGE - 1);
    void *p = kind == HOST_MANAGED ? managed_reserve(bytes)
                                   : memsim_pages_reserve(0, bytes);
    if (!p)
        return CORE_OUT_OF_MEMORY;
    if (kind == HOST_MANAGED)
        note_managed();
    if (kind == HOST_MANAGED &&
        memsim_device_library(device, "managed memory",
                              memsim_device_gpu()->managed_bytes))
        return CORE_OUT_OF_MEMORY;
    *address = (uint64_t)p;
    return range_insert(
        &(struct host_range){(uint64_t)p, bytes, kind, flags, device});
}

static bool host_overlaps(uint64_t address, uint64_t bytes)
{
    for (uint32_t i = 0; i < range_count; i++)
        if (ranges[i].bytes && address < ranges[i].address + ranges[i].bytes &&
            ranges[i].address < address + bytes)
            return true;
    return false;
}

int memsim_host_register(uint64_t address, uint64_t bytes, uint32_t flags)
{
    int device = memsim_device_current();
    int rc = memsim_device_open(device);

    if (rc)
        return rc;
    if (!address || !bytes || address + bytes < address)
        return CORE_INVALID_VALUE;
    core_lock(LOCK_DEVICE);
    bool taken = host_overlaps(address, bytes);
    core_unlock(LOCK_DEVICE);
    if (taken)
        return CORE_HOST_REGISTERED;
    return range_insert(
        &(struct host_range){address, bytes, HOST_REGISTERED, flags, device});
}

int memsim_host_unregister(uint64_t address)
{
    struct host_range range;

    if (!address ||
        (memsim_host_find(address, &range) && range.kind != HOST_REGISTERED))
        return CORE_INVALID_VALUE;
    int rc = memsim_host_free(address, HOST_REGISTERED);
    return rc == CORE_INVALID_VALUE ? CORE_HOST_NOT_REGISTERED : rc;
}

int memsim_host_free(uint64_t address, enum host_kind kind)
{
    struct host_range old = {0};
    int rc = CORE_INVALID_VALUE;

    core_lock(LOCK_DEVICE);
    struct host_range *range = range_find(address);
    if (range && range->address == address && range->kind == kind) {
        rc = device_fault(range->device);
        old = *range;
        range->bytes = rc ? range->bytes : 0;
    }
    core_unlock(LOCK_DEVICE);
    if (rc == CORE_INVALID_VALUE)
        MEMORY_TELL(bad_host_free, address);
    if (rc)
        return rc;
    values_return_end_all(old.address, old.bytes);
    memsim_host_gives(key_used(old.address, kind));
    if (kind == HOST_MANAGED) /* nobody else gets the place */
        mmap((void *)old.address, old.bytes, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    else if (kind == HOST_PINNED)
        munmap((void *)old.address, old.bytes);
    RECORD(HOST_FREE, .address = old.address, .bytes = old.bytes);
    return CORE_OK;
}

void host_real_give(uint64_t address, uint64_t bytes, enum host_kind kind,
                    uint32_t flags, int device)
{
    range_insert(&(struct host_range){address, bytes, kind, flags, device});
}

void host_real_take_back(uint64_t address)
{
    struct host_range old = {0};

    core_lock(LOCK_DEVICE);
    struct host_range *range = range_find(address);
    if (range && range->address == address) {
        old = *range;
        range->bytes = 0;
    }
    core_unlock(LOCK_DEVICE);
    if (!old.bytes)
        return;
    memsim_host_gives(key_used(old.address, old.kind));
    RECORD(HOST_FREE, .address = old.address, .bytes = old.bytes);
}

void host_reset(int device)
{
    for (uint32_t i = 0; i < range_count; i++) {
        const struct host_range r = ranges[i];

        if (r.bytes && r.device == device)
            memsim_host_free(r.address, r.kind);
    }
}

bool memsim_host_find(uint64_t address, struct host_range *range)
{
    core_lock(LOCK_DEVICE);
    const struct host_range *found = range_find(address);
    if (found)
        *range = *found;
    core_unlock(LOCK_DEVICE);
    return found;
}
