/* SPDX-License-Identifier: Apache-2.0
 * A pool's cached blocks of one stream, in the order that PyTorch keeps in
 * std::set<Block *>. That order is by size first, so they lie in bins by size,
 * 64 bins to a power of two (below 32 KiB one to each size), and a bin, of
 * which few blocks are, is a treap. Bits tell the bins that have any:
 *
 *   used      0 0 1 0 1 ...                     a bit a level: a power of two
 *   levels[2] 0 1 0 0 0 0 1 ...                 a bit a bin
 *   bins[6]   treap by (size, age, address) */
#ifndef MEMSIM_MEMSIM_ALLOC_ALLOC_SHELF_H
#define MEMSIM_MEMSIM_ALLOC_ALLOC_SHELF_H

#include "memsim/alloc/alloc_tree.h"

enum { SHELF_BINS = 64, SHELF_LEVELS = 51 };

struct alloc_level {
    uint64_t used;
    struct alloc_block *bins[SHELF_BINS];
};

struct alloc_shelf {
    struct alloc_pool *pool;
    uint64_t stream;
    struct alloc_block *holes; /* a treap by address */
    uint64_t used;
    struct alloc_level *levels[SHELF_LEVELS]; /* NULL: never used */
};

/* The shelf of STREAM in POOL, made where there is none. */
struct alloc_shelf *alloc_shelf_find(struct alloc_pool *pool, uint64_t stream);

static inline struct alloc_shelf *alloc_shelf_obtain(struct alloc_pool *pool,
                                                     uint64_t stream)
{
    struct alloc_shelf *s = pool->latest;

    return s && s->stream == stream ? s : alloc_shelf_find(pool, stream);
}

struct alloc_level *alloc_shelf_add_level(struct alloc_shelf *s,
                                          unsigned level);
void alloc_shelf_free_all(struct alloc_pool *pool);

/* The last block before bin (LEVEL, BIN). */
struct alloc_block *alloc_shelf_last_before(const struct alloc_shelf *s,
                                            unsigned level, unsigned bin);

/* A pool's blocks, by stream and then in a shelf's order. */
struct alloc_block *alloc_pool_first(const struct alloc_pool *pool);
struct alloc_block *alloc_pool_next(const struct alloc_block *b);

static inline void shelf_place(uint64_t bytes, unsigned *level, unsigned *bin)
{
    uint64_t units = bytes / MIN_BLOCK_BYTES;

    if (units < SHELF_BINS) {
        *level = 0;
        *bin = (unsigned)units;
        return;
    }
    unsigned log2 = 63 - (unsigned)__builtin_clzll(units);
    *level = log2 - 5;
    *bin = (unsigned)(units >> (log2 - 6)) - SHELF_BINS;
}

static inline void shelf_insert(struct alloc_block *b)
{
    struct alloc_shelf *s = b->shelf;
    unsigned level, bin;

    shelf_place(b->bytes, &level, &bin);
    struct alloc_level *l = s->levels[level];
    if (!l)
        l = alloc_shelf_add_level(s, level);
    if (l->bins[bin]) {
        tree_insert(&l->bins[bin], b, block_before);
        return;
    }
    b->left = b->right = b->parent = NULL;
    l->bins[bin] = b;
    l->used |= UINT64_C(1) << bin;
    s->used |= UINT64_C(1) << level;
}

static inline void shelf_remove(struct alloc_block *b)
{
    struct alloc_shelf *s = b->shelf;
    unsigned level, bin;

    shelf_place(b->bytes, &level, &bin);
    struct alloc_level *l = s->levels[level];
    tree_remove(&l->bins[bin], b);
    if (l->bins[bin])
        return;
    l->used &= ~(UINT64_C(1) << bin);
    if (!l->used)
        s->used &= ~(UINT64_C(1) << level);
}

/* The bits of USED from N on; N may be 64. */
static inline uint64_t shelf_bits_from(uint64_t used, unsigned n)
{
    return n < 64 ? used & UINT64_MAX << n : 0;
}

/* The first block in or behind bin (LEVEL, BIN). */
static inline struct alloc_block *shelf_first_from(const struct alloc_shelf *s,
                                                   unsigned level, unsigned bin)
{
    const struct alloc_level *l = s->levels[level];
    uint64_t bins = l ? shelf_bits_from(l->used, bin) : 0;

    if (!bins) {
        uint64_t levels = shelf_bits_from(s->used, level + 1);

        if (!levels)
            return NULL;
        l = s->levels[__builtin_ctzll(levels)];
        bins = l->used;
    }
    return tree_first(l->bins[__builtin_ctzll(bins)]);
}

/* The first block of BYTES or more; NULL where there is none. */
static inline struct alloc_block *shelf_at_least(const struct alloc_shelf *s,
                                                 uint64_t bytes)
{
    unsigned level, bin;

    shelf_place(bytes, &level, &bin);
    const struct alloc_level *l = s->levels[level];
    struct alloc_block *b = l ? tree_at_least(l->bins[bin], bytes) : NULL;
    return b ? b : shelf_first_from(s, level, bin + 1);
}

static inline struct alloc_block *shelf_next(const struct alloc_block *b)
{
    struct alloc_block *next = tree_next(b);
    unsigned level, bin;

    if (next)
        return next;
    shelf_place(b->bytes, &level, &bin);
    return shelf_first_from(b->shelf, level, bin + 1);
}

static inline struct alloc_block *shelf_prev(const struct alloc_block *b)
{
    struct alloc_block *prev = tree_prev(b);
    unsigned level, bin;

    if (prev)
        return prev;
    shelf_place(b->bytes, &level, &bin);
    return alloc_shelf_last_before(b->shelf, level, bin);
}

static inline struct alloc_block *shelf_last(const struct alloc_shelf *s)
{
    return alloc_shelf_last_before(s, SHELF_LEVELS, 0);
}

static inline void shelf_insert_hole(struct alloc_block *b)
{
    tree_insert(&b->shelf->holes, b, hole_before);
}

static inline void shelf_remove_hole(struct alloc_block *b)
{
    tree_remove(&b->shelf->holes, b);
}

#endif
