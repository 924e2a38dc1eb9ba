/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/base/handle.h"

#include <string.h>

#include "capture/core/base/lock.h"
#include "capture/core/base/pages.h"

/* Every slot is HANDLE_BYTES_MAX and starts with this; the user's handle
 * points behind it. */
struct slot {
    uint32_t live;
    uint32_t next_free; /* 1 + index; 0 ends the list */
    uint64_t padding;
};

#define SLOT_BYTES (HANDLE_BYTES_MAX + sizeof(struct slot))
#define POOL_SLOTS (1u << 20)

static struct pool {
    char *base;
    uint32_t used;       /* slots ever handed out */
    uint32_t free_first; /* 1 + index; oldest first */
    uint32_t free_last;
} pools[HANDLE_KINDS];

static struct slot *slot_at(const struct pool *pool, uint32_t index)
{
    return (struct slot *)(pool->base + (uint64_t)index * SLOT_BYTES);
}

/* A slot that is not in use, or NULL. Fresh slots come first. */
static struct slot *slot_take(struct pool *pool)
{
    if (!pool->base)
        pool->base = memsim_pages_reserve(0, (uint64_t)POOL_SLOTS * SLOT_BYTES);
    if (!pool->base)
        return NULL;
    if (pool->used < POOL_SLOTS && (pool->used < 4096 || !pool->free_first))
        return slot_at(pool, pool->used++);
    if (!pool->free_first)
        return NULL;
    struct slot *slot = slot_at(pool, pool->free_first - 1);
    pool->free_first = slot->next_free;
    return slot;
}

void *memsim_handle_new(enum handle_kind kind, size_t bytes)
{
    core_lock(LOCK_HANDLE);
    struct slot *slot = slot_take(&pools[kind]);
    if (slot) {
        slot->next_free = 0;
        memset(slot + 1, 0, bytes);
        __atomic_store_n(&slot->live, 1, __ATOMIC_RELEASE);
    }
    core_unlock(LOCK_HANDLE);
    return slot ? slot + 1 : NULL;
}

/* The slot that HANDLE was or is given out for; NULL where there is none. */
static const struct slot *slot_find(enum handle_kind kind, const void *handle)
{
    const struct pool *pool = &pools[kind];
    uint64_t offset =
        (uint64_t)handle - sizeof(struct slot) - (uint64_t)pool->base;

    if (offset >= (uint64_t)pool->used * SLOT_BYTES || offset % SLOT_BYTES)
        return NULL;
    return (const struct slot *)(pool->base + offset);
}

void *memsim_handle_get(enum handle_kind kind, const void *handle)
{
    const struct slot *slot = slot_find(kind, handle);

    return slot && __atomic_load_n(&slot->live, __ATOMIC_ACQUIRE)
               ? (void *)handle
               : NULL;
}

bool memsim_handle_was(enum handle_kind kind, const void *handle)
{
    return slot_find(kind, handle);
}

void memsim_handle_each(enum handle_kind kind,
                        void (*see)(void *handle, void *data), void *data)
{
    const struct pool *pool = &pools[kind];

    for (uint32_t i = 0; i < pool->used; i++) {
        struct slot *slot = slot_at(pool, i);

        if (__atomic_load_n(&slot->live, __ATOMIC_ACQUIRE))
            see(slot + 1, data);
    }
}

int memsim_handle_free(enum handle_kind kind, void *handle)
{
    struct pool *pool = &pools[kind];

    core_lock(LOCK_HANDLE);
    if (!memsim_handle_get(kind, handle)) {
        core_unlock(LOCK_HANDLE);
        return CORE_INVALID_HANDLE;
    }
    struct slot *slot = (struct slot *)handle - 1;
    uint32_t index =
        (uint32_t)(((char *)slot - pool->base) / (ptrdiff_t)SLOT_BYTES) + 1;
    slot->live = 0;
    if (pool->free_first)
        slot_at(pool, pool->free_last - 1)->next_free = index;
    else
        pool->free_first = index;
    pool->free_last = index;
    core_unlock(LOCK_HANDLE);
    return CORE_OK;
}
