/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/result/replay_history.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/map.h"
#include "common/base/xmalloc.h"
#include "memsim/attribution/history.h"

/* An allocator's event says what was requested; what it gave is what its
 * allocated bytes rose by in that step. */
struct maker {
    unsigned device;
    struct attribution *to;
    struct memory_curve timeline;
    struct moment now;
    uint64_t start_ns;
    bool started;
    struct map live;    /* blocks, by address */
    struct map stacks;  /* 1 + a place in the texts, by a stack's number */
    struct map origins; /* likewise: the operator of a stack */
    size_t text_capacity;
    struct history_block *born; /* in this step; NULL: none */
};

/* --- texts ---------------------------------------------------------------- */

/* A trace of memsim's has these two as a stack's first frames. */
static bool is_frame(const struct snapshot_frames *f,
                     const struct snapshot_stack *s, size_t place,
                     const char *file)
{
    const struct snapshot_frame *frame = &f->frames[s->first + place];

    return place < s->count && !frame->line &&
           !strcmp(snapshot_text(f, frame->file), file);
}

static bool is_operator(const struct snapshot_frames *f,
                        const struct snapshot_stack *s, size_t place)
{
    return is_frame(f, s, place, RECORDING_OPERATOR);
}

static bool is_module(const struct snapshot_frames *f,
                      const struct snapshot_stack *s, size_t place)
{
    return is_frame(f, s, place, RECORDING_MODULE);
}

/* "FILE:LINE NAME" of each line of Python, the innermost first; of a stack
 * without any, the names of all its frames. Empty: it says nothing. */
static char *stack_text(const struct snapshot_frames *f,
                        const struct snapshot_stack *s, bool python)
{
    char *text;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    const char *between = "";

    if (!out)
        abort(); /* only for lack of memory */
    for (size_t i = 0; i < s->count; i++) {
        const struct snapshot_frame *frame = &f->frames[s->first + i];

        if (python != snapshot_is_python(f, frame) || is_operator(f, s, i) ||
            is_module(f, s, i))
            continue;
        if (python)
            fprintf(out, "%s%s:%u ", between, snapshot_text(f, frame->file),
                    frame->line);
        else
            fputs(between, out);
        fputs(snapshot_text(f, frame->name), out);
        between = "\n";
    }
    fclose(out);
    return text;
}

static uint64_t text_add(struct maker *m, char *text)
{
    struct attribution_history *lives = &m->to->lives;

    if (!*text) {
        free(text);
        return 0;
    }
    xgrow(&lives->texts, lives->text_count, &m->text_capacity,
          sizeof *lives->texts);
    lives->texts[lives->text_count++] = text;
    return lives->text_count;
}

static const struct snapshot_stack *stack_find(const struct snapshot_frames *f,
                                               uint32_t number)
{
    return number && number <= f->stack_count ? &f->stacks[number - 1] : NULL;
}

static char *stack_words(const struct snapshot_frames *f, uint32_t number)
{
    const struct snapshot_stack *stack = stack_find(f, number);
    char *text = stack ? stack_text(f, stack, true) : xstrdup("");

    if (*text || !stack)
        return text;
    free(text);
    return stack_text(f, stack, false);
}

/* "aten::add of blocks.0": what a trace of memsim's has for the stack. */
static char *origin_words(const struct snapshot_frames *f, uint32_t number)
{
    const struct snapshot_stack *stack = stack_find(f, number);
    const struct snapshot_frame *first =
        stack ? &f->frames[stack->first] : NULL;

    if (!stack || !is_operator(f, stack, 0))
        return xstrdup("");
    return is_module(f, stack, 1)
               ? xasprintf("%s of %s", snapshot_text(f, first[0].name),
                           snapshot_text(f, first[1].name))
               : xstrdup(snapshot_text(f, first->name));
}

/* The place of the text that WORDS makes of the stack NUMBER, from 1; 0: it
 * has none. PLACES has those so far. */
static uint64_t text_place(struct maker *m, const struct snapshot_frames *f,
                           struct map *places, uint32_t number,
                           char *(*words)(const struct snapshot_frames *f,
                                          uint32_t number))
{
    uintptr_t place = (uintptr_t)map_get(places, number + UINT64_C(1));

    if (!place) {
        place = 1 + text_add(m, words(f, number));
        map_put(places, number + UINT64_C(1), (void *)place);
    }
    return place - 1;
}

/* --- lives ---------------------------------------------------------------- */

static void block_open(struct maker *m, const struct snapshot_event *e,
                       const struct snapshot_frames *frames)
{
    struct history_block *b = xmalloc(sizeof *b);

    *b = (struct history_block){
        .address = e->address,
        .bytes = e->bytes,
        .requested_bytes = e->bytes,
        .died = UINT64_MAX,
        .stack = text_place(m, frames, &m->stacks, e->stack, stack_words),
        .operation = text_place(m, frames, &m->origins, e->stack, origin_words),
        .category = TRACE_CATEGORY_OTHER,
    };
    free(map_put(&m->live, e->address, b)); /* freed unseen */
    m->born = b;
}

static void block_tell(struct maker *m, const struct history_block *b,
                       int64_t bytes)
{
    memory_curve_add(&m->timeline, &m->now, b->category, bytes);
    history_event(m->to->lives.history, &m->now, b, bytes);
}

static void block_close(struct maker *m, uint64_t address)
{
    struct history_block *b = map_take(&m->live, address);

    if (!b)
        return;
    m->now.events++;
    m->now.ordinal++;
    m->now.allocated_bytes -= b->bytes;
    block_tell(m, b, -(int64_t)b->bytes);
    b->died = m->now.events;
    b->died_ns = m->now.time_ns;
    history_put(m->to->lives.history, b);
    free(b);
}

static void clock_set(struct maker *m, uint64_t ns)
{
    if (!m->started)
        m->start_ns = ns;
    m->started = true;
    m->now.time_ns = ns > m->start_ns ? ns - m->start_ns : 0;
}

static void take_event(void *context, unsigned device,
                       const struct snapshot_event *e,
                       const struct snapshot_frames *frames)
{
    struct maker *m = context;

    if (device != m->device)
        return;
    clock_set(m, e->time_us * 1000);
    if (e->action == ALLOC_ALLOC)
        block_open(m, e, frames);
    else if (e->action == ALLOC_FREE_REQUESTED)
        block_close(m, e->address);
}

static void take_moment(void *context, const struct replay_moment *at)
{
    struct maker *m = context;
    struct history_block *b = m->born;

    if (at->device != m->device)
        return;
    m->now.reserved_bytes = at->reserved_bytes;
    m->born = NULL;
    if (!b)
        return;
    if (at->allocated_bytes > m->now.allocated_bytes)
        b->bytes = at->allocated_bytes - m->now.allocated_bytes;
    m->now.events++;
    m->now.ordinal++;
    m->now.allocated_bytes += b->bytes;
    b->born = m->now.events;
    b->born_ns = m->now.time_ns;
    block_tell(m, b, (int64_t)b->bytes);
}

/* What a snapshot had before its first event. */
static void initial_take(struct maker *m, const struct recording *rec)
{
    const struct snapshot *initial = &rec->snapshot_source.initial;

    for (size_t i = 0; !rec->trace && i < initial->segment_count; i++) {
        const struct snapshot_segment *g = &initial->segments[i];

        if (g->device != m->device)
            continue;
        m->now.reserved_bytes += g->bytes;
        for (size_t k = 0; k < g->block_count; k++) {
            const struct snapshot_block *b = &g->blocks[k];
            const struct snapshot_event e = {.address = b->address,
                                             .bytes = b->bytes,
                                             .stack = b->stack};
            if (b->state != SNAPSHOT_ALLOCATED)
                continue;
            block_open(m, &e, &rec->snapshot.frames);
            m->now.allocated_bytes += b->bytes;
            block_tell(m, m->born, (int64_t)b->bytes);
            m->born = NULL;
        }
    }
}

static void lives_conclude(struct maker *m)
{
    struct attribution *to = m->to;
    size_t cursor = 0;

    history_conclude(to->lives.history, &m->now);
    for (struct history_block *b; (b = map_next(&m->live, &cursor));) {
        history_put(to->lives.history, b);
        free(b);
    }
    to->lives.points = memory_curve_conclude(&to->lives.history->points,
                                             &to->lives.point_count);
    to->points = memory_curve_conclude(&m->timeline, &to->point_count);
    to->point_bytes = m->timeline.least_bytes;
}

/* --- segments ------------------------------------------------------------- */

struct looker {
    struct attribution *to;
    unsigned device;
};

static void block_look(struct attribution *a, const struct snapshot_block *b,
                       const struct snapshot_frames *frames)
{
    bool used = b->state != SNAPSHOT_INACTIVE;
    char *stack = used ? stack_words(frames, b->stack) : NULL;
    char *origin = used ? origin_words(frames, b->stack) : NULL;

    if (stack && !*stack) {
        free(stack);
        stack = NULL;
    }
    if (origin && !*origin) {
        free(origin);
        origin = NULL;
    }
    a->blocks[a->block_count++] = (struct attribution_block){
        .address = b->address,
        .bytes = b->bytes,
        .allocated = used,
        .module = SIZE_MAX,
        .category = TRACE_CATEGORY_OTHER,
        .stack = stack,
        .operation = origin,
        .label = xstrdup(""),
    };
}

static void segment_look(struct attribution *a,
                         const struct snapshot_segment *g,
                         const struct snapshot_frames *frames)
{
    a->segments = xreallocarray(a->segments, a->segment_count + 1,
                                sizeof *a->segments);
    a->segments[a->segment_count++] = (struct attribution_segment){
        .address = g->address,
        .bytes = g->bytes,
        .stream = g->stream,
        .pool = {g->pool.first, g->pool.second},
        .first = a->block_count,
        .count = g->block_count,
    };
    a->blocks = xreallocarray(a->blocks, a->block_count + g->block_count + 1,
                              sizeof *a->blocks);
    for (size_t i = 0; i < g->block_count; i++)
        block_look(a, &g->blocks[i], frames);
}

static void history_look(void *context, const struct snapshot *at)
{
    const struct looker *l = context;

    for (size_t i = 0; i < at->segment_count; i++)
        if (at->segments[i].device == l->device)
            segment_look(l->to, &at->segments[i], &at->frames);
}

struct attribution *replay_history_make(const struct recording *rec,
                                        unsigned device, struct err *err)
{
    struct maker m = {.device = device,
                      .to = xcalloc(1, sizeof *m.to)};
    const struct recording_listener listener = {take_event, take_moment, &m};
    struct looker looker = {m.to, device};

    m.to->lives.history = xcalloc(1, sizeof *m.to->lives.history);
    history_step(m.to->lives.history, &m.now, HISTORY_BEFORE);
    initial_take(&m, rec);
    int rc = recording_follow(rec, &listener, err);
    lives_conclude(&m);
    if (!rc && device == rec->whatif.device)
        rc = recording_blocks(rec, history_look, &looker, err);
    memory_curve_fini(&m.timeline);
    map_fini(&m.live);
    map_fini(&m.stacks);
    map_fini(&m.origins);
    if (!rc)
        return m.to;
    attribution_destroy(m.to);
    return NULL;
}
