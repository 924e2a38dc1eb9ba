/* SPDX-License-Identifier: Apache-2.0
 *
 *     as recorded   +g            zero(g)  ... +t  add  -t  ...      -g
 *     with None     +g            -g       ... +t           ...      -t
 */
#include "memsim/advice/tape_gradient.h"

#include <stdlib.h>

#include "common/base/xmalloc.h"

#define FIRST_NAME (UINT64_C(5) << 61) /* of blocks that were not recorded */

/* A block that a backward pass takes: a gradient, or what is added to one. */
struct block {
    uint32_t gradient; /* 1 + the item of the gradient that it becomes */
    uint32_t next;     /* 1 + the item of the next one of a chain */
    uint64_t name;     /* of a gradient: its present block's */
    bool gone;
};

struct freeing {
    struct tape *to;
    const struct tape *from;
    uint32_t *pairs;
    struct block *blocks;
    uint32_t live;      /* chain of gradients */
    struct map waiting; /* chains of gradients that are gone, by their tensor */
    uint64_t next_name;
    uint64_t freed_bytes, most_bytes;
};

/* Blocks of other tensors share a key by chance. */
static uint64_t key_of(const struct tape_item *item)
{
    uint64_t key = item->op.bytes * UINT64_C(0x9e3779b97f4a7c15);

    return key ^ item->elements << 24 ^ item->last_dim ^
           (uint64_t)item->module << 40 ^ (uint64_t)item->op.device << 60;
}

static void waiting_add(struct freeing *f, uint32_t gradient)
{
    uint64_t key = key_of(&f->from->items[gradient]);
    uintptr_t first = (uintptr_t)map_take(&f->waiting, key);

    f->blocks[gradient].next = (uint32_t)first;
    map_put(&f->waiting, key, (void *)(uintptr_t)(gradient + 1));
}

static void live_add(struct freeing *f, uint32_t gradient)
{
    f->blocks[gradient].next = f->live;
    f->live = gradient + 1;
}

/* Item AT sets ELEMENTS to zero; 0: those of lists of tensors. */
static void zero_gradient(struct freeing *f, uint32_t at, uint64_t elements)
{
    uint32_t *link = &f->live;

    while (*link) {
        uint32_t i = *link - 1;
        struct block *b = &f->blocks[i];
        const struct tape_item *item = &f->from->items[i];

        if (elements && item->elements != elements) {
            link = &b->next;
            continue;
        }
        *link = b->next;
        tape_add_call(f->to, item, &f->from->items[at], REPLAY_FREE, b->name);
        f->freed_bytes += item->op.bytes;
        b->gone = true;
        waiting_add(f, i);
    }
}

/* The gradient that the block of item I becomes; TAPE_NONE: it is none's. */
static uint32_t gradient_find(struct freeing *f, uint32_t i)
{
    const struct tape_item *item = &f->from->items[i];
    uint32_t freed = f->pairs[i];
    uint64_t key = key_of(item);

    if (item->phase != TRACE_PHASE_BACKWARD || item->holds ||
        freed == TAPE_NONE || f->from->items[freed].op.deferred)
        return TAPE_NONE;
    uintptr_t first = (uintptr_t)map_take(&f->waiting, key);
    if (!first)
        return TAPE_NONE;
    uint32_t gradient = (uint32_t)first - 1, next = f->blocks[gradient].next;
    if (next)
        map_put(&f->waiting, key, (void *)(uintptr_t)next);
    return gradient;
}

static void copy_taken(struct freeing *f, uint32_t i)
{
    struct tape_item item = f->from->items[i];
    uint32_t gradient = gradient_find(f, i);
    bool is_gradient = item.holds & TAPE_GRADIENT;

    if (is_gradient)
        gradient = i;
    else if (gradient != TAPE_NONE)
        item.op.address = FIRST_NAME + f->next_name++;
    if (gradient != TAPE_NONE) {
        f->blocks[i].gradient = gradient + 1;
        f->blocks[gradient].name = item.op.address;
        f->blocks[gradient].gone = false;
        live_add(f, gradient);
    }
    tape_add(f->to, &item);
}

static void live_drop(struct freeing *f, uint32_t gradient)
{
    uint32_t *link = &f->live;

    while (*link && *link != gradient + 1)
        link = &f->blocks[*link - 1].next;
    if (*link)
        *link = f->blocks[gradient].next;
}

static void copy_freed(struct freeing *f, uint32_t i)
{
    struct tape_item item = f->from->items[i];
    uint32_t taken = f->pairs[i];
    const struct block *b = taken == TAPE_NONE ? NULL : &f->blocks[taken];

    if (!b || !b->gradient) {
        tape_add(f->to, &item);
        return;
    }
    if (b->gradient != taken + 1 || b->gone)
        return; /* it is a gradient now; or was freed when set to zero */
    live_drop(f, taken);
    item.op.address = b->name;
    tape_add(f->to, &item);
}

static void item_copy(struct freeing *f, uint32_t i)
{
    const struct tape_item *item = &f->from->items[i];

    if (tape_item_is_taken(item)) {
        copy_taken(f, i);
    } else if (tape_item_is_freed(item)) {
        copy_freed(f, i);
    } else {
        if (item->kind == TAPE_PHASE)
            f->freed_bytes = 0;
        if (item->kind == TAPE_ZERO)
            zero_gradient(f, i, item->elements);
        tape_add(f->to, item);
    }
    if (f->freed_bytes > f->most_bytes)
        f->most_bytes = f->freed_bytes;
}

uint64_t tape_free_gradients(struct tape *to, const struct tape *from)
{
    struct freeing f = {.to = to, .from = from, .pairs = tape_pairs(from)};

    tape_init_like(to, from);
    f.blocks = xcalloc(from->count + 1, sizeof *f.blocks);
    for (uint32_t i = 0; i < from->count; i++)
        item_copy(&f, i);
    map_fini(&f.waiting);
    free(f.blocks);
    free(f.pairs);
    return f.most_bytes;
}
