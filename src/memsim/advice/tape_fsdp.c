/* SPDX-License-Identifier: Apache-2.0
 * The order of calls is that of torch/distributed/fsdp/_fully_shard/
 * _fsdp_param_group.py and _fsdp_collectives.py (PyTorch 2.11):
 *
 *   forward of u    +flat(u) -flat(before) +full(u)  ...  -full(u)
 *   backward of u   +full(u) -flat(u) +flat(next)  ...  -full(u)
 *                   -scattered(before) +scattered(u) -gradients +part(u)
 *
 * flat is what the all-gather writes, full the parameters that are copied out
 * of it, scattered what the reduce-scatter reads, part what it writes. The
 * model's own parameters (unit 0) stay from its forward to its backward. */
#include "memsim/advice/tape_fsdp.h"

#include <stdlib.h>

#include "common/base/xmalloc.h"

#define FIRST_NAME    (UINT64_C(7) << 61) /* of blocks that were not recorded */
#define GATHER_STREAM  UINT64_C(0xf5d901)
#define SCATTER_STREAM UINT64_C(0xf5d902)

/* What is gathered at once: a member of a list, or the rest (0). */
struct unit {
    uint64_t bytes;     /* of its parameters */
    uint32_t parameter; /* an item that takes one */
    uint32_t before;    /* 1 + the unit whose forward was before it */
    uint64_t flat, full; /* names; 0: there is none */
    uint64_t gradient_bytes; /* of this backward */
    uint32_t gradients; /* 1 + an item; more: struct block's next */
};

struct block {
    uint32_t next;
    uint32_t part; /* of a gradient: 1 + the number of its part */
    bool gone; /* it is not taken, or freed before it was scattered */
};

/* What a rank keeps of a unit's gradients. */
struct part {
    uint64_t name;
    size_t left; /* gradients that were not freed */
};

struct sharding {
    struct tape *to;
    const struct tape *from;
    const struct module_lists *lists;
    uint32_t *pairs;
    struct block *blocks;
    struct unit *units;
    struct part *parts;
    size_t part_count, part_capacity;
    unsigned ranks;
    uint8_t phase;
    uint32_t last;    /* 1 + the unit of the last forward */
    uint32_t current; /* 1 + the unit whose backward is on */
    uint64_t flat, scattered; /* names: kept until the next one; 0: none */
    uint32_t flat_of, scattered_of; /* items that such blocks are like */
    uint64_t next_name;
    uint32_t at; /* the item */
};

static uint32_t unit_of(const struct sharding *s, uint32_t module)
{
    return module < s->lists->modules ? s->lists->member_of[module] : 0;
}

static uint64_t part_of(const struct sharding *s, uint64_t bytes)
{
    return (bytes + s->ranks - 1) / s->ranks;
}

/* --- blocks that were not recorded ---------------------------------------- */

static uint64_t block_take(struct sharding *s, uint32_t like, uint64_t bytes,
                           uint64_t stream)
{
    struct tape_item item = s->from->items[like];
    uint64_t name = FIRST_NAME + s->next_name++;

    item.op.bytes = bytes;
    item.holds = TAPE_OWNED;
    if (stream)
        item.op.stream = stream;
    tape_add_call(s->to, &item, &s->from->items[s->at], REPLAY_ALLOC, name);
    return name;
}

static void block_give(struct sharding *s, uint32_t like, uint64_t *name)
{
    if (*name)
        tape_add_call(s->to, &s->from->items[like], &s->from->items[s->at],
                      REPLAY_FREE, *name);
    *name = 0;
}

/* --- units ---------------------------------------------------------------- */

static void gather_unit(struct sharding *s, struct unit *u)
{
    if (!u->flat && !u->full && u->bytes)
        u->flat = block_take(s, u->parameter, u->bytes, GATHER_STREAM);
}

/* Copies out what was gathered. */
static void wait_for_unit(struct sharding *s, struct unit *u, bool forward)
{
    if (!u->flat)
        return;
    block_give(s, s->flat_of, &s->flat);
    u->full = block_take(s, u->parameter, u->bytes, 0);
    if (!forward) {
        block_give(s, u->parameter, &u->flat);
        return;
    }
    s->flat = u->flat;
    s->flat_of = u->parameter;
    u->flat = 0;
}

static void forward_begin(struct sharding *s, uint32_t unit)
{
    struct unit *u = &s->units[unit];

    gather_unit(s, u);
    wait_for_unit(s, u, true);
}

static void forward_end(struct sharding *s, uint32_t unit)
{
    struct unit *u = &s->units[unit];

    block_give(s, u->parameter, &u->full);
    u->before = s->last;
    s->last = unit + 1;
}

/* The gradients are scattered. */
static void scatter_unit(struct sharding *s, struct unit *u)
{
    uint32_t like = u->gradients - 1;

    block_give(s, s->scattered_of, &s->scattered);
    s->scattered = block_take(s, like, u->gradient_bytes, 0);
    s->scattered_of = like;
    xgrow(&s->parts, s->part_count, &s->part_capacity, sizeof *s->parts);
    struct part *part = &s->parts[s->part_count++];
    *part = (struct part){0};
    for (uint32_t i = u->gradients; i; i = s->blocks[i - 1].next) {
        uint64_t name = s->from->items[i - 1].op.address;

        if (s->blocks[i - 1].gone)
            continue;
        block_give(s, i - 1, &name);
        s->blocks[i - 1].part = (uint32_t)s->part_count;
        part->left++;
    }
    if (part->left)
        part->name =
            block_take(s, like, part_of(s, u->gradient_bytes), SCATTER_STREAM);
    u->gradients = 0;
    u->gradient_bytes = 0;
}

static void backward_end(struct sharding *s)
{
    struct unit *u = s->current ? &s->units[s->current - 1] : NULL;

    s->current = 0;
    if (!u)
        return;
    block_give(s, u->parameter, &u->full);
    if (u->gradients)
        scatter_unit(s, u);
}

static void backward_begin(struct sharding *s, uint32_t unit)
{
    struct unit *u = &s->units[unit];

    if (s->current == unit + 1)
        return;
    backward_end(s);
    s->current = unit + 1;
    gather_unit(s, u);
    wait_for_unit(s, u, false);
    if (u->before)
        gather_unit(s, &s->units[u->before - 1]);
}

/* The model's backward begins, and prefetches the last member. */
static void backward_start(struct sharding *s)
{
    if (s->last)
        gather_unit(s, &s->units[s->last - 1]);
}

static void backward_finish(struct sharding *s)
{
    backward_end(s);
    s->current = 1;
    backward_end(s);
    block_give(s, s->scattered_of, &s->scattered);
    for (size_t i = 0; i < s->lists->modules; i++)
        block_give(s, s->units[i].parameter, &s->units[i].flat);
}

/* --- the recorded calls --------------------------------------------------- */

static void copy_taken(struct sharding *s)
{
    struct tape_item item = s->from->items[s->at];
    bool backward = s->phase == TRACE_PHASE_BACKWARD;
    bool temporary = s->phase == TRACE_PHASE_OPTIMIZER && !item.holds;
    uint32_t unit = unit_of(s, item.module);

    if (item.maker & TAPE_BUCKET && !(item.holds & TAPE_GRADIENT)) {
        s->blocks[s->at].gone = true;
        return;
    }
    if (unit && (backward || s->phase == TRACE_PHASE_RECOMPUTE))
        backward_begin(s, unit);
    if (item.holds & TAPE_GRADIENT && backward) {
        struct unit *u = &s->units[unit_of(s, item.owner)];

        s->blocks[s->at].next = u->gradients;
        u->gradients = s->at + 1;
        u->gradient_bytes += item.op.bytes;
    } else if (temporary || item.holds & (TAPE_PARAMETER | TAPE_STATE |
                                          TAPE_GRADIENT)) {
        item.op.bytes = part_of(s, item.op.bytes);
    }
    tape_add(s->to, &item);
}

static bool is_gradient(const struct sharding *s, uint32_t taken)
{
    return s->from->items[taken].holds & TAPE_GRADIENT;
}

/* A block is freed, or its deferred free is DONE. */
static void copy_freed(struct sharding *s, bool done)
{
    uint32_t taken = s->pairs[s->at];
    struct block *b = &s->blocks[taken];

    if (b->part && !done) {
        struct part *part = &s->parts[b->part - 1];

        if (!--part->left)
            block_give(s, taken, &part->name);
    } else if (!b->part && !(b->gone && !is_gradient(s, taken))) {
        tape_add(s->to, &s->from->items[s->at]);
        b->gone = is_gradient(s, taken);
    }
}

static void phase_note(struct sharding *s, uint8_t phase)
{
    bool was_backward = s->phase == TRACE_PHASE_BACKWARD ||
                        s->phase == TRACE_PHASE_RECOMPUTE;
    bool backward =
        phase == TRACE_PHASE_BACKWARD || phase == TRACE_PHASE_RECOMPUTE;

    s->phase = phase;
    if (phase == TRACE_PHASE_FORWARD)
        s->last = 0;
    if (backward && !was_backward)
        backward_start(s);
    if (was_backward && !backward)
        backward_finish(s);
}

static void mark_note(struct sharding *s, const struct tape_item *item)
{
    uint32_t unit = unit_of(s, item->module);
    bool itself = unit && unit == item->module;

    if (item->kind == TAPE_PHASE)
        phase_note(s, item->phase);
    if (s->phase != TRACE_PHASE_FORWARD)
        return;
    if (item->kind == TAPE_ENTER) {
        forward_begin(s, 0);
        if (itself)
            forward_begin(s, unit);
    }
    if (item->kind == TAPE_LEAVE && itself)
        forward_end(s, unit);
}

static void item_copy(struct sharding *s)
{
    const struct tape_item *item = &s->from->items[s->at];

    if (tape_item_is_taken(item)) {
        copy_taken(s);
    } else if (item->kind == TAPE_CALL && s->pairs[s->at] != TAPE_NONE) {
        copy_freed(s, item->op.kind == REPLAY_FREE_DONE);
    } else {
        mark_note(s, item);
        tape_add(s->to, item);
    }
}

/* Returns the bytes of all parameters; 0: some are sharded already. */
static uint64_t survey_units(struct sharding *s)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < s->from->count; i++) {
        const struct tape_item *item = &s->from->items[i];
        struct unit *u = &s->units[unit_of(s, item->module)];

        if (!tape_item_is_taken(item))
            continue;
        if (item->maker & TAPE_SHARDED)
            return 0;
        if (!(item->holds & TAPE_PARAMETER))
            continue;
        u->bytes += item->op.bytes;
        u->parameter = i;
        bytes += item->op.bytes;
    }
    return bytes;
}

bool tape_is_sharded(const struct tape *tape)
{
    for (size_t i = 0; i < tape->count; i++)
        if (tape_item_is_taken(&tape->items[i]) &&
            tape->items[i].maker & TAPE_SHARDED)
            return true;
    return false;
}

uint64_t tape_shard_all(struct tape *to, const struct tape *from,
                        const struct module_lists *lists, unsigned ranks)
{
    struct sharding s = {.to = to,
                         .from = from,
                         .lists = lists,
                         .ranks = ranks,
                         .pairs = tape_pairs(from)};

    tape_init_like(to, from);
    s.blocks = xcalloc(from->count + 1, sizeof *s.blocks);
    s.units = xcalloc(lists->modules + 1, sizeof *s.units);
    uint64_t bytes = survey_units(&s), saved = bytes - bytes / ranks;
    for (; s.at < from->count; s.at++)
        if (bytes)
            item_copy(&s);
        else
            tape_add(to, &from->items[s.at]);
    free(s.parts);
    free(s.units);
    free(s.blocks);
    free(s.pairs);
    return saved;
}
