/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/change/pipe_passes.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"

#define NONE SIZE_MAX

/* While a step is read. */
struct finding {
    const struct records *r;
    struct pipe_parts *parts;
    size_t from; /* of the open part; NONE: none is open */
    bool backward, has_work;
    size_t lead_from, lead_until; /* what the next backward begins with */
    uint64_t phase;
    uint32_t depth;     /* of modules, in a forward */
    uint64_t outermost; /* module of the last forward; 0: none yet */
    uint32_t thread;    /* of the open backward, once it has work */
};

static bool is_work(enum trace_kind kind)
{
    return kind >= TRACE_LAUNCH && kind < TRACE_HOST_FUNCTION;
}

/* Is record I where the 1 is allocated that a backward's gradients begin with?
 * The forward's thread makes it. */
static bool is_ones(const struct records *r, size_t i)
{
    const struct trace_block_alloc *a =
        (const struct trace_block_alloc *)records_fields(r, &r->all[i]);

    return r->all[i].kind == TRACE_BLOCK_ALLOC &&
           !strcmp(trace_names_get(&r->names, a->operator), "aten::ones_like");
}

/* Where it begins at the end of [FROM, UNTIL); UNTIL: it is not there. */
static size_t ones_at(const struct records *r, size_t from, size_t until)
{
    for (size_t i = until; i-- > from;)
        if (r->all[i].kind == TRACE_BLOCK_ALLOC)
            return is_ones(r, i) ? i : until;
    return until;
}

static void part_close(struct finding *f, size_t until)
{
    struct pipe_part part = {f->backward, f->from, until, 0, 0};

    if (f->from != NONE && f->has_work) {
        if (f->backward) {
            part.lead_from = f->lead_from;
            part.lead_until = f->lead_until;
            f->lead_from = f->lead_until = 0;
        } else {
            part.until = ones_at(f->r, f->from, until);
            if (part.until != until) {
                f->lead_from = part.until;
                f->lead_until = until;
            }
        }
        xgrow(&f->parts->all, f->parts->count, &f->parts->capacity,
              sizeof *f->parts->all);
        f->parts->all[f->parts->count++] = part;
        f->parts->end = until;
    }
    f->from = NONE;
    f->has_work = false;
}

static void part_open(struct finding *f, size_t from, bool backward)
{
    f->from = from;
    f->backward = backward;
    f->has_work = false;
}

static bool is_backward(const struct finding *f)
{
    return f->phase == TRACE_PHASE_BACKWARD ||
           f->phase == TRACE_PHASE_RECOMPUTE;
}

static void take_phase(struct finding *f, size_t i)
{
    bool was_backward = is_backward(f);

    f->phase = ((const struct trace_phase *)records_fields(f->r, &f->r->all[i]))
                   ->phase;
    if (was_backward && is_backward(f))
        return;
    part_close(f, i);
    f->depth = 0;
    if (is_backward(f) && f->lead_from > f->lead_until)
        f->lead_until = i;
}

/* A forward begins with the outermost module. */
static void take_enter(struct finding *f, size_t i)
{
    if (f->phase != TRACE_PHASE_FORWARD)
        return;
    if (f->depth++)
        return;
    uint64_t module =
        ((const struct trace_module_enter *)records_fields(f->r, &f->r->all[i]))
            ->module;
    part_close(f, i);
    part_open(f, i, false);
    f->parts->several |= f->outermost && f->outermost != module;
    f->outermost = module;
}

/* Does record I make the open part a pass? A backward names modules; what else
 * is done in its phase is behind it. */
static bool pass_counts(const struct finding *f, size_t i)
{
    const struct record *record = &f->r->all[i];
    const struct trace_block_alloc *a =
        (const struct trace_block_alloc *)records_fields(f->r, record);

    if (!f->backward)
        return is_work(record->kind);
    return record->kind == TRACE_BLOCK_ALLOC && a->module;
}

/* Work, or memory for it. */
static void take_work(struct finding *f, size_t i)
{
    if (f->from == NONE && is_backward(f))
        part_open(f, i, true);
    if (f->from == NONE && is_ones(f->r, i))
        f->lead_from = i;
    if (f->from == NONE)
        return;
    if (f->backward && f->has_work && f->r->all[i].thread != f->thread) {
        part_close(f, i); /* the script goes on */
    } else if (pass_counts(f, i)) {
        f->has_work = true;
        f->thread = f->r->all[i].thread;
    }
}

static void record_take(struct finding *f, size_t i)
{
    enum trace_kind kind = f->r->all[i].kind;

    if (kind == TRACE_PHASE) {
        take_phase(f, i);
    } else if (kind == TRACE_COLLECTIVE) {
        part_close(f, i);
    } else if (kind == TRACE_MODULE_ENTER) {
        take_enter(f, i);
    } else if (kind == TRACE_MODULE_LEAVE) {
        f->depth -= f->depth > 0;
    } else if (is_work(kind) || kind == TRACE_BLOCK_ALLOC) {
        take_work(f, i);
    }
}

void pipe_parts_find(struct pipe_parts *parts, const struct records *r,
                     size_t step)
{
    const struct step *s = &r->steps.steps[step];
    struct finding f = {.r = r, .parts = parts, .from = NONE};

    *parts = (struct pipe_parts){.end = s->first};
    for (size_t i = s->first; i < s->end; i++)
        record_take(&f, i);
    part_close(&f, s->end);
}

void pipe_parts_fini(struct pipe_parts *parts)
{
    free(parts->all);
    *parts = (struct pipe_parts){.count = 0};
}

const struct pipe_part *pipe_parts_get(const struct pipe_parts *parts,
                                       bool backward, size_t n)
{
    for (size_t i = 0; i < parts->count; i++)
        if (parts->all[i].backward == backward && !n--)
            return &parts->all[i];
    return NULL;
}
