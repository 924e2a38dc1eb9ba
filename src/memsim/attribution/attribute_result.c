/* SPDX-License-Identifier: Apache-2.0
 * What attribution found, put into words and order. */
#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"
#include "memsim/attribution/attribute_internal.h"

static const char *const category_names[] = {
    [TRACE_CATEGORY_OTHER] = "other",
    [TRACE_CATEGORY_PARAMETER] = "parameter",
    [TRACE_CATEGORY_BUFFER] = "buffer",
    [TRACE_CATEGORY_GRADIENT] = "gradient",
    [TRACE_CATEGORY_OPTIMIZER] = "optimizer",
    [TRACE_CATEGORY_INPUT] = "input",
    [TRACE_CATEGORY_UNSHARDED_PARAMETER] = "unsharded_parameter",
    [TRACE_CATEGORY_UNSHARDED_GRADIENT] = "unsharded_gradient",
    [TRACE_CATEGORY_ACTIVATION] = "activation",
    [TRACE_CATEGORY_TEMPORARY] = "temporary",
    [TRACE_CATEGORY_COMMUNICATION] = "communication",
    [TRACE_CATEGORY_WORKSPACE] = "workspace",
};

static const char *const phase_names[] = {
    [TRACE_PHASE_INIT] = "init",
    [TRACE_PHASE_FORWARD] = "forward",
    [TRACE_PHASE_BACKWARD] = "backward",
    [TRACE_PHASE_RECOMPUTE] = "recompute",
    [TRACE_PHASE_OPTIMIZER] = "optimizer",
    [TRACE_PHASE_OTHER] = "other",
};

const char *attribution_category_name(enum trace_category category)
{
    return category_names[category];
}

const char *attribution_phase_name(enum trace_phase_kind phase)
{
    return phase_names[phase];
}

uint64_t attribution_sum(const struct attribution_sums *sums)
{
    uint64_t bytes = 0;

    for (size_t c = 0; c < TRACE_CATEGORY_COUNT; c++)
        bytes += sums->bytes[c];
    return bytes;
}

/* The modules of the result, by number: those that were called or hold
 * something, and all above them. */
struct index {
    size_t *places; /* 1 + place in the result; 0: not there */
    size_t count;
};

static size_t place_of(const struct index *index, uint32_t id)
{
    return id < index->count ? index->places[id] - 1 : SIZE_MAX;
}

static void module_want(const struct module_table *t, struct index *index,
                        uint32_t id)
{
    for (; id && id < index->count && !index->places[id];
         id = id < t->count ? t->rows[id].parent : 0)
        index->places[id] = 1;
}

static void blocks_each(const struct attribute *a, unsigned device,
                        void (*take)(void *context, const struct block *p),
                        void *context)
{
    const struct card_use *card = &a->cards[device];
    size_t cursor = 0;

    for (const struct block *p; (p = map_next(&a->blocks, &cursor));)
        if (p->device == device && p->born <= card->peak.ordinal)
            take(context, p);
    for (const struct block *p = card->gone; p; p = p->next_gone)
        take(context, p);
}

struct conclusion {
    const struct attribute *a;
    const struct card_use *card;
    struct index index;
    struct attribution *to;
    size_t capacity; /* of blocks */
};

static void block_count(void *context, const struct block *p)
{
    struct conclusion *c = context;

    c->to->at_peak.bytes[p->category] += p->bytes;
    c->to->block_count++;
    module_want(&c->a->modules, &c->index, p->module);
}

static void modules_choose(struct conclusion *c)
{
    const struct module_table *t = &c->a->modules;
    const struct holdings *h = &c->card->holdings;

    for (uint32_t id = 1; id < c->index.count; id++)
        if ((id < t->count && t->rows[id].calls) ||
            (id < h->count && h->rows[id].peak_bytes))
            module_want(t, &c->index, id);
}

/* Numbers were given to parents first, but a parent may be known later. */
static void module_place(struct conclusion *c, uint32_t id)
{
    const struct module_table *t = &c->a->modules;
    const struct holdings *h = &c->card->holdings;
    struct attribution *to = c->to;
    uint32_t parent = id < t->count ? t->rows[id].parent : 0;

    if (c->index.places[id] > 1)
        return;
    if (parent && c->index.places[parent] == 1)
        module_place(c, parent);
    to->modules[to->module_count] = (struct attribution_module){
        .name = module_table_title(t, id),
        .calls = id < t->count ? t->rows[id].calls : 0,
        .own_peak_bytes = id < h->count ? h->rows[id].peak_bytes : 0,
        .parent = parent ? c->index.places[parent] - 2 : SIZE_MAX,
    };
    c->index.places[id] = 2 + to->module_count++;
}

static void modules_place(struct conclusion *c)
{
    size_t count = 0;

    for (size_t id = 1; id < c->index.count; id++)
        count += c->index.places[id] != 0;
    c->to->modules = xcalloc(count + 1, sizeof *c->to->modules);
    for (uint32_t id = 1; id < c->index.count; id++)
        if (c->index.places[id])
            module_place(c, id);
    for (size_t id = 1; id < c->index.count; id++)
        c->index.places[id] -= c->index.places[id] != 0;
}

/* A copy of the name ID; NULL: it is empty. */
static char *text_of(const struct conclusion *c, uint64_t id)
{
    const char *text = trace_names_get(c->a->names, id);

    return *text ? xstrdup(text) : NULL;
}

static void block_put(void *context, const struct block *p)
{
    struct conclusion *c = context;
    struct attribution *to = c->to;
    char label[96];
    size_t module = place_of(&c->index, p->module);

    label_format(&p->label, c->a->names, label, sizeof label);
    to->blocks[to->block_count++] = (struct attribution_block){
        .address = p->address,
        .bytes = p->bytes,
        .allocated = true,
        .module = module,
        .category = (enum trace_category)p->category,
        .operation = text_of(c, p->operation),
        .stack = text_of(c, p->stack),
        .shape = text_of(c, p->shape),
        .name = text_of(c, p->name),
        .label = xstrdup(label),
    };
    if (module == SIZE_MAX)
        return;
    to->modules[module].self_bytes += p->bytes;
    to->modules[module].self.bytes[p->category] += p->bytes;
}

/* Parents come before their children. */
static void modules_sum(struct attribution *to)
{
    for (size_t i = to->module_count; i-- > 0;) {
        struct attribution_module *m = &to->modules[i];
        m->bytes_at_peak += m->self_bytes;
        if (m->parent != SIZE_MAX)
            to->modules[m->parent].bytes_at_peak += m->bytes_at_peak;
    }
}

static int block_compare(const void *x, const void *y)
{
    const struct attribution_block *a = x, *b = y;

    return a->address < b->address ? -1 : a->address > b->address;
}

struct layout {
    struct attribution_block *blocks;
    size_t count, capacity;
};

static void layout_put(struct layout *l, const struct attribution_block *b)
{
    xgrow(&l->blocks, l->count, &l->capacity, sizeof *l->blocks);
    l->blocks[l->count++] = *b;
}

static void layout_gap(struct layout *l, uint64_t address, uint64_t end)
{
    if (address < end)
        layout_put(l, &(struct attribution_block){.address = address,
                                                  .bytes = end - address,
                                                  .module = SIZE_MAX});
}

/* Puts the blocks into their segments, and gaps between them. Blocks outside
 * all segments come last. */
static void segments_fill(struct attribution *to)
{
    struct layout l = {0};
    size_t at = 0;

    for (size_t i = 0; i < to->segment_count; i++) {
        struct attribution_segment *s = &to->segments[i];
        uint64_t address = s->address, end = s->address + s->bytes;
        for (; at < to->block_count && to->blocks[at].address < address; at++)
            layout_put(&l, &to->blocks[at]);
        s->first = l.count;
        for (; at < to->block_count && to->blocks[at].address < end; at++) {
            layout_gap(&l, address, to->blocks[at].address);
            layout_put(&l, &to->blocks[at]);
            address = to->blocks[at].address + to->blocks[at].bytes;
        }
        layout_gap(&l, address, end);
        s->count = l.count - s->first;
    }
    for (; at < to->block_count; at++)
        layout_put(&l, &to->blocks[at]);
    free(to->blocks);
    to->blocks = l.blocks;
    to->block_count = l.count;
}

static void blocks_put(struct conclusion *c, unsigned device)
{
    struct attribution *to = c->to;

    to->blocks = xcalloc(to->block_count + 1, sizeof *to->blocks);
    to->block_count = 0;
    blocks_each(c->a, device, block_put, c);
    qsort(to->blocks, to->block_count, sizeof *to->blocks, block_compare);
}

static void ooms_put(struct conclusion *c)
{
    struct attribution *to = c->to;

    to->ooms = xcalloc(c->card->oom_count + 1, sizeof *to->ooms);
    to->oom_count = c->card->oom_count;
    for (size_t i = 0; i < to->oom_count; i++) {
        const struct card_oom *oom = &c->card->ooms[i];
        to->ooms[i] = (struct attribution_oom){
            module_table_title(&c->a->modules, oom->module), oom->step,
            oom->phase, episode_of(&c->a->episodes, oom->episode)};
    }
}

/* Whether the operator named NAME makes a longer tensor of another one. What is
 * longer in each step without that is so because the batch is. */
static bool name_appends(const char *name)
{
    static const char *const names[] = {"aten::cat", "aten::constant_pad_nd",
                                        "aten::stack", "aten::resize_"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i]))
            return true;
    return false;
}

/* Keeps of the COUNT in FOUND what memory is lost to. */
static size_t growth_choose(const struct conclusion *c,
                            struct growth_found *found, size_t count)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        const char *name =
            trace_names_get(c->a->names, found[i].key.operation);
        if (found[i].form != GROWTH_TENSOR || name_appends(name))
            found[kept++] = found[i];
    }
    return kept;
}

static struct attribution_growth growth_put(const struct conclusion *c,
                                            const struct growth_found *found)
{
    return (struct attribution_growth){
        .operation = text_of(c, found->key.operation),
        .stack = text_of(c, found->key.stack),
        .module = place_of(&c->index, (uint32_t)found->key.module),
        .category = found->category,
        .form = found->form,
        .step_bytes = found->step_bytes,
        .step_more = found->step_more,
    };
}

static void host_conclude(struct conclusion *c)
{
    struct growth_rate *to = c->to->host_growth;
    unsigned steps = growth_steps(&c->card->growth);

    if (steps + 1 < GROWTH_STEPS)
        return;
    for (size_t i = 0; i < GROWTH_HOST_HEAP; i++)
        to[i] = growth_size_rate(&c->a->host_growth[i], steps);
    to[GROWTH_HOST_HEAP] = growth_heap_rate(&c->a->heap_growth);
    c->to->heap_unknown = !growth_heap_known(&c->a->heap_growth);
    c->to->heap_looks = c->a->heap_growth.looks;
    c->to->heap_least = growth_heap_least(&c->a->heap_growth);
}

/* The step that began as number I, whose input is known if it has ended. */
static void begin_put(struct attribution *to, const struct attribute *a,
                      size_t i)
{
    size_t at = i % ATTRIBUTION_BEGINS;
    bool ended = i + 1 < a->begin_count;

    to->sizes[to->begin_count] =
        ended ? peak_law_size(&a->inputs[at], to->law.dimension) : 0;
    to->begins[to->begin_count++] = a->begins[at];
}

static void growth_conclude(struct conclusion *c)
{
    struct attribution *to = c->to;
    struct growth_found *found;
    size_t count = growth_find(&c->card->growth, &found);

    count = growth_choose(c, found, count);
    to->growth = xcalloc(count + 1, sizeof *to->growth);
    to->growth_count = count;
    to->growth_steps = growth_steps(&c->card->growth);
    to->growth_rule = c->a->rule;
    to->growth_peak_bytes = growth_peak_bytes(&c->card->growth);
    to->growth_held_bytes = growth_held_bytes(&c->card->growth);
    host_conclude(c);
    for (size_t i = c->a->begin_count > ATTRIBUTION_BEGINS
                        ? c->a->begin_count - ATTRIBUTION_BEGINS
                        : 0;
         i < c->a->begin_count; i++)
        begin_put(to, c->a, i);
    for (size_t i = 0; i < count; i++)
        to->growth[i] = growth_put(c, &found[i]);
    free(found);
    if (c->a->rule == STEP_MODULE) /* each call is a step */
        return;
    const struct growth_calls *calls = &c->card->growth.calls;
    to->calls_growth = growth_put(c, &calls->found);
    to->calls = calls->found_count;
    to->calls_bytes = calls->found_bytes;
}

struct text_list {
    struct attribution_history *to;
    const struct trace_names *names;
    struct map places; /* from 1, by the name's id */
    size_t capacity;
};

/* The number of the text of NAME, from 1; 0: it has none. */
static uint64_t text_place(struct text_list *l, uint64_t name)
{
    const char *text = trace_names_get(l->names, name);
    uintptr_t place = (uintptr_t)map_get(&l->places, name);

    if (place || !*text)
        return place;
    xgrow(&l->to->texts, l->to->text_count, &l->capacity,
          sizeof *l->to->texts);
    l->to->texts[l->to->text_count++] = xstrdup(text);
    map_put(&l->places, name, (void *)(uintptr_t)l->to->text_count);
    return l->to->text_count;
}

/* The blocks that live on, and the names of all. */
static void lives_conclude(struct conclusion *c, struct card_use *card,
                             unsigned device)
{
    struct attribution_history *to = &c->to->lives;
    struct text_list texts = {.to = to, .names = c->a->names};
    size_t cursor = 0;

    history_conclude(&card->history, &card->now);
    for (const struct block *p; (p = map_next(&c->a->blocks, &cursor));) {
        struct history_block life = block_life(p);
        if (p->device == device)
            history_put(&card->history, &life);
    }
    to->points = memory_curve_conclude(&card->history.points, &to->point_count);
    to->history = xmalloc(sizeof *to->history);
    *to->history = card->history;
    card->history = (struct history){0};
    for (size_t i = 0; i < to->history->count; i++) {
        struct history_block *b = &to->history->blocks[i];
        b->operation = text_place(&texts, b->operation);
        b->stack = text_place(&texts, b->stack);
        b->module = (uint32_t)(place_of(&c->index, b->module) + 1);
    }
    map_fini(&texts.places);
}

struct attribution *attribute_conclude(struct attribute *a, unsigned device)
{
    struct card_use *card = &a->cards[device];
    size_t numbers = a->modules.count > card->holdings.count
                         ? a->modules.count
                         : card->holdings.count;

    if (!a->told || !card->peak.ordinal)
        return NULL;
    struct conclusion c = {
        .a = a,
        .card = card,
        .index = {xcalloc(numbers + 1, sizeof *c.index.places), numbers},
        .to = xcalloc(1, sizeof *c.to),
    };
    c.to->peak_ns = card->peak.time_ns;
    c.to->peak_step = card->peak_step;
    c.to->peak_phase = card->peak_phase;
    c.to->peak_episode = episode_of(&a->episodes, card->peak_episode);
    module_table_count(&a->modules);
    blocks_each(a, device, block_count, &c);
    modules_choose(&c);
    modules_place(&c);
    blocks_put(&c, device);
    modules_sum(c.to);
    c.to->points = memory_curve_conclude(&card->curve, &c.to->point_count);
    c.to->point_bytes = card->curve.least_bytes;
    lives_conclude(&c, card, device);
    phase_list_conclude(&card->phases, &card->now,
                        &(struct memory_now){&card->current, &card->holdings},
                        c.index.places, c.to);
    segment_table_conclude(&card->segments, card->peak.ordinal, c.to);
    segments_fill(c.to);
    ooms_put(&c);
    c.to->law = peak_law_find(&card->law);
    growth_conclude(&c);
    free(c.index.places);
    return c.to;
}

static void strings_free(char **strings, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(strings[i]);
    free(strings);
}

void attribution_destroy(struct attribution *attribution)
{
    if (!attribution)
        return;
    for (size_t i = 0; i < attribution->module_count; i++)
        free(attribution->modules[i].name);
    for (size_t i = 0; i < attribution->block_count; i++) {
        free(attribution->blocks[i].operation);
        free(attribution->blocks[i].stack);
        free(attribution->blocks[i].shape);
        free(attribution->blocks[i].name);
        free(attribution->blocks[i].label);
    }
    for (size_t i = 0; i < attribution->phase_count; i++)
        free(attribution->phases[i].module_bytes);
    for (size_t i = 0; i < attribution->growth_count; i++) {
        free(attribution->growth[i].operation);
        free(attribution->growth[i].stack);
    }
    free(attribution->growth);
    free(attribution->calls_growth.operation);
    free(attribution->calls_growth.stack);
    free(attribution->modules);
    free(attribution->phases);
    free(attribution->points);
    free(attribution->segments);
    free(attribution->blocks);
    for (size_t i = 0; i < attribution->oom_count; i++)
        free(attribution->ooms[i].module);
    free(attribution->ooms);
    strings_free(attribution->lives.texts, attribution->lives.text_count);
    free(attribution->lives.points);
    if (attribution->lives.history)
        history_fini(attribution->lives.history);
    free(attribution->lives.history);
    free(attribution);
}
