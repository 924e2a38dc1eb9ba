/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/alloc/alloc_shelf.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/bisect.h"
#include "common/base/xmalloc.h"

/* Where STREAM's shelf is, or would go. */
static size_t place_of(const struct alloc_pool *pool, uint64_t stream)
{
    return BISECT(i, pool->shelf_count, pool->shelves[i]->stream < stream);
}

struct alloc_shelf *alloc_shelf_find(struct alloc_pool *pool, uint64_t stream)
{
    size_t i = place_of(pool, stream);
    if (i == pool->shelf_count || pool->shelves[i]->stream != stream) {
        struct alloc_shelf *s = xcalloc(1, sizeof *s);

        s->pool = pool;
        s->stream = stream;
        xgrow(&pool->shelves, pool->shelf_count, &pool->shelf_capacity,
              sizeof *pool->shelves);
        memmove(pool->shelves + i + 1, pool->shelves + i,
                (pool->shelf_count - i) * sizeof *pool->shelves);
        pool->shelves[i] = s;
        pool->shelf_count++;
    }
    return pool->latest = pool->shelves[i];
}

struct alloc_level *alloc_shelf_add_level(struct alloc_shelf *s, unsigned level)
{
    return s->levels[level] = xcalloc(1, sizeof *s->levels[level]);
}

void alloc_shelf_free_all(struct alloc_pool *pool)
{
    for (size_t i = 0; i < pool->shelf_count; i++) {
        for (unsigned level = 0; level < SHELF_LEVELS; level++)
            free(pool->shelves[i]->levels[level]);
        free(pool->shelves[i]);
    }
    free(pool->shelves);
    pool->shelves = NULL;
    pool->latest = NULL;
    pool->shelf_count = pool->shelf_capacity = 0;
}

/* The bits of USED below N; N may be 64. */
static uint64_t bits_below(uint64_t used, unsigned n)
{
    return used & ~(n < 64 ? UINT64_MAX << n : 0);
}

struct alloc_block *alloc_shelf_last_before(const struct alloc_shelf *s,
                                            unsigned level, unsigned bin)
{
    const struct alloc_level *l =
        level < SHELF_LEVELS ? s->levels[level] : NULL;
    uint64_t bins = l ? bits_below(l->used, bin) : 0;

    if (!bins) {
        uint64_t levels = bits_below(s->used, level);

        if (!levels)
            return NULL;
        l = s->levels[63 - __builtin_clzll(levels)];
        bins = l->used;
    }
    return tree_last(l->bins[63 - __builtin_clzll(bins)]);
}

/* The first block of POOL's shelves from the I-th on. */
static struct alloc_block *first_from(const struct alloc_pool *pool, size_t i)
{
    for (; i < pool->shelf_count; i++) {
        struct alloc_block *b = shelf_first_from(pool->shelves[i], 0, 0);

        if (b)
            return b;
    }
    return NULL;
}

struct alloc_block *alloc_pool_first(const struct alloc_pool *pool)
{
    return first_from(pool, 0);
}

struct alloc_block *alloc_pool_next(const struct alloc_block *b)
{
    struct alloc_block *next = shelf_next(b);
    const struct alloc_pool *pool = b->shelf->pool;

    return next ? next : first_from(pool, place_of(pool, b->shelf->stream) + 1);
}
