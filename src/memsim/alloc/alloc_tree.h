/* SPDX-License-Identifier: Apache-2.0
 * The order that PyTorch keeps in std::set<Block *>: a treap whose nodes are
 * the blocks. Inline, for every allocator call is mostly this. */
#ifndef MEMSIM_ALLOC_ALLOC_TREE_H
#define MEMSIM_ALLOC_ALLOC_TREE_H

#include "memsim/alloc/alloc_internal.h"

static inline bool tree_less(const struct alloc_tree *t, uint64_t stream,
                             uint64_t bytes, uint64_t address,
                             const struct alloc_block *b)
{
    if (stream != b->stream)
        return stream < b->stream;
    if (bytes != b->bytes && !t->by_address)
        return bytes < b->bytes;
    return address < b->address;
}

static inline bool tree_before(const struct alloc_tree *t,
                               const struct alloc_block *a,
                               const struct alloc_block *b)
{
    return tree_less(t, a->stream, a->bytes, a->address, b);
}

/* The pointer that holds B: its parent's, or the root. */
static inline struct alloc_block **tree_link(struct alloc_tree *t,
                                             const struct alloc_block *b)
{
    if (!b->parent)
        return &t->root;
    return b->parent->left == b ? &b->parent->left : &b->parent->right;
}

/* Lifts B above its parent. */
static inline void tree_lift(struct alloc_tree *t, struct alloc_block *b)
{
    struct alloc_block *p = b->parent;

    *tree_link(t, p) = b;
    b->parent = p->parent;
    p->parent = b;
    if (p->left == b) {
        p->left = b->right;
        b->right = p;
        if (p->left)
            p->left->parent = p;
    } else {
        p->right = b->left;
        b->left = p;
        if (p->right)
            p->right->parent = p;
    }
}

static inline void tree_insert(struct alloc_tree *t, struct alloc_block *b)
{
    struct alloc_block **link = &t->root, *parent = NULL;

    while (*link) {
        parent = *link;
        link = tree_before(t, b, parent) ? &parent->left : &parent->right;
    }
    *link = b;
    b->parent = parent;
    b->left = b->right = NULL;
    while (b->parent && b->priority > b->parent->priority)
        tree_lift(t, b);
}

static inline void tree_remove(struct alloc_tree *t, struct alloc_block *b)
{
    while (b->left && b->right)
        tree_lift(t,
                  b->left->priority > b->right->priority ? b->left : b->right);
    struct alloc_block *child = b->left ? b->left : b->right;
    *tree_link(t, b) = child;
    if (child)
        child->parent = b->parent;
}

/* The first block not before (STREAM, BYTES, 0); NULL where there is none. */
static inline struct alloc_block *tree_at_least(const struct alloc_tree *t,
                                                uint64_t stream, uint64_t bytes)
{
    struct alloc_block *b = t->root, *found = NULL;

    while (b) {
        bool below = b->stream != stream ? b->stream < stream
                                         : !t->by_address && b->bytes < bytes;
        if (!below)
            found = b;
        b = below ? b->right : b->left;
    }
    return found;
}

static inline struct alloc_block *tree_first(const struct alloc_tree *t)
{
    struct alloc_block *b = t->root;

    while (b && b->left)
        b = b->left;
    return b;
}

static inline struct alloc_block *tree_last(const struct alloc_tree *t)
{
    struct alloc_block *b = t->root;

    while (b && b->right)
        b = b->right;
    return b;
}

static inline struct alloc_block *tree_next(const struct alloc_block *b)
{
    if (b->right) {
        for (b = b->right; b->left;)
            b = b->left;
        return (struct alloc_block *)b;
    }
    while (b->parent && b->parent->right == b)
        b = b->parent;
    return b->parent;
}

static inline struct alloc_block *tree_prev(const struct alloc_block *b)
{
    if (b->left) {
        for (b = b->left; b->right;)
            b = b->right;
        return (struct alloc_block *)b;
    }
    while (b->parent && b->parent->left == b)
        b = b->parent;
    return b->parent;
}

#endif
