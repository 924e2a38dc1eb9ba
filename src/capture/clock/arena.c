/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/clock/arena.h"

#include <stdint.h>
#include <string.h>

#include "common/base/xmalloc.h"

#define ORDER_LEAST 5 /* 32 bytes, the header among them */
#define ORDERS      48

/* Before each block; as long as what malloc aligns to. */
struct block {
    size_t order;
    struct block *next; /* while it is free */
};

static char *arena, *arena_end;
static void (*arena_full)(void);
static struct block *free_blocks[ORDERS];

void arena_start(void *memory, size_t bytes, void (*full)(void))
{
    arena = memory;
    arena_end = arena + bytes;
    arena_full = full;
    memset(free_blocks, 0, sizeof free_blocks);
}

static size_t order_of(size_t bytes)
{
    size_t order = ORDER_LEAST;

    while (order < ORDERS &&
           ((size_t)1 << order) < bytes + sizeof(struct block))
        order++;
    return order;
}

void *xmalloc(size_t bytes)
{
    size_t order = order_of(bytes);
    struct block *b = order < ORDERS ? free_blocks[order] : NULL;

    if (b) {
        free_blocks[order] = b->next;
        return b + 1;
    }
    if (order >= ORDERS || (size_t)(arena_end - arena) < (size_t)1 << order)
        arena_full();
    b = (struct block *)arena;
    arena += (size_t)1 << order;
    b->order = order;
    return b + 1;
}

void *xcalloc(size_t count, size_t bytes)
{
    size_t total;

    if (__builtin_mul_overflow(count, bytes, &total))
        arena_full();
    char *before = arena;
    void *p = xmalloc(total);
    return (char *)p < before ? memset(p, 0, total) : p; /* new pages are 0 */
}

void xfree(void *p)
{
    struct block *b = p;

    if (!b)
        return;
    b--;
    b->next = free_blocks[b->order];
    free_blocks[b->order] = b;
}

void *xreallocarray(void *p, size_t count, size_t bytes)
{
    size_t total;

    if (__builtin_mul_overflow(count, bytes, &total))
        arena_full();
    if (!p)
        return xmalloc(total);
    const struct block *b = (struct block *)p - 1;
    size_t room = ((size_t)1 << b->order) - sizeof *b;
    if (total <= room)
        return p;
    void *grown = xmalloc(total);
    memcpy(grown, p, room);
    xfree(p);
    return grown;
}

char *xstrdup(const char *text)
{
    size_t bytes = strlen(text) + 1;

    return memcpy(xmalloc(bytes), text, bytes);
}

void xgrow(void *p, size_t count, size_t *capacity, size_t bytes)
{
    void **array = p;

    if (count < *capacity)
        return;
    *capacity = *capacity ? *capacity * 2 : 16;
    *array = xreallocarray(*array, *capacity, bytes);
}
