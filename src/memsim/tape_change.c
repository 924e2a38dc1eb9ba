/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/tape_change.h"

#include <stdlib.h>

#include "common/xmalloc.h"

#define NONE       UINT32_MAX
#define FIRST_NAME (UINT64_C(1) << 62) /* of blocks that were not recorded */

/* --- the optimizer's state ------------------------------------------------ */

static bool is_taken(const struct tape_item *item)
{
    return item->kind == TAPE_CALL && item->op.kind == REPLAY_ALLOC;
}

uint64_t tape_halve_states(struct tape *to, const struct tape *from)
{
    uint64_t saved_bytes = 0;

    tape_init_like(to, from);
    for (size_t i = 0; i < from->count; i++) {
        struct tape_item item = from->items[i];

        if (is_taken(&item) && item.holds & TAPE_FP32_STATE) {
            saved_bytes += item.op.bytes / 2;
            item.op.bytes -= item.op.bytes / 2;
        }
        tape_add(to, &item);
    }
    return saved_bytes;
}

/* --- activation checkpointing --------------------------------------------- */

/* What becomes of a block that a member's forward took. */
enum fate {
    FATE_BRIEF,  /* forward gave it back: made again with the others */
    FATE_NEEDED, /* by backward: given back, and made again */
    FATE_CAST,   /* likewise, but autocast holds it until its end */
    FATE_CACHED, /* autocast holds it, backward does not need it */
    FATE_RESULT, /* what the member returns, and others need in backward */
    FATE_PASSED, /* what it returns, and only it needs: NEEDED once used */
    FATE_KEPT,   /* anything else: parameters, workspaces */
};

/* A member's forward, from its call to its end. */
struct forward {
    uint32_t member;
    uint32_t enter, leave; /* items */
    uint32_t before;       /* the member's forward before it, or NONE */
    uint32_t backward;     /* where that begins, as recorded, or NONE */
    uint32_t needed;       /* blocks that backward has still to free */
    uint32_t arguments;    /* blocks to be freed when backward is done with
                              it, or NONE; more: struct block's next */
    bool is_last;          /* of the members, before backward */
    bool again;            /* its recomputation was made */
};

struct block { /* of the item that takes it */
    uint32_t freed, forward;
    uint32_t next;
    uint64_t name; /* 0: the recorded address */
    bool gone;     /* given back, and not made again yet */
};

struct checkpoint {
    const struct tape *from;
    struct tape *to;
    const struct module_lists *lists;
    const bool *chosen;
    uint32_t *taken_at; /* of an item that frees: the item that took it */
    struct block *blocks;
    uint8_t *phases;    /* of the program at each item */
    bool *autocast_end; /* at this item */
    struct forward *forwards;
    size_t forward_count, forward_capacity;
    uint32_t *open, *pending, *active; /* forwards, by member */
    struct held {
        uint32_t *items;
        size_t count, capacity;
    } casts, passed; /* autocast holds them; until the next member is called */
    struct map parameters; /* by module and size */
    uint64_t next_name;
};

static uint32_t member_of(const struct checkpoint *c, uint32_t module)
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
static void survey(struct checkpoint *c)
{
    struct map live = {0};
    uint8_t phase = TRACE_PHASE_INIT;

    for (uint32_t i = 0; i < c->from->count; i++) {
        const struct tape_item *item = &c->from->items[i];
        uint64_t address = item->op.address;
        uintptr_t place;

        c->blocks[i] = (struct block){.freed = NONE, .forward = NONE};
        c->taken_at[i] = NONE;
        if (item->kind == TAPE_PHASE)
            phase = item->phase;
        c->phases[i] = phase;
        if (is_taken(item)) {
            map_put(&live, address, (void *)(uintptr_t)(i + 1));
            if (item->holds & TAPE_PARAMETER)
                map_put(&c->parameters,
                        parameter_key(item->module, item->op.bytes), c);
        } else if (item->kind == TAPE_CALL &&
                   (item->op.kind == REPLAY_FREE ||
                    item->op.kind == REPLAY_FREE_DONE)) {
            place = (uintptr_t)map_get(&live, address);
            if (!place)
                continue;
            c->taken_at[i] = (uint32_t)(place - 1);
            if (item->op.kind == REPLAY_FREE)
                c->blocks[place - 1].freed = i;
            if (item->op.kind == REPLAY_FREE_DONE || !item->op.deferred)
                map_take(&live, address);
        }
    }
    map_fini(&live);
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
    uint32_t taker = member_of(c, c->from->items[i].input_of);

    return freed != NONE && f->backward != NONE && freed > f->backward &&
           (!taker || taker == f->member) && !f->is_last;
}

/* Is a block of FATE made again for backward? */
static bool is_needed(enum fate fate)
{
    return fate == FATE_NEEDED || fate == FATE_CAST || fate == FATE_PASSED;
}

static enum fate fate_of(const struct checkpoint *c, uint32_t i,
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
        if (c->blocks[i].forward == number && fate_of(c, i, f) == FATE_CACHED &&
            is_cast(c, &c->from->items[i]))
            c->autocast_end[c->blocks[i].freed] = true;
}

static uint32_t count_needed(const struct checkpoint *c, uint32_t number)
{
    const struct forward *f = &c->forwards[number];
    uint32_t count = 0;

    for (uint32_t i = f->enter; i < f->leave; i++)
        count += c->blocks[i].forward == number && is_needed(fate_of(c, i, f));
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
    if (is_needed(fate_of(c, taken, f)) && f->needed && !--f->needed &&
        c->pending[f->member] == number)
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
    if (is_taken(item) && item->phase == TRACE_PHASE_BACKWARD)
        backward_note(c, member, i);
    if (c->open[member] == NONE)
        return;
    if (is_taken(item) && item->phase == TRACE_PHASE_FORWARD)
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
        uint32_t member = member_of(c, item->module);

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

/* Adds a call for the block that item TAKEN took, at the time of item AT and
 * under the name ADDRESS. */
static void call_add(struct checkpoint *c, uint32_t at, uint32_t taken,
                     enum replay_kind kind, uint64_t address)
{
    struct tape_item item = c->from->items[taken];

    item.op.index = c->from->items[at].op.index;
    item.op.time_ns = c->from->items[at].op.time_ns;
    item.op.kind = kind;
    item.op.deferred = false;
    item.op.address = address;
    tape_add(c->to, &item);
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

static void hold(struct held *h, uint32_t item)
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
        enum fate fate = fate_of(c, i, f);
        if (fate == FATE_NEEDED)
            give_back(c, f->leave, i);
        else if (is_needed(fate))
            hold(fate == FATE_CAST ? &c->casts : &c->passed, i);
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
static void recompute(struct checkpoint *c, uint32_t at, uint32_t number)
{
    struct forward *f = &c->forwards[number];
    uint32_t last = last_needed(c, number);
    struct brief *brief = NULL;
    size_t count = 0, capacity = 0;

    f->again = true;
    for (uint32_t i = f->enter; i <= last; i++) {
        struct block *b = &c->blocks[i];
        uint32_t taken = c->taken_at[i];

        if (b->forward == number && fate_of(c, i, f) != FATE_KEPT) {
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
        recompute(c, at, next);
}

/* The forward whose argument the block is that item TAKEN took, and whose
 * backward is not done; NONE: there is none. */
static uint32_t taker_find(const struct checkpoint *c, uint32_t taken)
{
    uint32_t member = member_of(c, c->from->items[taken].input_of);

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
    bool needed = f && is_needed(fate_of(c, taken, f));

    if (needed && !f->again && i > f->leave)
        recompute(c, i, number);
    if (is_free && argument_hold(c, taken))
        return;
    item.op.address = block_name(c, taken);
    tape_add(c->to, &item);
    if (is_free && needed)
        forward_freed(c, f, i);
}

/* An argument may be held when its recorded address is another block's. */
static void copy(struct checkpoint *c, uint32_t i)
{
    const struct tape_item *item = &c->from->items[i];

    if (c->taken_at[i] != NONE) {
        copy_free(c, i, c->taken_at[i]);
    } else if (is_taken(item) && member_of(c, item->input_of)) {
        c->blocks[i].name = c->next_name++;
        call_add(c, i, i, REPLAY_ALLOC, c->blocks[i].name);
    } else {
        tape_add(c->to, item);
    }
}

static void take(struct checkpoint *c, uint32_t i)
{
    const struct tape_item *item = &c->from->items[i];
    uint32_t member = member_of(c, item->module);
    bool backward =
        item->kind == TAPE_PHASE && item->phase == TRACE_PHASE_BACKWARD;

    if (c->autocast_end[i] || backward)
        held_end(c, &c->casts, i);
    if (backward ||
        (member && item->kind == TAPE_ENTER && item->module == member))
        held_end(c, &c->passed, i);
    if (member && is_taken(item) && item->phase == TRACE_PHASE_BACKWARD)
        backward_begin(c, i, member);
    copy(c, i);
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
        uint32_t member = member_of(c, item->module);

        if (member && next < c->forward_count && c->forwards[next].enter == i)
            c->open[member] = (uint32_t)next++;
        take(c, i);
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
    survey(&c);
    forwards_find(&c);
    forwards_rewind(&c);
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

        if (is_taken(item) && item->phase == TRACE_PHASE_RECOMPUTE &&
            item->module < lists->modules && lists->member_of[item->module] &&
            lists->list_of[item->module] == list + 1)
            return true;
    }
    return false;
}
