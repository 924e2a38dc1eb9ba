/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/memory/blocks.h"
#include "capture/core/memory/vmm.h"

#include <sys/mman.h>
#include <unistd.h>

#include "capture/core/memory/watch.h"
#include "capture/core/memory/device.h"
#include "capture/core/base/handle.h"
#include "capture/core/base/lock.h"
#include "capture/core/base/pages.h"
#include "capture/core/run/process.h"
#include "capture/core/memory/values.h"

/* All reservations lie in one window, like those of a device. PyTorch reserves
 * 9/8 of a GPU for each pool of each stream. */
#define WINDOW_BASE      UINT64_C(0x480000000000)
#define WINDOW_BYTES     (UINT64_C(8) << 40)
#define RESERVATIONS_MAX 4096

/* A granule's state: 0, or 1 + the index of the physical memory in its table,
 * with this bit where it may be used. */
#define ACCESS    0x80000000u
#define INDEX     0x7fffffffu
#define MAPS_MAX  (1u << 20)
#define ENDED_MAX 64 /* given back at a time */

static struct reservation {
    uint64_t address, bytes; /* 0 bytes: free to use again */
    uint32_t *granules;
} reservations[RESERVATIONS_MAX];
static uint32_t reservation_count;
static uint64_t window, window_used;

static struct vmm_physical **physicals; /* by index; NULL: unused */
static uint32_t physical_count;
static struct vmm_physical *kept; /* those with kept contents */

static int window_place(void)
{
    uint64_t base =
        window ? window
               : (uint64_t)pages_reserve_untouchable(WINDOW_BASE, WINDOW_BYTES);

    if (!base)
        return CORE_OUT_OF_MEMORY;
    if (!window) {
        values_place(SESSION_DEVICES, base, WINDOW_BYTES);
        blocks_place(SESSION_DEVICES, base, WINDOW_BYTES);
    }
    window = base;
    if (!physicals)
        physicals = memsim_pages_reserve(0, MAPS_MAX * sizeof *physicals);
    return physicals ? CORE_OK : CORE_OUT_OF_MEMORY;
}

static struct reservation *reservation_of(uint64_t address, uint64_t bytes)
{
    for (uint32_t i = 0; i < reservation_count; i++) {
        struct reservation *r = &reservations[i];

        if (address - r->address < r->bytes &&
            bytes <= r->address + r->bytes - address)
            return r;
    }
    return NULL;
}

/* A place for BYTES: one that was given back, or fresh addresses. */
static struct reservation *reservation_take(uint64_t bytes, uint64_t alignment)
{
    for (uint32_t i = 0; i < reservation_count; i++)
        if (!reservations[i].bytes && reservations[i].granules &&
            reservations[i].granules[-1] == bytes / VMM_GRANULE_BYTES &&
            reservations[i].address % alignment == 0)
            return &reservations[i];
    uint64_t at =
        (window + window_used + alignment - 1) / alignment * alignment;
    if (reservation_count == RESERVATIONS_MAX || at < window ||
        bytes > WINDOW_BYTES || at - window > WINDOW_BYTES - bytes)
        return NULL;
    uint32_t *granules = memsim_pages_reserve(
        0, (bytes / VMM_GRANULE_BYTES + 1) * sizeof *granules);
    if (!granules)
        return NULL;
    granules[0] = (uint32_t)(bytes / VMM_GRANULE_BYTES);
    window_used = at + bytes - window;
    struct reservation *r = &reservations[reservation_count++];
    *r = (struct reservation){.address = at, .granules = granules + 1};
    return r;
}

static int range_reserve(uint64_t bytes, uint64_t alignment, uint64_t *address)
{
    int rc = window_place();
    struct reservation *r = rc ? NULL : reservation_take(bytes, alignment);

    if (!r)
        return CORE_OUT_OF_MEMORY;
    r->bytes = bytes;
    *address = r->address;
    return CORE_OK;
}

int memsim_vmm_reserve(uint64_t bytes, uint64_t alignment, uint64_t want,
                       uint64_t *address)
{
    uint64_t align = alignment ? alignment : VMM_GRANULE_BYTES;

    (void)want; /* only a wish */
    if (!bytes || bytes % VMM_GRANULE_BYTES || align & (align - 1))
        return CORE_INVALID_VALUE; /* as an H200 says */
    if (align < VMM_GRANULE_BYTES)
        align = VMM_GRANULE_BYTES;
    core_lock(LOCK_DEVICE);
    int rc = range_reserve(bytes, align, address);
    core_unlock(LOCK_DEVICE);
    return rc;
}

static bool is_clear(const uint32_t *granule, uint64_t count)
{
    while (count)
        if (granule[--count])
            return false;
    return true;
}

int memsim_vmm_unreserve(uint64_t address, uint64_t bytes)
{
    int rc = CORE_INVALID_VALUE;

    core_lock(LOCK_DEVICE);
    struct reservation *r = reservation_of(address, bytes);
    if (r && r->address == address && r->bytes == bytes &&
        is_clear(r->granules, bytes / VMM_GRANULE_BYTES)) {
        r->bytes = 0;
        rc = CORE_OK;
    }
    core_unlock(LOCK_DEVICE);
    return rc;
}

static struct vmm_physical *physical_get(uint64_t handle)
{
    return memsim_handle_get(HANDLE_PHYSICAL, (void *)handle);
}

int memsim_vmm_create(int device, uint64_t bytes, uint64_t handle_types,
                      bool caller_retries, uint64_t *handle)
{
    if (!bytes || bytes % VMM_GRANULE_BYTES)
        return CORE_INVALID_VALUE;
    if (caller_retries)
        MEMORY_TELL(physical_asked);
    struct vmm_physical *physical =
        memsim_handle_new(HANDLE_PHYSICAL, sizeof *physical);
    if (!physical)
        return CORE_OUT_OF_MEMORY;
    int rc = device_take(device, bytes, TRACE_HOW_VMM, caller_retries,
                         (uint64_t)physical);
    if (rc) {
        memsim_handle_free(HANDLE_PHYSICAL, physical);
        return rc;
    }
    *physical = (struct vmm_physical){.device = device,
                                      .bytes = bytes,
                                      .references = 1,
                                      .handle_types = handle_types};
    *handle = (uint64_t)physical;
    return CORE_OK;
}

/* Takes a reference away, with LOCK_DEVICE held; true where it was the last. */
static bool reference_drop(struct vmm_physical *physical)
{
    return --physical->references == 0;
}

/* The contents of physical memory stay while a handle refers to it: they are
 * left at the addresses that it was mapped to, until these are mapped anew. */
static void contents_keep(struct vmm_physical *physical, uint64_t address,
                          uint64_t bytes)
{
    if (!physical->kept_bytes) {
        physical->next_kept = kept;
        kept = physical;
    }
    physical->kept_address = address;
    physical->kept_bytes = bytes;
}

static void contents_drop(struct vmm_physical *physical)
{
    struct vmm_physical **link = &kept;

    if (!physical->kept_bytes)
        return;
    while (*link != physical)
        link = &(*link)->next_kept;
    *link = physical->next_kept;
    physical->kept_bytes = 0;
}

/* PHYSICAL is mapped to the BYTES at ADDRESS, where others' contents end.
 * Returns what of its own was kept, in *FROM. */
static uint64_t contents_take(struct vmm_physical *physical, uint64_t address,
                              uint64_t bytes, uint64_t *from)
{
    uint64_t most = physical->kept_bytes;
    struct vmm_physical *next;

    *from = physical->kept_address;
    for (struct vmm_physical *p = kept; p; p = next) {
        next = p->next_kept;
        if (p == physical || (p->kept_address < address + bytes &&
                              address < p->kept_address + p->kept_bytes))
            contents_drop(p);
    }
    return most < bytes ? most : bytes;
}

/* Contents of more than this are kept only where the map is at the same
 * address again. */
#define CONTENTS_MOST (UINT64_C(32) << 20)

static void contents_copy(uint64_t to, uint64_t from, uint64_t bytes)
{
    if (bytes <= CONTENTS_MOST)
        for (uint64_t at = 0; at < bytes; at += VALUES_COPY_BYTES)
            memsim_values_copy(to + at, from + at, VALUES_COPY_BYTES);
}

static void physical_end(struct vmm_physical *physical)
{
    core_lock(LOCK_DEVICE);
    contents_drop(physical);
    core_unlock(LOCK_DEVICE);
    if (!physical->imported)
        device_give(physical->device, physical->bytes, TRACE_HOW_VMM,
                    (uint64_t)physical);
    memsim_handle_free(HANDLE_PHYSICAL, physical);
}

int memsim_vmm_release(uint64_t handle)
{
    struct vmm_physical *physical = physical_get(handle);

    if (!physical)
        return CORE_INVALID_VALUE;
    core_lock(LOCK_DEVICE);
    bool last = reference_drop(physical);
    core_unlock(LOCK_DEVICE);
    if (last)
        physical_end(physical);
    return CORE_OK;
}

/* The table's index of PHYSICAL for one more map; 0: no room. */
static uint32_t physical_place(struct vmm_physical *physical)
{
    uint32_t i = 0;

    while (i < physical_count && physicals[i])
        i++;
    if (i == MAPS_MAX)
        return 0;
    if (i == physical_count)
        physical_count++;
    physicals[i] = physical;
    return i + 1;
}

static int map_physical(uint64_t address, uint64_t bytes,
                        struct vmm_physical *physical)
{
    const struct reservation *r = reservation_of(address, bytes);

    if (!r)
        return CORE_INVALID_VALUE;
    uint32_t *granule =
        r->granules + (address - r->address) / VMM_GRANULE_BYTES;
    uint64_t count = bytes / VMM_GRANULE_BYTES;
    if (!is_clear(granule, count))
        return CORE_INVALID_VALUE;
    uint32_t index = physical_place(physical);
    if (!index)
        return CORE_OUT_OF_MEMORY;
    for (uint64_t i = 0; i < count; i++)
        granule[i] = index;
    physical->references++;
    return CORE_OK;
}

int memsim_vmm_map(uint64_t address, uint64_t bytes, uint64_t offset,
                   uint64_t handle)
{
    struct vmm_physical *physical = physical_get(handle);

    if (!physical || !bytes || bytes % VMM_GRANULE_BYTES ||
        address % VMM_GRANULE_BYTES || offset || bytes > physical->bytes)
        return CORE_INVALID_VALUE;
    uint64_t from = 0, known = 0;
    core_lock(LOCK_DEVICE);
    int rc = map_physical(address, bytes, physical);
    if (!rc)
        known = contents_take(physical, address, bytes, &from);
    core_unlock(LOCK_DEVICE);
    if (!rc && (!known || from != address))
        memsim_values_forget(address, bytes);
    if (!rc && known && from != address)
        contents_copy(address, from, known);
    return rc;
}

/* The first granule of ADDRESS's range of BYTES, all of it mapped; or NULL. */
static uint32_t *mapped_range(uint64_t address, uint64_t bytes)
{
    const struct reservation *r = reservation_of(address, bytes);
    uint64_t count = bytes / VMM_GRANULE_BYTES;

    if (!r || bytes % VMM_GRANULE_BYTES || address % VMM_GRANULE_BYTES)
        return NULL;
    uint32_t *granule =
        r->granules + (address - r->address) / VMM_GRANULE_BYTES;
    for (uint64_t i = 0; i < count; i++)
        if (!granule[i])
            return NULL;
    return granule;
}

/* The map that ADDRESS is in; 0: none. */
static uint32_t map_of(uint64_t address)
{
    const struct reservation *r = reservation_of(address, 1);

    return r ? r->granules[(address - r->address) / VMM_GRANULE_BYTES] & INDEX
             : 0;
}

/* The granules of a range that begins and ends where maps do; or NULL. */
static uint32_t *whole_maps(uint64_t address, uint64_t bytes)
{
    uint64_t end = address + bytes;

    if (!bytes || map_of(address) == map_of(address - 1) ||
        map_of(end) == map_of(end - 1))
        return NULL;
    return mapped_range(address, bytes);
}

int memsim_vmm_unmap(uint64_t address, uint64_t bytes)
{
    struct vmm_physical *ended[ENDED_MAX];
    uint64_t done = 0, count = bytes / VMM_GRANULE_BYTES;

    core_lock(LOCK_DEVICE);
    uint32_t *granule = whole_maps(address, bytes);
    core_unlock(LOCK_DEVICE);
    if (!granule)
        return CORE_INVALID_VALUE;
    while (done < count) {
        int n = 0;

        core_lock(LOCK_DEVICE);
        while (done < count && n < ENDED_MAX) {
            uint32_t index = granule[done] & INDEX;
            struct vmm_physical *physical = physicals[index - 1];
            uint64_t first = done;

            while (done < count && (granule[done] & INDEX) == index)
                granule[done++] = 0;
            physicals[index - 1] = NULL;
            contents_keep(physical, address + first * VMM_GRANULE_BYTES,
                          (done - first) * VMM_GRANULE_BYTES);
            if (reference_drop(physical))
                ended[n++] = physical;
        }
        core_unlock(LOCK_DEVICE);
        while (n)
            physical_end(ended[--n]);
    }
    return CORE_OK;
}

int memsim_vmm_access(uint64_t address, uint64_t bytes, bool allowed)
{
    core_lock(LOCK_DEVICE);
    uint32_t *granule = mapped_range(address, bytes);
    for (uint64_t i = 0; granule && i < bytes / VMM_GRANULE_BYTES; i++)
        granule[i] = (granule[i] & INDEX) | (allowed ? ACCESS : 0);
    core_unlock(LOCK_DEVICE);
    return granule ? CORE_OK : CORE_INVALID_VALUE;
}

bool memsim_vmm_accessible(uint64_t address)
{
    return memsim_device_find(address, NULL, NULL, NULL);
}

struct vmm_physical *memsim_vmm_retain(uint64_t address)
{
    struct vmm_physical *physical = NULL;

    core_lock(LOCK_DEVICE);
    const uint32_t *granule = mapped_range(
        address / VMM_GRANULE_BYTES * VMM_GRANULE_BYTES, VMM_GRANULE_BYTES);
    if (granule) {
        physical = physicals[(*granule & INDEX) - 1];
        physical->references++;
    }
    core_unlock(LOCK_DEVICE);
    return physical;
}

bool vmm_find(uint64_t address, int *device, uint64_t *start, uint64_t *bytes)
{
    const struct reservation *r = reservation_of(address, 1);

    if (!r)
        return false;
    uint64_t at = (address - r->address) / VMM_GRANULE_BYTES;
    uint64_t first = at, end = at, count = r->bytes / VMM_GRANULE_BYTES;
    if (!(r->granules[at] & ACCESS))
        return false;
    if (device)
        *device = physicals[(r->granules[at] & INDEX) - 1]->device;
    while (start && first && r->granules[first - 1] & ACCESS)
        first--;
    while (bytes && end < count && r->granules[end] & ACCESS)
        end++;
    if (start)
        *start = r->address + first * VMM_GRANULE_BYTES;
    if (bytes)
        *bytes = (end - first) * VMM_GRANULE_BYTES;
    return true;
}

bool memsim_vmm_map_find(uint64_t address, uint64_t *start, uint64_t *bytes)
{
    core_lock(LOCK_DEVICE);
    const struct reservation *r = reservation_of(address, 1);
    bool found = r && vmm_find(address, NULL, NULL, NULL);
    if (found) {
        uint64_t at = (address - r->address) / VMM_GRANULE_BYTES;
        uint64_t first = at, end = at, count = r->bytes / VMM_GRANULE_BYTES;
        uint32_t map = r->granules[at];

        while (first && r->granules[first - 1] == map)
            first--;
        while (end < count && r->granules[end] == map)
            end++;
        *start = r->address + first * VMM_GRANULE_BYTES;
        *bytes = (end - first) * VMM_GRANULE_BYTES;
    }
    core_unlock(LOCK_DEVICE);
    return found;
}

/* What a descriptor tells its finder; session_start tells runs apart. */
struct passport {
    char magic[8];
    uint64_t session_start;
    uint64_t bytes, handle_types;
    int32_t card;
};
#define PASSPORT_MAGIC "memsimPM"

int memsim_vmm_export(uint64_t handle, int *fd)
{
    const struct vmm_physical *physical = physical_get(handle);

    if (!physical || !physical->handle_types)
        return CORE_INVALID_VALUE;
    const struct passport passport = {
        .magic = PASSPORT_MAGIC,
        .session_start = memsim_session()->start_ns,
        .bytes = physical->bytes,
        .handle_types = physical->handle_types,
        .card = memsim_device_physical(physical->device),
    };
    *fd = memfd_create("memsim device memory", MFD_CLOEXEC);
    if (*fd < 0)
        return CORE_OUT_OF_MEMORY;
    if (pwrite(*fd, &passport, sizeof passport, 0) == sizeof passport)
        return CORE_OK;
    close(*fd);
    return CORE_OUT_OF_MEMORY;
}

static int device_of_card(int card)
{
    for (int i = 0; i < memsim_device_count(); i++)
        if (memsim_device_physical(i) == card)
            return i;
    return -1;
}

int memsim_vmm_import(int fd, uint64_t *handle)
{
    struct passport passport;

    if (pread(fd, &passport, sizeof passport, 0) != sizeof passport ||
        __builtin_memcmp(passport.magic, PASSPORT_MAGIC,
                         sizeof passport.magic) ||
        passport.session_start != memsim_session()->start_ns)
        return CORE_INVALID_VALUE;
    int device = device_of_card(passport.card);
    int rc = device < 0 ? CORE_INVALID_DEVICE : memsim_device_open(device);
    if (rc)
        return rc;
    struct vmm_physical *physical =
        memsim_handle_new(HANDLE_PHYSICAL, sizeof *physical);
    if (!physical)
        return CORE_OUT_OF_MEMORY;
    *physical = (struct vmm_physical){.device = device,
                                      .bytes = passport.bytes,
                                      .references = 1,
                                      .imported = true,
                                      .handle_types = passport.handle_types};
    *handle = (uint64_t)physical;
    return CORE_OK;
}
