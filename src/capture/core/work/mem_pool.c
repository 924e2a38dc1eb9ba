/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/work/mem_pool.h"

#include <stdatomic.h>

#include "capture/core/memory/owner.h"
#include "capture/core/memory/device.h"
#include "capture/core/base/handle.h"
#include "capture/core/base/lock.h"
#include "capture/core/base/pages.h"
#include "capture/core/run/process.h"
#include "capture/core/run/record.h"
#include "capture/core/work/stream.h"
#include "capture/core/torch/torch.h"
#include "capture/core/memory/values.h"

/* Ranges cover their chunk without a hole:
 * [ used ][ free ][ used ][ ---- free ---- ]. Two free ones never touch. */
struct range {
    struct pool *pool;
    uint64_t address, bytes;
    uint64_t requested_bytes;      /* 0: free */
    bool pending;                  /* freed, but nobody has waited since */
    struct range *below, *above;   /* in the chunk */
    struct range *next, *previous; /* in the pool's list of free ones */
    struct range *next_hash;
    struct range *next_chunk; /* of a chunk's lowest range */
    bool torch;
};

struct pool {
    int device;
    bool is_default;
    bool dying; /* destroyed, but not everything is given back */
    uint64_t most_bytes;
    uint64_t values[POOL_ATTRIBUTES];
    struct range *free;
    struct range *chunks; /* the lowest range of each */
    struct pool *next;
};

#define BUCKETS (1u << 16)

static struct pool *defaults[SESSION_DEVICES], *currents[SESSION_DEVICES];
static struct pool *pools; /* all of them */
static struct range **buckets, *spare;
static _Atomic uint32_t pool_count;

static struct pool *pool_get(uint64_t handle)
{
    struct pool *pool = memsim_handle_get(HANDLE_POOL, (void *)handle);

    return pool && !pool->dying ? pool : NULL;
}

static struct range **bucket_of(uint64_t address)
{
    return &buckets[address / POOL_ALIGN_BYTES * 2654435761u % BUCKETS];
}

static struct range *range_new(struct pool *pool, uint64_t address,
                               uint64_t bytes)
{
    struct range *range = spare;

    if (range)
        spare = range->next;
    else
        range = memsim_pages_keep(sizeof *range);
    if (range)
        *range =
            (struct range){.pool = pool, .address = address, .bytes = bytes};
    return range;
}

static void range_drop(struct range *range)
{
    range->next = spare;
    spare = range;
}

static void list_add(struct range *range)
{
    range->previous = NULL;
    range->next = range->pool->free;
    if (range->next)
        range->next->previous = range;
    range->pool->free = range;
}

static void list_remove(struct range *range)
{
    if (range->next)
        range->next->previous = range->previous;
    if (range->previous)
        range->previous->next = range->next;
    else
        range->pool->free = range->next;
}

static void value_add(struct pool *pool, enum pool_attribute attribute,
                      int64_t bytes)
{
    uint64_t *now = &pool->values[attribute], *high = now + 1;

    *now += (uint64_t)bytes;
    if (*high < *now)
        *high = *now;
}

static struct pool *pool_new(int device, uint64_t most_bytes)
{
    struct pool *pool = memsim_handle_new(HANDLE_POOL, sizeof *pool);

    if (!buckets)
        buckets = memsim_pages_reserve(0, BUCKETS * sizeof *buckets);
    if (!pool || !buckets)
        return NULL;
    pool->device = device;
    pool->most_bytes = most_bytes ? most_bytes : UINT64_MAX;
    pool->values[POOL_REUSE_FOLLOW_EVENTS] = 1;
    pool->values[POOL_REUSE_OPPORTUNISTIC] = 1;
    pool->values[POOL_REUSE_INTERNAL] = 1;
    pool->next = pools;
    pools = pool;
    atomic_fetch_add(&pool_count, 1);
    return pool;
}

static void pool_unlink(const struct pool *pool)
{
    struct pool **link = &pools;

    while (*link && *link != pool)
        link = &(*link)->next;
    if (*link)
        *link = pool->next;
    atomic_fetch_sub(&pool_count, 1);
}

static struct pool *pool_default(int device)
{
    if (!defaults[device]) {
        defaults[device] = pool_new(device, 0);
        currents[device] = defaults[device];
        if (defaults[device])
            defaults[device]->is_default = true;
    }
    return defaults[device];
}

int memsim_pool_create(int device, uint64_t most_bytes, uint64_t *handle)
{
    int rc = memsim_device_open(device);

    if (rc)
        return rc;
    core_lock(LOCK_POOL);
    struct pool *pool = pool_new(device, most_bytes);
    core_unlock(LOCK_POOL);
    *handle = (uint64_t)pool;
    return pool ? CORE_OK : CORE_OUT_OF_MEMORY;
}

static void chunk_drop(struct pool *pool, struct range *chunk)
{
    struct range **link = &pool->chunks;

    while (*link != chunk)
        link = &(*link)->next_chunk;
    *link = chunk->next_chunk;
    list_remove(chunk);
    value_add(pool, POOL_RESERVED, -(int64_t)chunk->bytes);
    memsim_device_free(chunk->address, TRACE_HOW_ASYNC);
    range_drop(chunk);
}

/* Gives whole free chunks back until the pool holds no more than KEEP_BYTES. As
 * on an H200, what was freed on a stream stays until the program waits. */
static void pool_shrink(struct pool *pool, uint64_t keep_bytes)
{
    struct range *next;

    for (struct range *range = pool->free; range; range = next) {
        next = range->next;
        if (!range->below && !range->above && !range->pending &&
            pool->values[POOL_RESERVED] > keep_bytes)
            chunk_drop(pool, range);
    }
}

/* The program has waited, or memory is short and the driver waits. */
static void pool_settle(struct pool *pool)
{
    for (struct range *range = pool->free; range; range = range->next)
        range->pending = false;
}

/* The end of a destroyed pool of which nothing is in use any more. */
static void pool_bury(struct pool *pool)
{
    pool_shrink(pool, 0);
    if (pool->chunks)
        return;
    pool_unlink(pool);
    memsim_handle_free(HANDLE_POOL, pool);
}

int memsim_pool_destroy(uint64_t handle)
{
    int rc = CORE_OK;

    core_lock(LOCK_POOL);
    struct pool *pool = pool_get(handle);
    if (!pool || pool->is_default) {
        rc = CORE_INVALID_VALUE;
    } else {
        if (currents[pool->device] == pool)
            currents[pool->device] = defaults[pool->device];
        pool->dying = true;
        pool_bury(pool);
    }
    core_unlock(LOCK_POOL);
    return rc;
}

static int pool_find(int device, struct pool *const *table, uint64_t *handle)
{
    int rc = memsim_device_open(device);

    if (rc)
        return rc;
    core_lock(LOCK_POOL);
    *handle = (uint64_t)(pool_default(device) ? table[device] : NULL);
    core_unlock(LOCK_POOL);
    return *handle ? CORE_OK : CORE_OUT_OF_MEMORY;
}

int memsim_pool_default(int device, uint64_t *handle)
{
    return pool_find(device, defaults, handle);
}

int memsim_pool_current(int device, uint64_t *handle)
{
    return pool_find(device, currents, handle);
}

int memsim_pool_select(int device, uint64_t handle)
{
    uint64_t first;
    int rc = memsim_pool_default(device, &first);
    struct pool *pool = pool_get(handle);

    if (rc)
        return rc;
    if (!pool || pool->device != device)
        return CORE_INVALID_VALUE;
    currents[device] = pool;
    return CORE_OK;
}

static struct range *best_fit(const struct pool *pool, uint64_t bytes)
{
    struct range *best = NULL;

    for (struct range *r = pool->free; r; r = r->next)
        if (r->bytes >= bytes &&
            (!best || r->bytes < best->bytes ||
             (r->bytes == best->bytes && r->address < best->address)))
            best = r;
    return best;
}

/* [ ------- range ------- ] => [ range ][ rest ] */
static bool range_split(struct range *range, uint64_t bytes)
{
    if (range->bytes == bytes)
        return true;
    struct range *rest =
        range_new(range->pool, range->address + bytes, range->bytes - bytes);
    if (!rest)
        return false;
    rest->pending = range->pending;
    rest->below = range;
    rest->above = range->above;
    if (rest->above)
        rest->above->below = rest;
    range->above = rest;
    range->bytes = bytes;
    list_add(rest);
    return true;
}

static int pool_grow(struct pool *pool, uint64_t bytes, bool torch)
{
    uint64_t address;
    uint64_t chunk =
        (bytes + POOL_CHUNK_BYTES - 1) / POOL_CHUNK_BYTES * POOL_CHUNK_BYTES;

    if (chunk < bytes || pool->values[POOL_RESERVED] > pool->most_bytes ||
        chunk > pool->most_bytes - pool->values[POOL_RESERVED])
        return CORE_OUT_OF_MEMORY;
    int rc = memsim_device_malloc(pool->device, chunk, TRACE_HOW_ASYNC, true,
                                  &address);
    if (rc ==
        CORE_OUT_OF_MEMORY) { /* what it holds may be in too small parts */
        pool_settle(pool);
        pool_shrink(pool, 0);
        rc = memsim_device_malloc(pool->device, chunk, TRACE_HOW_ASYNC, torch,
                                  &address);
    }
    if (rc)
        return rc;
    struct range *range = range_new(pool, address, chunk);
    if (!range)
        return CORE_OUT_OF_MEMORY;
    range->next_chunk = pool->chunks;
    pool->chunks = range;
    list_add(range);
    value_add(pool, POOL_RESERVED, (int64_t)chunk);
    return CORE_OK;
}

/* PyTorch's backend:cudaMallocAsync tells nobody of its blocks: this does. Its
 * figures are the pool's (CUDAMallocAsyncAllocator.cpp, getDeviceStats). */
static void torch_block(const struct range *range, uint64_t stream, bool alloc)
{
    const uint64_t *values = range->pool->values;
    uint64_t device = (uint64_t)range->pool->device;

    if (!range->torch)
        return;
    torch_usage(range->pool->device, values[POOL_USED], values[POOL_RESERVED]);
    if (alloc)
        RECORD(BLOCK_ALLOC, .device = device, .address = range->address,
               .requested_bytes = range->requested_bytes,
               .block_bytes = range->requested_bytes, .stream = stream,
               .allocated_bytes = values[POOL_USED],
               .reserved_bytes = values[POOL_RESERVED]);
    else
        RECORD(BLOCK_FREE, .device = device, .address = range->address,
               .block_bytes = range->requested_bytes,
               .allocated_bytes = values[POOL_USED],
               .reserved_bytes = values[POOL_RESERVED], .stream = stream);
}

static int range_take(struct pool *pool, uint64_t bytes, uint64_t stream,
                      bool torch, uint64_t *address)
{
    uint64_t whole = (bytes + POOL_ALIGN_BYTES - 1) & -POOL_ALIGN_BYTES;
    struct range *range = best_fit(pool, whole);

    if (whole < bytes)
        return CORE_OUT_OF_MEMORY;
    if (!range) {
        int rc = pool_grow(pool, whole, torch);

        if (rc)
            return rc;
        range = best_fit(pool, whole);
    }
    if (!range_split(range, whole))
        return CORE_OUT_OF_MEMORY;
    list_remove(range);
    range->requested_bytes = bytes;
    range->torch = torch;
    struct range **bucket = bucket_of(range->address);
    range->next_hash = *bucket;
    *bucket = range;
    value_add(pool, POOL_USED, (int64_t)bytes);
    memsim_values_forget(range->address, whole);
    torch_block(range, stream, true);
    *address = range->address;
    return CORE_OK;
}

int memsim_pool_malloc(uint64_t handle, uint64_t bytes, uint64_t stream,
                       bool torch, uint64_t *address)
{
    uint64_t chosen = handle;
    int device;
    int rc = memsim_stream_device(stream, &device);

    if (!rc && !handle)
        rc = memsim_pool_current(device, &chosen);
    if (rc)
        return rc;
    core_lock(LOCK_POOL);
    struct pool *pool = pool_get(chosen);
    *address = 0;
    if (!pool)
        rc = CORE_INVALID_VALUE;
    else if (bytes)
        rc = range_take(pool, bytes, stream, torch, address);
    core_unlock(LOCK_POOL);
    if (rc == CORE_OUT_OF_MEMORY && torch)
        device_give_up(device, true, bytes);
    return rc;
}

/* Takes ADDRESS out of the table of used ranges. */
static struct range *used_take(uint64_t address)
{
    struct range **link = bucket_of(address);

    while (*link && (*link)->address != address)
        link = &(*link)->next_hash;
    struct range *range = *link;
    if (range)
        *link = range->next_hash;
    return range;
}

/* [ below ][ above ] => [ ---- below ---- ] */
static void range_merge(struct range *below, struct range *above)
{
    list_remove(above);
    below->pending |= above->pending;
    below->bytes += above->bytes;
    below->above = above->above;
    if (below->above)
        below->above->below = below;
    range_drop(above);
}

static void range_give(struct range *range, uint64_t stream)
{
    struct pool *pool = range->pool;

    value_add(pool, POOL_USED, -(int64_t)range->requested_bytes);
    torch_block(range, stream, false);
    range->requested_bytes = 0;
    range->pending = true;
    list_add(range);
    if (range->above && !range->above->requested_bytes)
        range_merge(range, range->above);
    if (range->below && !range->below->requested_bytes)
        range_merge(range->below, range);
    if (pool->dying)
        pool_bury(pool);
}

int memsim_pool_free(uint64_t address, uint64_t stream)
{
    int device;
    int rc = memsim_stream_device(stream, &device);

    if (rc || !address) /* as an H200 answers: NULL is freed */
        return rc;
    if (!atomic_load_explicit(&pool_count, memory_order_relaxed))
        return CORE_INVALID_VALUE;
    core_lock(LOCK_POOL);
    struct range *range = used_take(address);
    if (range)
        range_give(range, stream);
    core_unlock(LOCK_POOL);
    return range ? CORE_OK : CORE_INVALID_VALUE;
}

/* Ends a chunk, whoever uses it still. */
static void chunk_end(struct range *chunk)
{
    memsim_device_free(chunk->address, TRACE_HOW_ASYNC);
    for (struct range *range = chunk, *above; range; range = above) {
        above = range->above;
        if (range->requested_bytes)
            used_take(range->address);
        range_drop(range);
    }
}

static void pool_end(struct pool *pool)
{
    for (struct range *chunk = pool->chunks, *next; chunk; chunk = next) {
        next = chunk->next_chunk;
        chunk_end(chunk);
    }
    pool_unlink(pool);
    memsim_handle_free(HANDLE_POOL, pool);
}

void pool_reset(int device)
{
    core_lock(LOCK_POOL);
    for (struct pool *pool = pools, *next; pool; pool = next) {
        next = pool->next;
        if (pool->device == device)
            pool_end(pool);
    }
    defaults[device] = currents[device] = NULL;
    core_unlock(LOCK_POOL);
}

int memsim_pool_trim(uint64_t handle, uint64_t keep_bytes)
{
    core_lock(LOCK_POOL);
    struct pool *pool = pool_get(handle);
    if (pool)
        pool_shrink(pool, keep_bytes);
    core_unlock(LOCK_POOL);
    return pool ? CORE_OK : CORE_INVALID_VALUE;
}

int memsim_pool_get(uint64_t handle, enum pool_attribute attribute,
                    uint64_t *value)
{
    const struct pool *pool = pool_get(handle);

    if (!pool || attribute < 1 || attribute >= POOL_ATTRIBUTES)
        return CORE_INVALID_VALUE;
    *value = pool->values[attribute];
    return CORE_OK;
}

/* High marks can be set to 0 only, which makes them what there is now. */
int memsim_pool_set(uint64_t handle, enum pool_attribute attribute,
                    uint64_t value)
{
    struct pool *pool = pool_get(handle);
    bool high = attribute == POOL_RESERVED_HIGH || attribute == POOL_USED_HIGH;

    if (!pool || attribute < 1 || attribute >= POOL_ATTRIBUTES ||
        attribute == POOL_RESERVED || attribute == POOL_USED || (high && value))
        return CORE_INVALID_VALUE;
    pool->values[attribute] = high ? pool->values[attribute - 1] : value;
    return CORE_OK;
}

int memsim_pool_device(uint64_t handle, int *device)
{
    const struct pool *pool = pool_get(handle);

    if (!pool)
        return CORE_INVALID_VALUE;
    *device = pool->device;
    return CORE_OK;
}

static bool pool_owns(uint64_t address)
{
    bool found = false;

    if (!atomic_load_explicit(&pool_count, memory_order_relaxed))
        return false;
    core_lock(LOCK_POOL);
    for (const struct pool *pool = pools; pool; pool = pool->next)
        for (const struct range *c = pool->chunks; c; c = c->next_chunk)
            found |= c->address == address;
    core_unlock(LOCK_POOL);
    return found;
}

void pool_synchronized(int device)
{
    if (!atomic_load_explicit(&pool_count, memory_order_relaxed))
        return;
    core_lock(LOCK_POOL);
    for (struct pool *pool = pools, *next; pool; pool = next) {
        next = pool->next;
        if (pool->device != device)
            continue;
        pool_settle(pool);
        if (pool->dying)
            pool_bury(pool);
        else
            pool_shrink(pool, pool->values[POOL_RELEASE_THRESHOLD]);
    }
    core_unlock(LOCK_POOL);
}

__attribute__((constructor)) static void pool_start(void)
{
    owner_set(OWNER_POOL, pool_owns);
}
