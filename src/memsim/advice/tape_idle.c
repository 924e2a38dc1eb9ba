/* SPDX-License-Identifier: Apache-2.0
 * Without gradients a module's result lives until the next one has read it, and
 * what else a module took until its end. */
#include "memsim/advice/tape_idle.h"

#include <stdlib.h>

#include "common/base/xmalloc.h"

/* A module at work. */
struct level {
    uint32_t *blocks; /* items that took them, and */
    uint32_t *after;  /* how many modules below had ended then */
    size_t count, capacity, after_capacity;
    uint32_t ended; /* modules below it */
};

struct idling {
    struct tape *to;
    const struct tape *from;
    uint32_t *pairs;
    bool *gone; /* by item that takes: it was given back early */
    struct level *levels;
    size_t depth, capacity;
    uint64_t saved_bytes;
};

static void level_push(struct idling *c)
{
    xgrow(&c->levels, c->depth, &c->capacity, sizeof *c->levels);
    c->levels[c->depth++] = (struct level){0};
}

static void level_add(struct level *l, uint32_t i)
{
    size_t count = l->count;

    xgrow(&l->blocks, count, &l->capacity, sizeof *l->blocks);
    xgrow(&l->after, count, &l->after_capacity, sizeof *l->after);
    l->blocks[count] = i;
    l->after[count] = l->ended;
    l->count++;
}

static void level_fini(struct level *l)
{
    free(l->blocks);
    free(l->after);
}

/* Is the block that item I took still there at item AT? */
static bool item_lives(const struct idling *c, uint32_t i, uint32_t at)
{
    return !c->gone[i] && (c->pairs[i] == TAPE_NONE || c->pairs[i] > at);
}

static void give_back(struct idling *c, uint32_t i, uint32_t at)
{
    const struct tape_item *taken = &c->from->items[i];

    tape_add_call(c->to, taken, &c->from->items[at], REPLAY_FREE,
                  taken->op.address);
    c->gone[i] = true;
    c->saved_bytes += taken->op.bytes;
}

/* Gives back what of L was taken before the last module but one below it
 * ended: the last one has read what came after. */
static void level_trim(struct idling *c, struct level *l, uint32_t at)
{
    size_t kept = 0;

    for (size_t k = 0; k < l->count; k++) {
        uint32_t i = l->blocks[k];

        if (!item_lives(c, i, at))
            continue;
        if (l->after[k] + 1 < l->ended) {
            give_back(c, i, at);
            continue;
        }
        l->blocks[kept] = i;
        l->after[kept++] = l->after[k];
    }
    l->count = kept;
}

/* A module ends at AT: what it took last is its result, for the one above. */
static void level_pop(struct idling *c, uint32_t at)
{
    struct level *l = &c->levels[--c->depth];
    struct level *above = c->depth ? &c->levels[c->depth - 1] : NULL;
    uint32_t result = TAPE_NONE;

    for (size_t k = l->count; k-- > 0;) {
        uint32_t i = l->blocks[k];

        if (!item_lives(c, i, at))
            continue;
        if (result == TAPE_NONE)
            result = i;
        else if (above)
            give_back(c, i, at);
    }
    level_fini(l);
    if (!above)
        return;
    above->ended++;
    if (result != TAPE_NONE)
        level_add(above, result);
    level_trim(c, above, at);
}

/* Does backward follow the forward that item I begins, before another one? */
static bool is_used(const struct tape *tape, uint32_t i)
{
    int depth = 1;

    while (++i < tape->count) {
        const struct tape_item *item = &tape->items[i];

        if (item->kind == TAPE_ENTER && !depth++)
            return false;
        if (item->kind == TAPE_LEAVE)
            depth--;
        if (item->kind == TAPE_PHASE && item->phase == TRACE_PHASE_BACKWARD)
            return true;
    }
    return false;
}

static void item_copy(struct idling *c, uint32_t i)
{
    const struct tape_item *item = &c->from->items[i];
    uint32_t pair = c->pairs[i];

    if (tape_item_is_taken(item) || item->kind != TAPE_CALL ||
        pair == TAPE_NONE || !c->gone[pair])
        tape_add(c->to, item);
    if (item->kind == TAPE_ENTER &&
        (c->depth || (item->idle && !is_used(c->from, i))))
        level_push(c);
    else if (item->kind == TAPE_LEAVE && c->depth)
        level_pop(c, i);
    else if (tape_item_is_taken(item) && c->depth &&
             !(item->holds & TAPE_OWNED) && !(item->maker & TAPE_CAST))
        level_add(&c->levels[c->depth - 1], i);
}

uint64_t tape_free_idle(struct tape *to, const struct tape *from)
{
    struct idling c = {.to = to, .from = from, .pairs = tape_pairs(from)};

    tape_init_like(to, from);
    c.gone = xcalloc(from->count + 1, sizeof *c.gone);
    for (uint32_t i = 0; i < from->count; i++)
        item_copy(&c, i);
    while (c.depth)
        level_fini(&c.levels[--c.depth]);
    free(c.levels);
    free(c.gone);
    free(c.pairs);
    return c.saved_bytes;
}
