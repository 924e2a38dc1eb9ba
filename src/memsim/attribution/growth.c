/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/attribution/growth.h"

#include <stdlib.h>

#include "common/base/hash.h"
#include "common/base/xmalloc.h"

/* The first step leaves behind what all later ones use: that is old when the
 * third one begins, which is number 2. */
#define WARM_UP 2
#define RISES   3 /* at least, of the number of old blocks */
#define SIZES   4 /* at least, of a tensor's size */

static void level_add(struct growth_level *l, uint64_t bytes)
{
    l->blocks++;
    l->bytes += bytes;
}

static void level_take(struct growth_level *l, uint64_t bytes)
{
    l->blocks--;
    l->bytes -= bytes;
}

static struct growth_kind *kind_get(struct growth *g,
                                    const struct growth_key *key)
{
    uint64_t hash = hash_bytes(HASH_START, key, sizeof *key);
    struct growth_kind *kind = map_get(&g->kinds, hash);

    if (kind)
        return kind;
    kind = xcalloc(1, sizeof *kind);
    kind->key = *key;
    map_put(&g->kinds, hash, kind);
    return kind;
}

static void kind_activate(struct growth *g, struct growth_kind *kind)
{
    if (kind->active)
        return;
    kind->active = true;
    kind->next = g->active;
    g->active = kind;
}

static struct growth_place *place_get(struct growth_kind *kind, uint64_t stack)
{
    struct growth_place *p = kind->places;

    while (p && p->stack != stack)
        p = p->next;
    if (p)
        return p;
    p = xcalloc(1, sizeof *p);
    p->stack = stack;
    p->next = kind->places;
    kind->places = p;
    return p;
}

/* The kind and the place of what KEY was allocated for: a kind of which some
 * blocks have no stack has places for the others. */
static struct growth_mark mark_make(struct growth *g,
                                    const struct growth_key *key)
{
    struct growth_key bare = *key;
    struct growth_kind *kind;

    bare.stack = 0;
    kind = key->stack
               ? map_get(&g->kinds, hash_bytes(HASH_START, &bare, sizeof bare))
               : NULL;
    if (!kind)
        return (struct growth_mark){kind_get(g, key), NULL, g->step};
    return (struct growth_mark){kind, place_get(kind, key->stack), g->step};
}

struct growth_mark growth_take(struct growth *g, const struct growth_key *key,
                               const struct growth_bytes *bytes)
{
    struct growth_mark mark = mark_make(g, key);
    struct growth_kind *kind = mark.kind;

    kind_activate(g, kind);
    if (mark.place)
        mark.place->live++;
    level_add(&kind->live, bytes->block);
    level_add(&kind->young, bytes->block);
    level_add(&g->live, bytes->block);
    kind->requested_bytes += bytes->requested;
    g->requested_bytes += bytes->requested;
    if (g->requested_bytes > g->peak_requested_bytes)
        g->peak_requested_bytes = g->requested_bytes;
    if (g->live.bytes > g->peak_bytes)
        g->peak_bytes = g->live.bytes;
    return mark;
}

void growth_drop(struct growth *g, const struct growth_mark *mark,
                 const struct growth_bytes *bytes)
{
    struct growth_kind *kind = mark->kind;

    kind_activate(g, kind);
    if (mark->place)
        mark->place->live--;
    level_take(&kind->live, bytes->block);
    level_take(&g->live, bytes->block);
    kind->requested_bytes -= bytes->requested;
    g->requested_bytes -= bytes->requested;
    if (mark->born == g->step)
        level_take(&kind->young, bytes->block);
}

/* VALUE, at the beginning of STEP, and the BYTES that go with it. */
static void rise_note(struct growth_rise *r, unsigned step, uint64_t value,
                      uint64_t bytes)
{
    if (value <= r->high)
        return;
    r->high = value;
    if (step <= WARM_UP)
        return;
    if (!r->times++) {
        r->first = step;
        r->first_bytes = bytes;
    } else if (step - r->last > r->longest) {
        r->longest = step - r->last;
    }
    r->last = step;
    r->last_bytes = bytes;
}

/* Whether it rose regularly, and was due no later than STEP. */
static bool rise_goes_on(const struct growth_rise *r, unsigned step,
                         unsigned times)
{
    if (r->times < times)
        return false;
    unsigned mean = (r->last - r->first) / (r->times - 1);
    return r->longest <= 2 * mean + 1 && step - r->last < r->longest;
}

static uint64_t rise_rate(const struct growth_rise *r)
{
    uint64_t more = r->last_bytes > r->first_bytes
                        ? r->last_bytes - r->first_bytes
                        : 0;

    return more / (r->last - r->first);
}

/* A rise by MORE in STEPS steps. */
static void size_range(struct growth_size *s, uint64_t more, unsigned steps)
{
    uint64_t rate = more / steps;

    if (!s->most || rate < s->least)
        s->least = rate;
    if (rate > s->most)
        s->most = rate;
}

void growth_size_measure(struct growth_size *s, unsigned step, uint64_t bytes)
{
    const struct growth_rise before = s->rise;
    unsigned times = before.times;
    uint64_t more = bytes - s->bytes;

    if (step > WARM_UP && bytes < s->bytes)
        s->fell = true;
    rise_note(&s->rise, step, bytes, bytes);
    if (s->rise.times > times) {
        uint64_t off = more > s->increment ? more - s->increment
                                           : s->increment - more;
        s->uneven += times && off > s->increment / 8 + 512;
        s->increment = more;
        if (times)
            size_range(s, bytes - before.high, step - before.last);
        if (s->rise.times == 2) {
            s->first_increment = more;
            s->first_step = step;
        }
    }
    s->bytes = bytes;
}

/* At the beginning of STEP. */
static void kind_measure(struct growth_kind *kind, unsigned step)
{
    rise_note(&kind->old, step, kind->live.blocks - kind->young.blocks,
              kind->live.bytes - kind->young.bytes);
    growth_size_measure(&kind->size, step, kind->requested_bytes);
    for (struct growth_place *p = kind->places; p; p = p->next)
        p->kept = p->live;
}

static void calls_restart(struct growth_calls *c, uint64_t requested_bytes)
{
    c->size = (struct growth_size){.bytes = requested_bytes};
    c->count = 0;
}

void growth_step(struct growth *g)
{
    struct growth_kind *kind = g->active;
    unsigned step = ++g->step - g->start;

    g->active = NULL;
    while (kind) {
        struct growth_kind *next = kind->next;
        kind->active = false;
        kind_measure(kind, step);
        if (kind->young.blocks) /* they are old at the next one */
            kind_activate(g, kind);
        kind->young = (struct growth_level){0};
        kind = next;
    }
    calls_restart(&g->calls, g->requested_bytes);
    growth_size_measure(&g->size, step, g->live.bytes);
    growth_size_measure(&g->peaks, step, g->peak_bytes);
    g->peak_bytes = g->live.bytes;
    g->peak_requested_bytes = g->requested_bytes;
    if (g->size.rise.times == 1 && g->size.rise.last == step)
        g->first_blocks = g->live.blocks;
}

/* K's key, at the place that most of its blocks are from: NOW, or when the last
 * step began. */
static struct growth_key kind_key(const struct growth_kind *k, bool now)
{
    struct growth_key key = k->key;
    uint64_t most = 0;

    for (const struct growth_place *p = k->places; p; p = p->next) {
        uint64_t blocks = now ? p->live : p->kept;
        if (blocks <= most)
            continue;
        most = blocks;
        key.stack = p->stack;
    }
    return key;
}

/* The kind of which the calls of this step left the most bytes behind, of those
 * with a block for each call; 0 bytes: there is none. */
static uint64_t calls_kind(const struct growth *g, uint64_t blocks,
                           struct growth_found *found)
{
    uint64_t most = 0;

    for (const struct growth_kind *k = g->active; k; k = k->next) {
        if (k->young.blocks < blocks || k->young.bytes <= most)
            continue;
        most = k->young.bytes;
        found->key = kind_key(k, true);
        found->category = k->category;
    }
    return most;
}

static struct growth_found calls_found(const struct growth *g)
{
    struct growth_found found = {
        .form = GROWTH_BLOCKS,
        .step_bytes = rise_rate(&g->calls.size.rise),
    };

    if (calls_kind(g, g->calls.count - WARM_UP, &found))
        return found;
    found.form = GROWTH_TENSOR;
    calls_kind(g, 1, &found);
    return found;
}

void growth_hold(struct growth *g, uint64_t held_bytes)
{
    growth_size_measure(&g->held, g->step + 1 - g->start, held_bytes);
}

void growth_call(struct growth *g)
{
    struct growth_calls *c = &g->calls;
    const struct growth_size *s = &c->size;

    growth_size_measure(&c->size, ++c->count, g->requested_bytes);
    if (s->fell || c->count < GROWTH_STEPS ||
        !rise_goes_on(&s->rise, c->count, SIZES) ||
        s->uneven > s->rise.times / 4 || c->count < c->found_count)
        return;
    c->found = calls_found(g);
    c->found_count = c->count;
    c->found_bytes = g->requested_bytes;
}

void growth_restart(struct growth *g)
{
    size_t cursor = 0;

    g->calls = (struct growth_calls){.count = 0};

    for (struct growth_kind *kind; (kind = map_next(&g->kinds, &cursor));) {
        kind->old = (struct growth_rise){0};
        kind->size = (struct growth_size){.bytes = kind->requested_bytes};
    }
    g->size = (struct growth_size){.bytes = g->live.bytes};
    g->peaks = (struct growth_size){.bytes = g->peak_bytes};
    g->held = (struct growth_size){.bytes = g->held.bytes};
    g->start = g->step;
}

unsigned growth_steps(const struct growth *g)
{
    return g->step - g->start;
}

static bool size_grows(const struct growth_size *s, unsigned step)
{
    return !s->fell && rise_goes_on(&s->rise, step, SIZES) &&
           s->uneven <= s->rise.times / 4;
}

/* Uneven rises have to be in half of the steps, and nothing may fall: where a
 * level only jitters, new heights become rare. */
struct growth_rate growth_size_rate(const struct growth_size *s, unsigned steps)
{
    bool even = s->uneven <= s->rise.times / 4;
    bool often = !s->fell && 2 * s->rise.times + WARM_UP >= steps;
    bool grows = rise_goes_on(&s->rise, steps, SIZES) && (even || often);

    return grows ? (struct growth_rate){rise_rate(&s->rise), s->least, s->most}
                 : (struct growth_rate){0};
}

/* A tensor that is appended to in every step, and each time by more. */
static void size_accelerate(const struct growth_size *s,
                            struct growth_found *found)
{
    bool each = s->rise.longest == 1 && s->rise.last > s->first_step;

    if (!each || s->increment <= s->first_increment + s->first_increment / 4)
        return;
    found->step_bytes = s->increment;
    found->step_more = (s->increment - s->first_increment) /
                       (s->rise.last - s->first_step);
}

static bool kind_grows(const struct growth_kind *kind, unsigned step,
                       struct growth_found *found)
{
    bool blocks = rise_goes_on(&kind->old, step, RISES);

    if (!blocks && !size_grows(&kind->size, step))
        return false;
    *found = (struct growth_found){
        .key = kind_key(kind, false),
        .category = kind->category,
        .form = blocks ? GROWTH_BLOCKS : GROWTH_TENSOR,
        .step_bytes = rise_rate(blocks ? &kind->old : &kind->size.rise),
    };
    if (!blocks)
        size_accelerate(&kind->size, found);
    return found->step_bytes > 0;
}

static int found_compare(const void *x, const void *y)
{
    const struct growth_found *a = x, *b = y;

    if (a->step_bytes != b->step_bytes)
        return a->step_bytes > b->step_bytes ? -1 : 1;
    if (a->key.operation != b->key.operation)
        return a->key.operation < b->key.operation ? -1 : 1;
    return a->key.module < b->key.module ? -1 : a->key.module > b->key.module;
}

/* Each step leaves blocks behind, but never of the same kind. */
static bool all_grows(const struct growth *g, struct growth_found *found)
{
    const struct growth_rise *r = &g->size.rise;

    if (g->size.fell || !rise_goes_on(r, growth_steps(g), SIZES) ||
        g->live.blocks < g->first_blocks + r->times - 1)
        return false;
    *found = (struct growth_found){
        .form = GROWTH_VARIED,
        .step_bytes = rise_rate(r),
    };
    return true;
}

size_t growth_find(const struct growth *g, struct growth_found **found)
{
    size_t count = 0, capacity = 0, cursor = 0;

    *found = NULL;
    if (!g->kinds.count || growth_steps(g) + 1 < GROWTH_STEPS)
        return 0;
    for (const struct growth_kind *kind;
         (kind = map_next(&g->kinds, &cursor));) {
        xgrow(found, count, &capacity, sizeof **found);
        count += kind_grows(kind, growth_steps(g), &(*found)[count]);
    }
    if (!count)
        count = all_grows(g, &(*found)[0]);
    if (count)
        qsort(*found, count, sizeof **found, found_compare);
    return count;
}

/* The blocks' own growth has lines of its own. */
uint64_t growth_held_bytes(const struct growth *g)
{
    const struct growth_rise *r = &g->held.rise;
    unsigned steps = growth_steps(g);
    bool grows = rise_goes_on(r, steps, SIZES) && !g->held.fell &&
                 !rise_goes_on(&g->size.rise, steps, RISES);

    return grows && growth_steps(g) + 1 >= GROWTH_STEPS ? rise_rate(r) : 0;
}

uint64_t growth_peak_bytes(const struct growth *g)
{
    const struct growth_size *p = &g->peaks;

    return !p->fell && rise_goes_on(&p->rise, growth_steps(g), SIZES)
               ? rise_rate(&p->rise)
               : 0;
}

void growth_fini(struct growth *g)
{
    size_t cursor = 0;

    for (struct growth_kind *kind; (kind = map_next(&g->kinds, &cursor));) {
        for (struct growth_place *p = kind->places, *next; p; p = next) {
            next = p->next;
            free(p);
        }
        free(kind);
    }
    map_fini(&g->kinds);
}
