/* SPDX-License-Identifier: Apache-2.0
 * A treap whose nodes are blocks of one stream: cached blocks by (size,
 * address) or holes by address. Inline, for every allocator call is mostly
 * this. */
#ifndef MEMSIM_MEMSIM_ALLOC_ALLOC_TREE_H
#define MEMSIM_MEMSIM_ALLOC_ALLOC_TREE_H

#include "memsim/alloc/alloc_internal.h"

/* BlockComparatorSize; where age counts, #178362 (2.12) and
 * BlockComparatorSizeCounterAddress (2.13). */
static inline bool block_before(const struct alloc_block *a,
                                const struct alloc_block *b)
{
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes;
    if (a->age != b->age)
        return a->age < b->age;
    return a->address < b->address;
}

/* BlockComparatorAddress */
static inline bool hole_before(const struct alloc_block *a,
                               const struct alloc_block *b)
{
    return a->address < b->address;
}

typedef bool tree_order(const struct alloc_block *a,
                        const struct alloc_block *b);

/* The pointer that holds B: its parent's, or the root. */
static inline struct alloc_block **tree_link(struct alloc_block **root,
                                             const struct alloc_block *b)
{
    if (!b->parent)
        return root;
    return b->parent->left == b ? &b->parent->left : &b->parent->right;
}

/* Lifts B above its parent. */
static inline void tree_lift(struct alloc_block **root, struct alloc_block *b)
{
    struct alloc_block *p = b->parent;

    *tree_link(root, p) = b;
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

static inline void tree_insert(struct alloc_block **root, struct alloc_block *b,
                               tree_order *before)
{
    struct alloc_block **link = root, *parent = NULL;

    while (*link) {
        parent = *link;
        link = before(b, parent) ? &parent->left : &parent->right;
    }
    *link = b;
    b->parent = parent;
    b->left = b->right = NULL;
    while (b->parent && b->priority > b->parent->priority)
        tree_lift(root, b);
}

static inline void tree_remove(struct alloc_block **root, struct alloc_block *b)
{
    while (b->left && b->right)
        tree_lift(root,
                  b->left->priority > b->right->priority ? b->left : b->right);
    struct alloc_block *child = b->left ? b->left : b->right;
    *tree_link(root, b) = child;
    if (child)
        child->parent = b->parent;
}

/* The first block of BYTES or more; NULL where there is none. */
static inline struct alloc_block *tree_at_least(struct alloc_block *root,
                                                uint64_t bytes)
{
    struct alloc_block *b = root, *found = NULL;

    while (b) {
        bool below = b->bytes < bytes;

        if (!below)
            found = b;
        b = below ? b->right : b->left;
    }
    return found;
}

static inline struct alloc_block *tree_first(struct alloc_block *root)
{
    while (root && root->left)
        root = root->left;
    return root;
}

static inline struct alloc_block *tree_last(struct alloc_block *root)
{
    while (root && root->right)
        root = root->right;
    return root;
}

static inline struct alloc_block *tree_next(const struct alloc_block *b)
{
    if (b->right)
        return tree_first(b->right);
    while (b->parent && b->parent->right == b)
        b = b->parent;
    return b->parent;
}

static inline struct alloc_block *tree_prev(const struct alloc_block *b)
{
    if (b->left)
        return tree_last(b->left);
    while (b->parent && b->parent->left == b)
        b = b->parent;
    return b->parent;
}

#endif
