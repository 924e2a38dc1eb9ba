/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/advice/tape_state.h"

#include <stdlib.h>

#include "common/base/xmalloc.h"

#define FIRST_NAME (UINT64_C(1) << 61) /* of blocks that were not recorded */
#define INT8_LEAST 4096 /* elements: smaller states stay as they are */
#define INT8_BLOCK 256  /* elements that share a scale, which has 4 bytes */
#define STEP_BYTES 4    /* a fused optimizer counts steps on the GPU */

struct changing {
    struct tape *to;
    const struct tape *from;
    const struct state_change *change;
    struct state_effect effect;
    bool *dropped;     /* by item: its block is not taken */
    struct map taken;  /* 1 + the item that took a block, by address */
    struct map scales; /* names of 8-bit states' scales, by address */
    uint64_t next_name;
};

/* --- temporaries of steps ------------------------------------------------- */

/* What a step makes and frees, each parameter's or, with foreach, all at once:
 * a fused kernel has it in registers. */
static void temporaries_find(struct changing *c)
{
    for (size_t i = 0; i < c->from->count; i++) {
        const struct tape_item *item = &c->from->items[i];
        bool ends =
            item->kind == TAPE_PHASE && item->phase != TRACE_PHASE_OPTIMIZER;

        if (ends)
            map_fini(&c->taken);
        if (tape_item_is_taken(item) && item->holds == TAPE_STEP &&
            item->phase == TRACE_PHASE_OPTIMIZER)
            map_put(&c->taken, item->op.address, (void *)(uintptr_t)(i + 1));
        if (item->kind != TAPE_CALL || item->op.kind != REPLAY_FREE ||
            item->op.deferred)
            continue;
        size_t place = (uintptr_t)map_take(&c->taken, item->op.address);
        if (!place)
            continue;
        c->dropped[place - 1] = c->dropped[i] = true;
        c->effect.step_bytes += c->from->items[place - 1].op.bytes;
    }
    map_fini(&c->taken);
}

/* --- states --------------------------------------------------------------- */

/* A block of BYTES beside that of ITEM; returns its name. */
static uint64_t block_add(struct changing *c, const struct tape_item *item,
                          uint64_t bytes)
{
    struct tape_item added = *item;

    added.op.bytes = bytes;
    added.op.address = FIRST_NAME + c->next_name++;
    added.holds = TAPE_OWNED;
    tape_add(c->to, &added);
    return added.op.address;
}

static void state_copy(struct changing *c, struct tape_item item)
{
    const struct state_change *change = c->change;
    uint64_t before = item.op.bytes, elements = before / 4, scales = 0;

    if (change->shards > 1) {
        elements = (elements + change->shards - 1) / change->shards;
        item.op.bytes = 4 * elements;
    }
    if (change->int8 && before / 4 >= INT8_LEAST) {
        item.op.bytes = elements;
        scales = 4 * ((elements + INT8_BLOCK - 1) / INT8_BLOCK);
    } else if (change->bf16) {
        item.op.bytes -= item.op.bytes / 2;
    }
    c->effect.state_bytes += before - item.op.bytes - scales;
    tape_add(c->to, &item);
    if (scales)
        map_put(&c->scales, item.op.address,
                (void *)(uintptr_t)block_add(c, &item, scales));
}

/* The scales of a state go with it. */
static void free_copy(struct changing *c, const struct tape_item *item)
{
    uint64_t name = (uintptr_t)map_take(&c->scales, item->op.address);
    struct tape_item scales = *item;

    tape_add(c->to, item);
    if (!name)
        return;
    scales.op.address = name;
    scales.op.deferred = false;
    tape_add(c->to, &scales);
}

static void item_copy(struct changing *c, const struct tape_item *item)
{
    bool states = c->change->bf16 || c->change->int8 || c->change->shards > 1;

    if (tape_item_is_taken(item)) {
        if (c->change->fused && c->effect.step_bytes &&
            item->holds & TAPE_EXP_AVG)
            block_add(c, item, STEP_BYTES);
        if (states && item->holds & TAPE_FP32_STATE)
            state_copy(c, *item);
        else
            tape_add(c->to, item);
    } else if (item->kind == TAPE_CALL && item->op.kind == REPLAY_FREE) {
        free_copy(c, item);
    } else {
        tape_add(c->to, item);
    }
}

struct state_effect tape_change_states(struct tape *to, const struct tape *from,
                                       const struct state_change *change)
{
    struct changing c = {.to = to, .from = from, .change = change};

    tape_init_like(to, from);
    c.dropped = xcalloc(from->count + 1, sizeof *c.dropped);
    if (change->fused || change->int8)
        temporaries_find(&c);
    for (size_t i = 0; i < from->count; i++)
        if (!c.dropped[i])
            item_copy(&c, &from->items[i]);
    map_fini(&c.scales);
    free(c.dropped);
    return c.effect;
}
