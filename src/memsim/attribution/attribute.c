/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/attribution/attribute.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/text_begins.h"
#include "common/base/xmalloc.h"
#include "memsim/attribution/attribute_internal.h"

static struct card_use *card_get(struct attribute *a, uint64_t device)
{
    return device < ATTRIBUTE_DEVICES ? &a->cards[device] : NULL;
}

static void block_close(struct block *p)
{
    if (!p->previous)
        return;
    *p->previous = p->next;
    if (p->next)
        p->next->previous = p->previous;
    p->previous = NULL;
}

static void block_open(struct block *p, struct block **list)
{
    p->next = *list;
    p->previous = list;
    if (p->next)
        p->next->previous = &p->next;
    *list = p;
}

/* P is of CATEGORY, as of its birth. */
static void block_refile(struct attribute *a, struct block *p,
                         enum trace_category category)
{
    struct card_use *card = &a->cards[p->device];

    if (p->category == category)
        return;
    memory_curve_refile(&card->curve, p->born, p->category, category, p->bytes);
    memory_curve_refile(&card->history.points, p->born, p->category, category,
                        p->bytes);
    phase_list_refile(&card->phases, p->born, p->category, category, p->bytes);
    card->current.bytes[p->category] -= p->bytes;
    card->current.bytes[category] += p->bytes;
    p->category = (uint8_t)category;
    p->growth.kind->category = category;
}

static void block_move(struct attribute *a, struct block *p, uint32_t module)
{
    struct holdings *h = &a->cards[p->device].holdings;

    if (!module || p->module == module)
        return;
    holdings_add(h, &a->modules, p->module, -(int64_t)p->bytes);
    holdings_add(h, &a->modules, module, (int64_t)p->bytes);
    phase_list_move(&a->cards[p->device].phases, p->born, p->module, module,
                    p->bytes);
    p->module = module;
}

/* All blocks of LIST, which is empty then, are of CATEGORY. */
static void list_refile(struct attribute *a, struct block **list,
                        enum trace_category category)
{
    while (*list) {
        struct block *p = *list;
        block_close(p);
        block_refile(a, p, category);
    }
}

/* Whose ranges and operators tell at once what an allocation is for. FSDP2
 * names its ranges in torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py,
 * FSDP1 in torch/distributed/fsdp/. */
static const struct clue {
    bool range;         /* else: an operator */
    const char *prefix; /* of its name */
    enum trace_category category;
} clues[] = {
    {true, "FSDP::all_gather_copy_out", TRACE_CATEGORY_UNSHARDED_PARAMETER},
    {true, "FSDP::all_gather", TRACE_CATEGORY_COMMUNICATION},
    {true, "FSDP::post_backward_reduce", TRACE_CATEGORY_COMMUNICATION},
    {true, "FullyShardedDataParallel._pre_forward",
     TRACE_CATEGORY_UNSHARDED_PARAMETER},
    {true, "FullyShardedDataParallel._pre_backward",
     TRACE_CATEGORY_UNSHARDED_PARAMETER},
    {true, "FullyShardedDataParallel.rate_limiter",
     TRACE_CATEGORY_UNSHARDED_PARAMETER},
    {true, "FullyShardedDataParallel._post_backward",
     TRACE_CATEGORY_COMMUNICATION},
    {true, "c10d::Reducer", TRACE_CATEGORY_COMMUNICATION},
    {false, "torch::autograd::AccumulateGrad", TRACE_CATEGORY_GRADIENT},
    {false, "c10d::", TRACE_CATEGORY_COMMUNICATION},
};

static enum trace_category clue_read(const struct attribute *a,
                                     const struct trace_block_alloc *alloc)
{
    const char *texts[] = {
        trace_names_get(a->names, alloc->operator),
        trace_names_get(a->names, alloc->range),
    };

    for (size_t i = 0; i < sizeof clues / sizeof *clues; i++)
        if (text_begins(texts[clues[i].range], clues[i].prefix))
            return clues[i].category;
    return TRACE_CATEGORY_OTHER;
}

/* Files a new block. What a forward or a step takes is temporary until it has
 * outlived it. */
static void block_file(struct attribute *a, struct block *p,
                       enum trace_category clue)
{
    p->category = (uint8_t)clue;
    if (clue != TRACE_CATEGORY_OTHER)
        return;
    switch ((enum trace_phase_kind)p->phase) {
    case TRACE_PHASE_FORWARD:
    case TRACE_PHASE_RECOMPUTE:
        p->category = TRACE_CATEGORY_TEMPORARY;
        block_open(p, &a->forward);
        break;
    case TRACE_PHASE_OPTIMIZER:
        p->category = TRACE_CATEGORY_TEMPORARY;
        block_open(p, &a->stepping);
        break;
    case TRACE_PHASE_BACKWARD:
        p->category = TRACE_CATEGORY_TEMPORARY;
        break;
    default:
        break;
    }
}

struct history_block block_life(const struct block *p)
{
    return (struct history_block){
        .address = p->address,
        .bytes = p->bytes,
        .requested_bytes = p->requested_bytes,
        .born = p->born_event,
        .born_ns = p->born_ns,
        .died = UINT64_MAX,
        .operation = p->operation,
        .stack = p->stack,
        .module = p->module,
        .category = p->category,
    };
}

/* P was allocated, or freed if BYTES is negative. */
static void block_tell(struct card_use *card, const struct block *p,
                        int64_t bytes)
{
    struct history_block life = block_life(p);

    memory_curve_add(&card->curve, &card->now, p->category, bytes);
    history_event(&card->history, &card->now, &life, bytes);
    if (bytes > 0)
        return;
    life.died = card->now.events;
    life.died_ns = card->now.time_ns;
    history_put(&card->history, &life);
}

static void card_peak(struct attribute *a, struct card_use *card)
{
    for (struct block *p = card->gone, *next; p; p = next) {
        next = p->next_gone;
        free(p);
    }
    card->gone = NULL;
    segment_table_peak(&card->segments);
    card->peak = card->now;
    card->peak_step = step_tracker_step(&a->steps);
    card->peak_phase = a->phase;
    card->peak_episode = a->episodes.now;
}

/* The block leaves the books; it is kept where it was there at the peak. */
static void block_end(struct attribute *a, struct block *p)
{
    struct card_use *card = &a->cards[p->device];

    block_close(p);
    if (p->category == TRACE_CATEGORY_OTHER &&
        p->phases_before == a->phase_count)
        block_refile(a, p, TRACE_CATEGORY_TEMPORARY);
    holdings_add(&card->holdings, &a->modules, p->module, -(int64_t)p->bytes);
    card->current.bytes[p->category] -= p->bytes;
    block_tell(card, p, -(int64_t)p->bytes);
    growth_drop(&card->growth, &p->growth,
                &(struct growth_bytes){p->bytes, p->requested_bytes});
    if (p->born > card->peak.ordinal) {
        free(p);
        return;
    }
    p->next_gone = card->gone;
    card->gone = p;
}

static void moment_set(struct attribute *a, struct card_use *card,
                       uint64_t time_ns, uint64_t allocated_bytes,
                       uint64_t reserved_bytes)
{
    card->now.ordinal = a->ordinal;
    card->now.time_ns = time_ns - a->start_ns;
    card->now.events++;
    card->now.allocated_bytes = allocated_bytes;
    card->now.reserved_bytes = reserved_bytes;
}

static struct block *block_make(const struct attribute *a,
                                const struct trace_block_alloc *alloc)
{
    const struct moment *now = &a->cards[alloc->device].now;
    struct block *p = xcalloc(1, sizeof *p);

    p->address = alloc->address;
    p->bytes = alloc->block_bytes;
    p->requested_bytes = alloc->requested_bytes;
    p->born = a->ordinal;
    p->born_event = now->events;
    p->born_ns = now->time_ns;
    p->operation = alloc->operator;
    p->stack = alloc->stack;
    p->shape = alloc->shape;
    p->phases_before = a->phase_count;
    p->module = (uint32_t)alloc->module;
    p->device = (uint8_t)alloc->device;
    p->phase = (uint8_t)alloc->phase;
    return p;
}

static unsigned step_now(const struct attribute *a)
{
    return step_tracker_begun(&a->steps) ? step_tracker_step(&a->steps)
                                         : HISTORY_BEFORE;
}

static void on_block_alloc(struct attribute *a, const struct trace_item *item)
{
    const struct trace_block_alloc *alloc = trace_as_block_alloc(item);
    struct card_use *card = card_get(a, alloc->device);

    if (!card)
        return;
    struct block *stale = map_take(&a->blocks, alloc->address);
    if (stale) /* freed unseen */
        block_end(a, stale);
    if (!card->phases.count && a->phase_count) /* it is used from now on */
        phase_list_begin(
            &card->phases,
            &(struct moment){.ordinal = a->ordinal,
                             .time_ns = item->head.time_ns - a->start_ns},
            a->phase, step_tracker_step(&a->steps),
            &(struct memory_now){&card->current, &card->holdings});
    if (!card->history.run_count)
        history_step(&card->history, &card->now, step_now(a));
    moment_set(a, card, item->head.time_ns, alloc->allocated_bytes,
               alloc->reserved_bytes);
    struct block *p = block_make(a, alloc);
    map_put(&a->blocks, p->address, p);
    p->growth = growth_take(
        &card->growth,
        &(struct growth_key){p->operation, p->stack, p->module},
        &(struct growth_bytes){p->bytes, p->requested_bytes});
    block_file(a, p, clue_read(a, alloc));
    p->growth.kind->category = (enum trace_category)p->category;
    holdings_add(&card->holdings, &a->modules, p->module, (int64_t)p->bytes);
    card->current.bytes[p->category] += p->bytes;
    block_tell(card, p, (int64_t)p->bytes);
    phase_list_peak(&card->phases, card->now.allocated_bytes);
    if (card->now.allocated_bytes > card->peak.allocated_bytes)
        card_peak(a, card);
}

static void on_block_free(struct attribute *a, const struct trace_item *item)
{
    const struct trace_block_free *freed = trace_as_block_free(item);
    struct card_use *card = card_get(a, freed->device);

    if (!card)
        return;
    struct block *p = map_take(&a->blocks, freed->address);
    if (!p)
        return;
    moment_set(a, card, item->head.time_ns, freed->allocated_bytes,
               freed->reserved_bytes);
    block_end(a, p);
}

static void on_segment(struct attribute *a, const struct trace_item *item)
{
    struct card_use *card = card_get(a, trace_as_segment(item)->device);

    if (card)
        segment_table_take(&card->segments, item, a->ordinal,
                           card->peak.ordinal);
}

static void on_oom(struct attribute *a, const struct trace_item *item)
{
    const struct trace_oom *oom = trace_as_oom(item);
    struct card_use *card = card_get(a, oom->device);

    if (!card)
        return;
    xgrow(&card->ooms, card->oom_count, &card->oom_capacity,
          sizeof *card->ooms);
    card->ooms[card->oom_count++] = (struct card_oom){
        (uint32_t)oom->module, step_tracker_step(&a->steps), a->phase,
        a->episodes.now};
    list_refile(a, &a->forward, TRACE_CATEGORY_ACTIVATION); /* all in vain */
}

static void on_module(struct attribute *a, const struct trace_item *item)
{
    const struct trace_module *module = trace_as_module(item);
    uint32_t id = (uint32_t)module->module, old_parent;

    module_table_name(&a->modules, id, (uint32_t)module->root,
                      trace_names_get(a->names, module->name), &old_parent);
    for (size_t i = 0; i < ATTRIBUTE_DEVICES; i++)
        holdings_move(&a->cards[i].holdings, &a->modules, id, old_parent);
}

static void on_module_enter(struct attribute *a, const struct trace_item *item)
{
    module_table_call(&a->modules,
                      (uint32_t)trace_as_module_enter(item)->module);
}

/* What the phase that ends leaves behind is what it was there for. The same
 * phase again is the program's end: what an interpreter frees behind it was
 * kept. */
static void on_phase(struct attribute *a, const struct trace_item *item)
{
    uint64_t phase = trace_as_phase(item)->phase;

    if (phase >= TRACE_PHASE_COUNT)
        return;
    a->phase_count++;
    if (a->told && phase == a->phase)
        return;
    a->told = true;
    if (phase == TRACE_PHASE_BACKWARD)
        list_refile(a, &a->forward, TRACE_CATEGORY_ACTIVATION);
    if (a->phase == TRACE_PHASE_OPTIMIZER)
        list_refile(a, &a->stepping, TRACE_CATEGORY_OPTIMIZER);
    a->phase = (enum trace_phase_kind)phase;
    for (size_t i = 0; i < ATTRIBUTE_DEVICES; i++) {
        struct card_use *card = &a->cards[i];
        if (!card->now.ordinal && i)
            continue;
        card->now.ordinal = a->ordinal;
        card->now.time_ns = item->head.time_ns - a->start_ns;
        phase_list_begin(&card->phases, &card->now, a->phase,
                         step_tracker_step(&a->steps),
                         &(struct memory_now){&card->current, &card->holdings});
    }
}

/* What is captured is of the step that its first launch begins. */
static bool step_begins(const struct attribute *a)
{
    unsigned step = step_now(a);

    return step != HISTORY_BEFORE &&
           (a->step == HISTORY_BEFORE || step > a->step);
}

/* A step has begun: by a phase, a capture, or the launch of a graph. */
static void on_step(struct attribute *a, const struct trace_item *item)
{
    a->step = step_now(a);
    for (size_t i = 0; i < ATTRIBUTE_DEVICES; i++) {
        struct card_use *card = &a->cards[i];
        if (!card->history.run_count)
            continue;
        card->now.ordinal = a->ordinal;
        card->now.time_ns = item->head.time_ns - a->start_ns;
        history_step(&card->history, &card->now, a->step);
    }
}

/* A step of CARD's has ended. RESTART: those before it were none. */
static void law_follow(const struct attribute *a, struct card_use *card,
                       bool restart)
{
    const struct step_input input = step_batch_input(&a->batch);

    if (restart)
        card->law = (struct peak_law_points){.count = 0};
    peak_law_add(&card->law, &input, card->growth.peak_requested_bytes);
}

static enum step_rule growth_rule(const struct attribute *a)
{
    if (a->steps.marks.begun)
        return STEP_MARK;
    return step_counter_whole(&a->steps.counter) ? STEP_OPTIMIZER : STEP_MODULE;
}

/* Fragments are looked for in the first steps only: a look takes time. */
#define HELD_STEPS  256
#define HELD_BLOCKS 100000

static void card_step(struct attribute *a, unsigned device, bool restart)
{
    struct card_use *card = &a->cards[device];
    struct growth *g = &card->growth;

    law_follow(a, card, restart);
    if (restart)
        growth_restart(g);
    if (card->history.run_count && growth_steps(g) < HELD_STEPS &&
        a->blocks.count < HELD_BLOCKS)
        growth_hold(g, segment_table_held(&card->segments, &a->blocks, device));
    growth_step(g);
    if (a->rule == STEP_NONE)
        growth_restart(g);
}

static void host_step(struct attribute *a, bool restart)
{
    const uint64_t bytes[GROWTH_HOST_HEAP] = {a->host.tensor_bytes,
                                              a->host.pinned_bytes};
    unsigned step = growth_steps(&a->cards[0].growth);
    bool first = restart || a->rule == STEP_NONE;

    for (size_t i = 0; i < GROWTH_HOST_HEAP; i++) {
        if (first)
            a->host_growth[i] = (struct growth_size){.bytes = bytes[i]};
        growth_size_measure(&a->host_growth[i], step, bytes[i]);
    }
    if (first)
        a->heap_growth = (struct growth_heap){.count = 0};
    growth_heap_measure(&a->heap_growth, step + 1, a->host.heap_bytes);
    a->host.heap_bytes = 0;
}

/* Growth is compared from the second step on: by --step-mark's function, by
 * optimizer steps, and by outermost module calls as long as no optimizer has
 * stepped. What counted as steps by another rule were none. */
static void growth_follow(struct attribute *a, bool call, bool step)
{
    enum step_rule rule = growth_rule(a);
    bool backward =
        a->phase == TRACE_PHASE_BACKWARD || a->phase == TRACE_PHASE_RECOMPUTE;
    bool calls = call && !backward && !a->steps.phases.capturing;
    bool restart = rule != STEP_MODULE && a->rule != rule;

    if (rule == STEP_MODULE ? !calls : !step)
        return;
    if (restart)
        a->begin_count = 0;
    if (a->begin_count)
        a->inputs[(a->begin_count - 1) % ATTRIBUTION_BEGINS] =
            step_batch_input(&a->batch);
    a->begins[a->begin_count++ % ATTRIBUTION_BEGINS] = a->ordinal - 1;
    for (unsigned i = 0; i < ATTRIBUTE_DEVICES; i++)
        card_step(a, i, restart);
    host_step(a, restart);
    a->batch = (struct step_batch){.count = 0};
    a->rule = rule;
}

#define BIT(category) (1u << TRACE_CATEGORY_##category)
#define ANY           (~0u)

/* What a program says of a block, and of which ones it is believed. A block
 * that holds a parameter and is passed as an input is a parameter. */
static const unsigned believed[TRACE_CATEGORY_COUNT] = {
    [TRACE_CATEGORY_PARAMETER] = ANY & ~BIT(PARAMETER),
    [TRACE_CATEGORY_BUFFER] = ANY & ~BIT(PARAMETER) & ~BIT(BUFFER),
    [TRACE_CATEGORY_OPTIMIZER] = ANY & ~BIT(PARAMETER) & ~BIT(BUFFER),
    [TRACE_CATEGORY_GRADIENT] =
        ANY & ~BIT(PARAMETER) & ~BIT(BUFFER) & ~BIT(OPTIMIZER),
    [TRACE_CATEGORY_INPUT] = BIT(OTHER),
    [TRACE_CATEGORY_UNSHARDED_PARAMETER] = ANY & ~BIT(PARAMETER),
    [TRACE_CATEGORY_UNSHARDED_GRADIENT] = ANY & ~BIT(GRADIENT),
};

static void on_storage(struct attribute *a, const struct trace_item *item)
{
    const struct trace_storage *storage = trace_as_storage(item);
    uint64_t category = storage->category;
    struct block *p = map_get(&a->blocks, storage->address);

    if (!p || category >= TRACE_CATEGORY_COUNT)
        return;
    bool owned = p->category != category || p->module;
    if (owned && !(believed[category] >> p->category & 1))
        return;
    block_close(p);
    block_refile(a, p, (enum trace_category)category);
    block_move(a, p, (uint32_t)storage->module);
    p->name = storage->name;
}

/* What collectives work on and nobody laid claim to is theirs. */
static void on_collective(struct attribute *a, const struct trace_item *item)
{
    const struct trace_collective *call = trace_as_collective(item);
    const uint64_t addresses[] = {call->send, call->receive};

    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        struct block *p = map_get(&a->blocks, addresses[i]);
        if (p && p->category == TRACE_CATEGORY_OTHER)
            block_refile(a, p, TRACE_CATEGORY_COMMUNICATION);
    }
}

static void on_batch(struct attribute *a, const struct trace_item *item)
{
    const struct trace_batch *batch = trace_as_batch(item);

    step_batch_add(&a->batch, batch);
    if (batch->learns == TRACE_LEARNS || a->steps.phases.capturing)
        return;
    for (size_t i = 0; i < ATTRIBUTE_DEVICES; i++)
        growth_call(&a->cards[i].growth);
}

static void on_host_level(struct attribute *a, const struct trace_item *item)
{
    uint64_t heap_bytes = a->host.heap_bytes;

    a->host = *trace_as_host_level(item);
    if (!a->host.heap_bytes)
        a->host.heap_bytes = heap_bytes;
}

static void (*const handlers[])(struct attribute *,
                                const struct trace_item *) = {
    [TRACE_BLOCK_ALLOC] = on_block_alloc,
    [TRACE_BLOCK_FREE] = on_block_free,
    [TRACE_SEGMENT_ALLOC] = on_segment,
    [TRACE_SEGMENT_FREE] = on_segment,
    [TRACE_SEGMENT_MAP] = on_segment,
    [TRACE_SEGMENT_UNMAP] = on_segment,
    [TRACE_OOM] = on_oom,
    [TRACE_HOST_LEVEL] = on_host_level,
    [TRACE_COLLECTIVE] = on_collective,
    [TRACE_MODULE] = on_module,
    [TRACE_MODULE_ENTER] = on_module_enter,
    [TRACE_PHASE] = on_phase,
    [TRACE_STORAGE] = on_storage,
    [TRACE_BATCH] = on_batch,
};

void attribute_take(struct attribute *a, const struct trace_item *item,
                    const struct trace_now *now)
{
    unsigned kind = item->head.kind;

    a->names = now->names;
    a->start_ns = now->first_ns;
    a->ordinal = now->ordinal + 1;
    step_tracker_take(&a->steps, item);
    episode_take(&a->episodes, item);
    if (kind < sizeof handlers / sizeof *handlers && handlers[kind])
        handlers[kind](a, item);
    bool step = step_begins(a);
    if (step)
        on_step(a, item);
    growth_follow(a, step_calls_take(&a->calls, item), step);
}

void attribute_label(struct attribute *a, uint64_t address,
                     const struct label *label)
{
    struct block *p = map_get(&a->blocks, address);

    if (!p)
        return;
    p->label = *label;
    if (!label_is_workspace(label))
        return;
    block_close(p);
    block_refile(a, p, TRACE_CATEGORY_WORKSPACE);
}

struct attribute *attribute_create(void)
{
    struct attribute *a = xcalloc(1, sizeof *a);

    a->step = HISTORY_BEFORE;
    return a;
}

static void card_fini(struct card_use *card)
{
    for (struct block *p = card->gone, *next; p; p = next) {
        next = p->next_gone;
        free(p);
    }
    holdings_fini(&card->holdings);
    memory_curve_fini(&card->curve);
    history_fini(&card->history);
    growth_fini(&card->growth);
    phase_list_fini(&card->phases);
    segment_table_fini(&card->segments);
    free(card->ooms);
}

void attribute_destroy(struct attribute *a)
{
    size_t cursor = 0;

    step_tracker_fini(&a->steps);
    for (void *p; (p = map_next(&a->blocks, &cursor));)
        free(p);
    map_fini(&a->blocks);
    for (size_t i = 0; i < ATTRIBUTE_DEVICES; i++)
        card_fini(&a->cards[i]);
    module_table_fini(&a->modules);
    free(a);
}
