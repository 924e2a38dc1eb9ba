/* SPDX-License-Identifier: Apache-2.0
 * autocast copies a weight that requires a gradient once, and keeps the copy
 * until its outermost context ends (aten/src/ATen/autocast_mode.cpp,
 * cached_cast). */
#include "memsim/advice/tape_cast.h"

#include <stdlib.h>

#include "common/base/xmalloc.h"

#define FIRST_NAME (UINT64_C(6) << 61) /* of blocks that were not recorded */

/* A copy of a weight, by the item that takes it. */
struct cast {
    bool is_cast, is_cached; /* only the cache keeps it */
    uint32_t next; /* 1 + the item of the next one of its module */
    uint64_t name; /* at present; 0: it is gone */
};

/* One that a later call of the module makes, and backward needs. */
struct extra {
    uint32_t cast;
    uint64_t name;
};

struct casting {
    struct tape *to;
    const struct tape *from;
    uint32_t *pairs;
    uint8_t *phases;
    struct cast *casts;
    struct extra *extra;
    size_t extra_count, extra_capacity;
    struct map of_module;  /* chains of casts that autocast has */
    struct map parameters; /* by their tensors */
    uint64_t next_name, saved_bytes;
};

/* Tensors share a key by chance. BYTES: of a block with such a tensor. */
static uint64_t key_of(const struct tape_item *item, uint64_t bytes)
{
    return item->elements << 32 ^ item->last_dim ^
           bytes * UINT64_C(0x9e3779b97f4a7c15);
}

/* Is the module left between item I, in it, and the item FREED? */
static bool outlives_module(const struct casting *c, uint32_t i, uint32_t freed)
{
    uint32_t module = c->from->items[i].module;

    for (uint32_t k = i + 1; k < freed; k++)
        if (c->from->items[k].kind == TAPE_LEAVE &&
            c->from->items[k].module == module)
            return true;
    return false;
}

static void survey_casts(struct casting *c)
{
    uint8_t phase = TRACE_PHASE_INIT;

    for (uint32_t i = 0; i < c->from->count; i++) {
        const struct tape_item *item = &c->from->items[i];

        if (item->kind == TAPE_PHASE)
            phase = item->phase;
        c->phases[i] = phase;
        if (tape_item_is_taken(item) && item->holds & TAPE_PARAMETER)
            map_put(&c->parameters, key_of(item, item->op.bytes), c);
    }
}

static bool is_cast(const struct casting *c, uint32_t i)
{
    const struct tape_item *item = &c->from->items[i];

    return tape_item_is_taken(item) && item->maker == TAPE_CAST &&
           !item->holds &&
           item->module && item->elements &&
           item->phase == TRACE_PHASE_FORWARD && c->pairs[i] != TAPE_NONE &&
           map_get(&c->parameters, key_of(item, 2 * item->op.bytes)) &&
           outlives_module(c, i, c->pairs[i]);
}

static void casts_find(struct casting *c)
{
    for (uint32_t i = 0; i < c->from->count; i++) {
        if (!is_cast(c, i))
            continue;
        uint32_t freed = c->pairs[i];
        c->casts[i].is_cast = true;
        c->casts[i].is_cached = c->phases[freed] != TRACE_PHASE_BACKWARD &&
                                c->phases[freed] != TRACE_PHASE_RECOMPUTE &&
                                !c->from->items[freed].op.deferred;
    }
}

static void add_call(struct casting *c, uint32_t at, uint32_t cast,
                     enum replay_kind kind, uint64_t name)
{
    tape_add_call(c->to, &c->from->items[cast], &c->from->items[at], kind,
                  name);
}

/* MODULE is called, maybe once more. */
static void enter_module(struct casting *c, uint32_t at, uint32_t module)
{
    uint32_t next = (uint32_t)(uintptr_t)map_get(&c->of_module, module);

    for (; next && c->phases[at] == TRACE_PHASE_FORWARD;
         next = c->casts[next - 1].next) {
        struct cast *cast = &c->casts[next - 1];
        uint64_t name = FIRST_NAME + c->next_name++;

        if (cast->is_cached) {
            if (cast->name) /* it calls itself */
                continue;
            cast->name = name;
        } else {
            xgrow(&c->extra, c->extra_count, &c->extra_capacity,
                  sizeof *c->extra);
            c->extra[c->extra_count++] = (struct extra){next - 1, name};
        }
        add_call(c, at, next - 1, REPLAY_ALLOC, name);
    }
}

static void leave_module(struct casting *c, uint32_t at, uint32_t module)
{
    uint32_t next = (uint32_t)(uintptr_t)map_get(&c->of_module, module);

    for (; next; next = c->casts[next - 1].next) {
        struct cast *cast = &c->casts[next - 1];

        if (!cast->is_cached || !cast->name)
            continue;
        add_call(c, at, next - 1, REPLAY_FREE, cast->name);
        cast->name = 0;
        c->saved_bytes += c->from->items[next - 1].op.bytes;
    }
}

static void chain_add(struct casting *c, uint32_t i)
{
    uint32_t module = c->from->items[i].module;
    uintptr_t first = (uintptr_t)map_take(&c->of_module, module);

    c->casts[i].next = (uint32_t)first;
    c->casts[i].name = c->from->items[i].op.address;
    map_put(&c->of_module, module, (void *)(uintptr_t)(i + 1));
}

static void chain_drop(struct casting *c, uint32_t i)
{
    uint32_t module = c->from->items[i].module;
    uint32_t first = (uint32_t)(uintptr_t)map_take(&c->of_module, module);
    uint32_t *link = &first;

    while (*link && *link != i + 1)
        link = &c->casts[*link - 1].next;
    if (*link)
        *link = c->casts[i].next;
    if (first)
        map_put(&c->of_module, module, (void *)(uintptr_t)first);
}

/* The recorded end of the cast that item I takes. */
static void cast_end(struct casting *c, uint32_t at, uint32_t i)
{
    const struct cast *cast = &c->casts[i];
    size_t kept = 0;

    for (size_t k = 0; k < c->extra_count; k++)
        if (c->extra[k].cast == i)
            add_call(c, at, i, REPLAY_FREE, c->extra[k].name);
        else
            c->extra[kept++] = c->extra[k];
    c->extra_count = kept;
    if (cast->is_cached && cast->name)
        add_call(c, at, i, REPLAY_FREE, cast->name);
    if (!cast->is_cached)
        tape_add(c->to, &c->from->items[at]);
    chain_drop(c, i);
}

static void item_copy(struct casting *c, uint32_t i)
{
    const struct tape_item *item = &c->from->items[i];
    uint32_t pair = c->pairs[i];

    if (tape_item_is_freed(item) && pair != TAPE_NONE &&
        c->casts[pair].is_cast) {
        cast_end(c, i, pair);
        return;
    }
    if (item->kind == TAPE_ENTER)
        enter_module(c, i, item->module);
    if (item->kind == TAPE_LEAVE)
        leave_module(c, i, item->module);
    tape_add(c->to, item);
    if (tape_item_is_taken(item) && c->casts[i].is_cast)
        chain_add(c, i);
}

uint64_t tape_uncache_casts(struct tape *to, const struct tape *from)
{
    struct casting c = {.to = to, .from = from, .pairs = tape_pairs(from)};

    tape_init_like(to, from);
    c.phases = xcalloc(from->count + 1, sizeof *c.phases);
    c.casts = xcalloc(from->count + 1, sizeof *c.casts);
    survey_casts(&c);
    casts_find(&c);
    for (uint32_t i = 0; i < from->count; i++)
        item_copy(&c, i);
    map_fini(&c.of_module);
    map_fini(&c.parameters);
    free(c.extra);
    free(c.casts);
    free(c.phases);
    free(c.pairs);
    return c.saved_bytes;
}
