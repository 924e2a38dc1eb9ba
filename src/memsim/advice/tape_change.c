/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/advice/tape_change.h"

#include <stdlib.h>

#include "common/base/xmalloc.h"
#include "memsim/advice/tape_checkpoint.h"

#define FIRST_NAME (UINT64_C(1) << 62) /* of blocks that were not recorded */

/* --- activation checkpointing --------------------------------------------- */

/* Adds a call for the block that item TAKEN took, at the time of item AT and
 * under the name ADDRESS. */
static void call_add(struct checkpoint *c, uint32_t at, uint32_t taken,
                     enum replay_kind kind, uint64_t address)
{
    tape_add_call(c->to, &c->from->items[taken], &c->from->items[at], kind,
                  address);
}

static uint64_t block_name(const struct checkpoint *c, uint32_t taken)
{
    return c->blocks[taken].name ? c->blocks[taken].name
                                 : c->from->items[taken].op.address;
}

static void give_back(struct checkpoint *c, uint32_t at, uint32_t taken)
{
    call_add(c, at, taken, REPLAY_FREE, block_name(c, taken));
    c->blocks[taken].gone = true;
}

static void hold_item(struct held *h, uint32_t item)
{
    xgrow(&h->items, h->count, &h->capacity, sizeof *h->items);
    h->items[h->count++] = item;
}

static void held_end(struct checkpoint *c, struct held *h, uint32_t at)
{
    for (size_t i = 0; i < h->count; i++)
        give_back(c, at, h->items[i]);
    h->count = 0;
}

/* The member is left. */
static void forward_end(struct checkpoint *c, uint32_t number)
{
    struct forward *f = &c->forwards[number];

    for (uint32_t i = f->enter; i < f->leave; i++) {
        if (c->blocks[i].forward != number)
            continue;
        enum fate fate = checkpoint_fate(c, i, f);
        if (fate == FATE_NEEDED)
            give_back(c, f->leave, i);
        else if (fate_is_needed(fate))
            hold_item(fate == FATE_CAST ? &c->casts : &c->passed, i);
    }
    f->before = c->pending[f->member];
    c->pending[f->member] = number;
}

/* torch/utils/checkpoint.py stops a recomputation when all that backward needs
 * is there (early_stop). */
static uint32_t last_needed(const struct checkpoint *c, uint32_t number)
{
    const struct forward *f = &c->forwards[number];
    uint32_t last = f->enter;

    for (uint32_t i = f->enter; i < f->leave; i++)
        if (c->blocks[i].forward == number && c->blocks[i].gone)
            last = i;
    return last;
}

/* What is made again and not needed. */
struct brief {
    uint32_t taken; /* NONE: it is freed */
    uint64_t name;
};

static void brief_end(struct checkpoint *c, uint32_t at, struct brief *brief)
{
    if (brief->taken != NONE)
        call_add(c, at, brief->taken, REPLAY_FREE, brief->name);
    brief->taken = NONE;
}

/* The calls of the forward again, before item AT. */
static void recompute_module(struct checkpoint *c, uint32_t at, uint32_t number)
{
    struct forward *f = &c->forwards[number];
    uint32_t last = last_needed(c, number);
    struct brief *brief = NULL;
    size_t count = 0, capacity = 0;

    f->again = true;
    for (uint32_t i = f->enter; i <= last; i++) {
        struct block *b = &c->blocks[i];
        uint32_t taken = c->taken_at[i];

        if (b->forward == number && checkpoint_fate(c, i, f) != FATE_KEPT) {
            call_add(c, at, i, REPLAY_ALLOC, c->next_name);
            xgrow(&brief, count, &capacity, sizeof *brief);
            if (b->gone)
                b->name = c->next_name;
            else
                brief[count++] = (struct brief){i, c->next_name};
            b->gone = false;
            c->next_name++;
        }
        for (size_t k = 0; taken != NONE && k < count; k++)
            if (brief[k].taken == taken &&
                c->from->items[i].op.kind == REPLAY_FREE)
                brief_end(c, at, &brief[k]);
    }
    for (size_t k = 0; k < count; k++)
        brief_end(c, at, &brief[k]);
    free(brief);
}

/* Backward comes to MEMBER's last forward that is pending. */
static void backward_begin(struct checkpoint *c, uint32_t at, uint32_t member)
{
    uint32_t active = c->active[member], next = c->pending[member];

    if (next == NONE || (active != NONE && c->forwards[active].needed))
        return;
    c->pending[member] = c->forwards[next].before;
    c->active[member] = next;
    if (!c->forwards[next].again && c->forwards[next].needed)
        recompute_module(c, at, next);
}

/* The forward whose argument the block is that item TAKEN took, and whose
 * backward is not done; NONE: there is none. */
static uint32_t taker_find(const struct checkpoint *c, uint32_t taken)
{
    uint32_t member = checkpoint_member(c, c->from->items[taken].input_of);

    if (!member)
        return NONE;
    const uint32_t candidates[] = {c->open[member], c->pending[member],
                                   c->active[member]};
    for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++) {
        uint32_t number = candidates[i];

        if (number != NONE && c->forwards[number].needed &&
            c->forwards[number].enter > taken)
            return number;
    }
    return NONE;
}

/* Checkpointing holds the arguments of a member until backward is done with it:
 * true where this free has to wait for that. */
static bool argument_hold(struct checkpoint *c, uint32_t taken)
{
    uint32_t number = taker_find(c, taken);

    if (number == NONE)
        return false;
    c->blocks[taken].next = c->forwards[number].arguments;
    c->forwards[number].arguments = taken;
    return true;
}

/* Backward has freed a block of F. */
static void forward_freed(struct checkpoint *c, struct forward *f, uint32_t at)
{
    if (--f->needed)
        return;
    for (uint32_t i = f->arguments; i != NONE; i = c->blocks[i].next)
        call_add(c, at, i, REPLAY_FREE, block_name(c, i));
    f->arguments = NONE;
}

/* The free of the block that item TAKEN took, or its completion. */
static void copy_free(struct checkpoint *c, uint32_t i, uint32_t taken)
{
    struct tape_item item = c->from->items[i];
    uint32_t number = c->blocks[taken].forward;
    struct forward *f = number == NONE ? NULL : &c->forwards[number];
    bool is_free = item.op.kind == REPLAY_FREE;
    bool needed = f && fate_is_needed(checkpoint_fate(c, taken, f));

    if (needed && !f->again && i > f->leave)
        recompute_module(c, i, number);
    if (is_free && argument_hold(c, taken))
        return;
    item.op.address = block_name(c, taken);
    tape_add(c->to, &item);
    if (is_free && needed)
        forward_freed(c, f, i);
}

/* An argument may be held when its recorded address is another block's. */
static void item_copy(struct checkpoint *c, uint32_t i)
{
    const struct tape_item *item = &c->from->items[i];

    if (c->taken_at[i] != NONE) {
        copy_free(c, i, c->taken_at[i]);
    } else if (tape_item_is_taken(item) &&
               checkpoint_member(c, item->input_of)) {
        c->blocks[i].name = c->next_name++;
        call_add(c, i, i, REPLAY_ALLOC, c->blocks[i].name);
    } else {
        tape_add(c->to, item);
    }
}

static void item_take(struct checkpoint *c, uint32_t i)
{
    const struct tape_item *item = &c->from->items[i];
    uint32_t member = checkpoint_member(c, item->module);
    bool backward =
        item->kind == TAPE_PHASE && item->phase == TRACE_PHASE_BACKWARD;

    if (c->autocast_end[i] || backward)
        held_end(c, &c->casts, i);
    if (backward ||
        (member && item->kind == TAPE_ENTER && item->module == member))
        held_end(c, &c->passed, i);
    if (member && tape_item_is_taken(item) &&
        item->phase == TRACE_PHASE_BACKWARD)
        backward_begin(c, i, member);
    item_copy(c, i);
    if (member && item->kind == TAPE_LEAVE && item->module == member &&
        c->open[member] != NONE)
        forward_end(c, c->open[member]);
}

/* The forwards in the order of their ends, as forwards_find saw them. */
static void take_all(struct checkpoint *c)
{
    size_t next = 0;

    for (uint32_t i = 0; i < c->from->count; i++) {
        const struct tape_item *item = &c->from->items[i];
        uint32_t member = checkpoint_member(c, item->module);

        if (member && next < c->forward_count && c->forwards[next].enter == i)
            c->open[member] = (uint32_t)next++;
        item_take(c, i);
        if (member && item->kind == TAPE_LEAVE && item->module == member)
            c->open[member] = NONE;
    }
}

static void checkpoint_init(struct checkpoint *c)
{
    size_t items = c->from->count + 1, modules = c->lists->modules + 1;

    c->taken_at = xcalloc(items, sizeof *c->taken_at);
    c->blocks = xcalloc(items, sizeof *c->blocks);
    c->phases = xcalloc(items, sizeof *c->phases);
    c->autocast_end = xcalloc(items, sizeof *c->autocast_end);
    c->open = xcalloc(modules, sizeof *c->open);
    c->pending = xcalloc(modules, sizeof *c->pending);
    c->active = xcalloc(modules, sizeof *c->active);
    c->next_name = FIRST_NAME;
    for (size_t i = 0; i < modules; i++)
        c->open[i] = c->pending[i] = c->active[i] = NONE;
}

static void checkpoint_fini(struct checkpoint *c)
{
    free(c->taken_at);
    free(c->blocks);
    free(c->phases);
    free(c->autocast_end);
    free(c->open);
    free(c->pending);
    free(c->active);
    free(c->forwards);
    free(c->casts.items);
    free(c->passed.items);
    map_fini(&c->parameters);
}

size_t tape_checkpoint(struct tape *to, const struct tape *from,
                       const struct module_lists *lists, const bool *chosen)
{
    struct checkpoint c = {
        .from = from, .to = to, .lists = lists, .chosen = chosen};
    size_t concerned = 0;

    tape_init_like(to, from);
    checkpoint_init(&c);
    checkpoint_read(&c);
    for (size_t i = 0; i < c.forward_count; i++)
        concerned += c.forwards[i].needed > 0;
    take_all(&c);
    checkpoint_fini(&c);
    return concerned;
}

bool tape_is_checkpointed(const struct tape *tape,
                          const struct module_lists *lists, size_t list)
{
    for (size_t i = 0; i < tape->count; i++) {
        const struct tape_item *item = &tape->items[i];

        if (tape_item_is_taken(item) && item->phase == TRACE_PHASE_RECOMPUTE &&
            item->module < lists->modules && lists->member_of[item->module] &&
            lists->list_of[item->module] == list + 1)
            return true;
    }
    return false;
}
