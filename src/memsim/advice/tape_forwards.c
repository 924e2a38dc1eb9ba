/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/advice/tape_checkpoint.h"

#include <stdlib.h>

#include "common/base/xmalloc.h"

uint32_t checkpoint_member(const struct checkpoint *c, uint32_t module)
{
    if (module >= c->lists->modules || !c->lists->member_of[module] ||
        !c->chosen[c->lists->list_of[module] - 1])
        return 0;
    return c->lists->member_of[module];
}

static uint64_t parameter_key(uint32_t module, uint64_t bytes)
{
    return bytes << 24 ^ module;
}

/* Pairs each free with its alloc, notes the phases and the parameters. */
static void survey_forwards(struct checkpoint *c)
{
    uint32_t *pairs = tape_pairs(c->from);
    uint8_t phase = TRACE_PHASE_INIT;

    for (uint32_t i = 0; i < c->from->count; i++) {
        const struct tape_item *item = &c->from->items[i];
        bool taken = tape_item_is_taken(item);

        c->blocks[i] = (struct block){.freed = taken ? pairs[i] : NONE,
                                      .forward = NONE};
        c->taken_at[i] = taken ? NONE : pairs[i];
        if (item->kind == TAPE_PHASE)
            phase = item->phase;
        c->phases[i] = phase;
        if (taken && item->holds & TAPE_PARAMETER)
            map_put(&c->parameters,
                    parameter_key(item->module, item->op.bytes), c);
    }
    free(pairs);
}

/* A copy of a weight in half the bytes, as autocast makes and caches it
 * (aten/src/ATen/autocast_mode.cpp, cached_cast). */
static bool is_cast(const struct checkpoint *c, const struct tape_item *item)
{
    return map_get(&c->parameters,
                   parameter_key(item->module, 2 * item->op.bytes)) != NULL;
}

/* A result that backward frees only when it has come to the member was kept by
 * the member itself (a ReLU's, say). Where it is no argument of the next one
 * (which checkpointing would keep), the caller lets go of it. */
static bool is_passed(const struct checkpoint *c, uint32_t i,
                      const struct forward *f)
{
    uint32_t freed = c->blocks[i].freed;
    uint32_t taker = checkpoint_member(c, c->from->items[i].input_of);

    return freed != NONE && f->backward != NONE && freed > f->backward &&
           (!taker || taker == f->member) && !f->is_last;
}

enum fate checkpoint_fate(const struct checkpoint *c, uint32_t i,
                          const struct forward *f)
{
    const struct tape_item *item = &c->from->items[i];
    uint32_t freed = c->blocks[i].freed;

    if (item->holds || !f->leave) /* an exception was raised in it */
        return FATE_KEPT;
    if (freed != NONE && freed < f->leave)
        return FATE_BRIEF;
    if (item->output_of == f->member)
        return is_passed(c, i, f) ? FATE_PASSED : FATE_RESULT;
    if (freed == NONE)
        return FATE_KEPT;
    if (c->phases[freed] == TRACE_PHASE_BACKWARD ||
        c->phases[freed] == TRACE_PHASE_RECOMPUTE)
        return is_cast(c, item) ? FATE_CAST : FATE_NEEDED;
    return c->phases[freed] == TRACE_PHASE_FORWARD ? FATE_CACHED : FATE_KEPT;
}

/* What autocast held tells when it ended. */
static void autocast_find(struct checkpoint *c, uint32_t number)
{
    const struct forward *f = &c->forwards[number];

    for (uint32_t i = f->enter; i < f->leave; i++)
        if (c->blocks[i].forward == number &&
            checkpoint_fate(c, i, f) == FATE_CACHED &&
            is_cast(c, &c->from->items[i]))
            c->autocast_end[c->blocks[i].freed] = true;
}

static uint32_t count_needed(const struct checkpoint *c, uint32_t number)
{
    const struct forward *f = &c->forwards[number];
    uint32_t count = 0;

    for (uint32_t i = f->enter; i < f->leave; i++)
        count += c->blocks[i].forward == number &&
                 fate_is_needed(checkpoint_fate(c, i, f));
    return count;
}

static void forward_close(struct checkpoint *c, uint32_t number, uint32_t leave)
{
    struct forward *f = &c->forwards[number];

    f->leave = leave;
    f->before = c->pending[f->member];
    c->pending[f->member] = number;
    autocast_find(c, number);
    f->needed = count_needed(c, number);
}

/* Backward takes a block for MEMBER. */
static void backward_note(struct checkpoint *c, uint32_t member, uint32_t at)
{
    uint32_t top = c->pending[member];

    if (top != NONE && c->forwards[top].backward == NONE)
        c->forwards[top].backward = at;
}

/* ... and is done with one that item TAKEN took. */
static void backward_free(struct checkpoint *c, uint32_t taken)
{
    uint32_t number = c->blocks[taken].forward;

    if (number == NONE)
        return;
    struct forward *f = &c->forwards[number];
    if (fate_is_needed(checkpoint_fate(c, taken, f)) && f->needed &&
        !--f->needed && c->pending[f->member] == number)
        c->pending[f->member] = f->before;
}

static void forward_open(struct checkpoint *c, uint32_t member, uint32_t enter)
{
    xgrow(&c->forwards, c->forward_count, &c->forward_capacity,
          sizeof *c->forwards);
    c->open[member] = (uint32_t)c->forward_count++;
    c->forwards[c->open[member]] = (struct forward){.member = member,
                                                    .enter = enter,
                                                    .before = NONE,
                                                    .backward = NONE,
                                                    .arguments = NONE};
}

/* Item I is within MEMBER, or calls or leaves it. */
static void member_note(struct checkpoint *c, uint32_t member, uint32_t i)
{
    const struct tape_item *item = &c->from->items[i];
    bool itself = item->module == member;

    if (itself && item->kind == TAPE_ENTER &&
        c->phases[i] == TRACE_PHASE_FORWARD)
        forward_open(c, member, i);
    if (tape_item_is_taken(item) && item->phase == TRACE_PHASE_BACKWARD)
        backward_note(c, member, i);
    if (c->open[member] == NONE)
        return;
    if (tape_item_is_taken(item) && item->phase == TRACE_PHASE_FORWARD)
        c->blocks[i].forward = c->open[member];
    if (itself && item->kind == TAPE_LEAVE) {
        forward_close(c, c->open[member], i);
        c->open[member] = NONE;
    }
}

/* Finds the members' forwards, and where backward comes to each. */
static void forwards_find(struct checkpoint *c)
{
    for (uint32_t i = 0; i < c->from->count; i++) {
        const struct tape_item *item = &c->from->items[i];
        uint32_t member = checkpoint_member(c, item->module);

        if (item->kind == TAPE_CALL && c->taken_at[i] != NONE &&
            item->op.kind == REPLAY_FREE)
            backward_free(c, c->taken_at[i]);
        if (item->kind == TAPE_PHASE && item->phase == TRACE_PHASE_BACKWARD &&
            c->forward_count)
            c->forwards[c->forward_count - 1].is_last = true;
        if (member)
            member_note(c, member, i);
    }
}

/* Back to the start, with all known of the forwards. */
static void forwards_rewind(struct checkpoint *c)
{
    for (uint32_t i = 0; i < c->forward_count; i++)
        c->forwards[i].needed = count_needed(c, i);
    for (size_t i = 0; i < c->lists->modules; i++)
        c->open[i] = c->pending[i] = NONE;
}

void checkpoint_read(struct checkpoint *c)
{
    survey_forwards(c);
    forwards_find(c);
    forwards_rewind(c);
}
