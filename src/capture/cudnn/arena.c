/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/cudnn/arena.h"

#include <stdatomic.h>
#include <sys/mman.h>

#include "capture/core/base/pages.h"

#define ARENA_BYTES (UINT64_C(4) << 30) /* of address space */
#define CLASS_FIRST 6                   /* blocks of 64 bytes */
#define CLASSES     15                  /* the largest: 1 MiB */

struct block {
    struct block *next;
};

static _Thread_local struct block *free_lists[CLASSES];
static _Atomic(char *) base;
static _Atomic uint64_t used;

static char *arena_base(void)
{
    char *start = atomic_load(&base);

    if (start)
        return start;
    char *mine = memsim_pages_reserve(0, ARENA_BYTES);
    if (!mine)
        return NULL;
    if (atomic_compare_exchange_strong(&base, &start, mine))
        return mine;
    munmap(mine, ARENA_BYTES);
    return start;
}

static unsigned class_of(size_t bytes)
{
    unsigned class = 0;

    while (class < CLASSES && (size_t)1 << (class + CLASS_FIRST) < bytes)
        class ++;
    return class;
}

void *arena_take(size_t bytes, size_t *capacity)
{
    unsigned class = class_of(bytes);
    char *start = arena_base();

    if (!start || class == CLASSES)
        return NULL;
    *capacity = (size_t)1 << (class + CLASS_FIRST);
    struct block *block = free_lists[class];
    if (block) {
        free_lists[class] = block->next;
        return block;
    }
    uint64_t at = atomic_fetch_add(&used, *capacity);
    return at + *capacity <= ARENA_BYTES ? start + at : NULL;
}

void arena_give(void *block, size_t capacity)
{
    struct block *given = block;
    unsigned class = class_of(capacity);

    given->next = free_lists[class];
    free_lists[class] = given;
}
