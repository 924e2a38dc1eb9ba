/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/change/pipe_profile.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"
#include "memsim/change/gradient_marks.h"
#include "memsim/change/layer_after.h"
#include "memsim/change/layer_period.h"

/* A step while it is cut. Operations are those of the marks. */
struct cutting {
    struct pipe_cut *c;
    uint32_t index;
    size_t first, end; /* operations of the step */
    struct layer_region *regions; /* from FIRST on: of passes, in their order */
    size_t count, capacity;
};

static uint32_t thread_of(const struct pipe_cut *c, size_t op)
{
    return c->records->all[c->marks->ops[op]].thread;
}

/* The layers of what one thread launched without another one's doing: of the
 * script's a forward, of autograd's a backward. */
static void regions_find(struct cutting *k)
{
    const struct pipe_cut *c = k->c;
    size_t next;

    k->count = 0;
    for (size_t op = k->first; op < k->end; op = next) {
        struct layer_region region;
        next = layer_run_end(c->marks, c->records, op, k->end);
        if (next - op < c->layers ||
            !layer_region_find(c->marks->marks + op, next - op, c->layers, 1,
                               &region) ||
            region.period < LAYER_PERIOD_MIN ||
            layer_op_is_list(c->marks, c->records, op + region.at))
            continue;
        region.at += op - k->first;
        xgrow(&k->regions, k->count, &k->capacity, sizeof *k->regions);
        k->regions[k->count++] = region;
    }
}

static int profile_refuse(const struct cutting *k, const char *why,
                          struct err *err)
{
    if (k->c->refusal)
        return err_set(err,
                       "%s of step %" PRIu32 " of this profile, with %" PRIu32
                       " layers: %s",
                       k->c->refusal, k->index, k->c->layers, why);
    return err_set(err,
                   "--change: stages cannot be made of step %" PRIu32
                   " of this profile, with %" PRIu32 " layers: %s. Of a "
                   "recording (`memsim run') more is known; stages=N+N... says "
                   "how many layers there are",
                   k->index, k->c->layers, why);
}

/* --- cuts ----------------------------------------------------------------- */

/* The record where operation OP begins, with what is said of it before. */
static size_t record_at(const struct cutting *k, size_t op)
{
    if (op >= k->end)
        return k->c->records->steps.steps[k->index].end;
    return op ? layer_marks_behind(k->c->marks, k->c->records, op) : 0;
}

/* The operation that the first layer of REGION begins with. What repeats may be
 * longer than the layers: what is before the first one is like the end of one,
 * and what is behind the last like the begin. Or shorter: the first differs. */
static size_t region_base(const struct cutting *k,
                          const struct layer_region *region)
{
    size_t all = k->c->layers * region->period;
    size_t at = k->first + region->at;

    if (region->length >= all)
        return at + (region->length - all) / 2;
    size_t less = all - region->length;
    return at - k->first > less ? at - less : k->first;
}

static void cuts_make(const struct cutting *k, struct pipe_pass *p,
                      const struct layer_region *region, bool backward)
{
    uint32_t layers = k->c->layers;
    size_t base = region_base(k, region);

    p->cuts = xcalloc(layers, sizeof *p->cuts);
    for (uint32_t i = 0; i < layers; i++) {
        size_t record = record_at(k, base + i * region->period);
        if (record < p->from)
            record = p->from;
        if (record > p->until)
            record = p->until;
        p->cuts[backward ? layers - 1 - i : i] = record;
    }
}

/* --- passes --------------------------------------------------------------- */

/* The first operation of [FROM, UNTIL) that THREAD launched; UNTIL: none. */
static size_t first_of(const struct pipe_cut *c, size_t from, size_t until,
                       uint32_t thread)
{
    while (from < until && thread_of(c, from) != thread)
        from++;
    return from;
}

/* The record behind the last operation before UNTIL that THREAD launched, and
 * what that says of it. */
static size_t end_of(const struct cutting *k, size_t until, uint32_t thread)
{
    const struct records *r = k->c->records;

    while (until > k->first && thread_of(k->c, until - 1) != thread)
        until--;
    size_t at = k->c->marks->ops[until - 1] + 1;
    size_t end = r->steps.steps[k->index].end;
    while (at < end && r->all[at].thread == thread &&
           (r->all[at].kind == TRACE_EVENT_RECORD ||
            r->all[at].kind == TRACE_MARK))
        at++;
    return at;
}

/* Regions I, of a forward, and I + 1, of its backward. */
static int microbatch_cut(struct cutting *k, size_t i, struct err *err)
{
    struct pipe_step *step = &k->c->steps[k->index];
    const struct layer_region *forward = &k->regions[i];
    const struct layer_region *backward = forward + 1;
    size_t behind = k->first + forward->at + forward->length;
    size_t next = i + 2 < k->count ? k->first + k->regions[i + 2].at : k->end;
    uint32_t thread = thread_of(k->c, k->first + backward->at);

    if (thread_of(k->c, k->first + forward->at) != k->c->thread ||
        thread == k->c->thread)
        return profile_refuse(
            k,
            "what repeats is not a forward and then a backward, "
            "which has a thread of its own",
            err);
    xgrow(&step->all, step->count, &step->capacity, sizeof *step->all);
    struct pipe_microbatch *m = &step->all[step->count++];
    *m = (struct pipe_microbatch){.feed_from = 0};
    m->forward.from =
        i ? step->all[step->count - 2].backward.until : step->head_until;
    m->backward.from = m->forward.until = record_at(
        k, first_of(k->c, behind, k->first + backward->at, thread));
    m->backward.until = end_of(k, next, thread);
    cuts_make(k, &m->forward, forward, false);
    cuts_make(k, &m->backward, backward, true);
    return 0;
}

static bool is_in_layers(const struct cutting *k, size_t op)
{
    for (size_t i = 0; i < k->count; i++) {
        size_t first = k->first + k->regions[i].at;
        if (op >= first && op < first + k->regions[i].length)
            return true;
    }
    return false;
}

/* Does a step send or receive between its layers? Experts do in them. */
static bool is_stage(const struct cutting *k)
{
    const struct records *r = k->c->records;

    for (size_t op = k->first; op < k->end; op++) {
        const struct record *record = &r->all[k->c->marks->ops[op]];
        if (record->kind != TRACE_COLLECTIVE || is_in_layers(k, op))
            continue;
        const char *name = trace_names_get(
            &r->names,
            ((const struct trace_work *)records_fields(r, record))->name);
        if (strstr(name, "SendRecv") || strstr(name, "ncclSend") ||
            strstr(name, "ncclRecv"))
            return true;
    }
    return false;
}

static int step_cut(struct cutting *k, struct err *err)
{
    struct pipe_step *step = &k->c->steps[k->index];
    const struct records *r = k->c->records;
    const struct step *s = &r->steps.steps[k->index];

    regions_find(k);
    if (is_stage(k))
        return profile_refuse(k, "it sends and receives, as one stage of a "
                                 "pipeline does: give the profile of a rank "
                                 "that has all layers", err);
    if (!k->count || k->count % 2)
        return profile_refuse(
            k,
            "nothing in it repeats as often in a forward and in a "
            "backward, which has a thread of its own, or something "
            "else does, too, such as an optimizer for one "
            "parameter after the other",
            err);
    k->c->thread = thread_of(k->c, k->first + k->regions[0].at);
    step->head_from = s->first;
    step->head_until = s->first + 1; /* the range */
    for (size_t i = 0; i < k->count; i += 2)
        if (microbatch_cut(k, i, err))
            return -1;
    step->after_from = step->all[step->count - 1].backward.until;
    step->after_until = s->end;
    if (s->end < r->count && r->all[s->end].kind == TRACE_RANGE_POP)
        step->after_until++;
    step->after_first = k->end;
    while (step->after_first > k->first &&
           k->c->marks->ops[step->after_first - 1] >= step->after_from)
        step->after_first--;
    step->after_end = k->end;
    step->cut = true;
    return 0;
}

/* --- what goes between ---------------------------------------------------- */

/* Bytes of an element of the result of L, a kernel of PyTorch's NAME. */
static uint64_t result_bytes(const struct trace_launch *l, const char *name)
{
    if (l->c & 0xff)
        return l->c & 0xff;
    if (strstr(name, "BFloat16") || strstr(name, "Half"))
        return 2;
    return strstr(name, "double") ? 8 : 4;
}

/* The bytes of what a layer gives to the next one: of the last sum of two
 * tensors in it, as a residual connection makes; 0: there is none. */
static uint64_t output_bytes(const struct pipe_cut *c, size_t first, size_t end)
{
    for (size_t op = end; op-- > first;) {
        const struct record *record = &c->records->all[c->marks->ops[op]];
        const struct trace_launch *l =
            (const struct trace_launch *)records_fields(c->records, record);
        if (record->kind != TRACE_LAUNCH)
            continue;
        uint32_t rule = (uint32_t)(l->shared_bytes_rule >> 32);
        const char *name = trace_names_get(&c->records->names, l->name);
        if ((rule == TRACE_RULE_ELEMENTWISE || rule == TRACE_RULE_STRIDED) &&
            l->b == 3 && strstr(name, "add"))
            return l->a * result_bytes(l, name);
    }
    return 0;
}

static void boundaries_find(const struct cutting *k)
{
    struct pipe_cut *c = k->c;
    const struct layer_region *forward = &k->regions[0];
    size_t base = region_base(k, forward);
    uint64_t bytes = output_bytes(c, base, base + forward->period);

    c->stream = ((const struct trace_work *)records_fields(
                     c->records, &c->records->all[c->marks->ops[base]]))
                    ->stream;
    c->device = 0;
    for (uint32_t i = 0; i < c->layers; i++)
        c->boundaries[i] = (struct pipe_boundary){
            bytes, bytes ? NULL
                         : "the profile does not say how large what goes from "
                           "the one to the other is: record it with "
                           "record_shapes=True"};
}

/* --- the whole ------------------------------------------------------------ */

/* A step at an end of the profile may have what is left of another one. */
int pipe_profile_cut(struct pipe_cut *c, struct err *err)
{
    const struct layer_marks *m = c->marks;
    struct cutting k = {.c = c};
    struct err why = {""};
    bool any = false;

    c->steps = xcalloc(c->records->steps.count + 1, sizeof *c->steps);
    c->boundaries = xcalloc(c->layers, sizeof *c->boundaries);
    for (size_t i = 0; i < m->segment_count; i++) {
        k.index = m->segments[i].step;
        k.first = m->segments[i].first;
        k.end = m->segments[i].end;
        if (step_cut(&k, &why)) {
            pipe_step_fini(&c->steps[k.index]);
            continue;
        }
        boundaries_find(&k);
        any = true;
    }
    free(k.regions);
    return any ? 0 : err_set(err, "%s", why.text);
}

/* The layer, from 1, whose gradients the backward P computes at RECORD. */
static uint32_t layer_at(const struct pipe_cut *c, const struct pipe_pass *p,
                         size_t record)
{
    uint32_t layer = c->layers;

    while (layer > 1 && p->cuts[layer - 2] <= record)
        layer--;
    return layer;
}

void pipe_profile_parameters(const struct pipe_cut *c, struct records *r,
                             uint32_t **layers)
{
    const struct pipe_step *step = NULL;
    size_t capacity = 0;

    for (size_t i = 0; i < r->steps.count; i++)
        if (c->steps[i].cut)
            step = &c->steps[i];
    *layers = NULL;
    if (!step)
        return;
    const struct pipe_pass *p = &step->all[step->count - 1].backward;
    for (size_t i = p->from; i < p->until; i++) {
        struct gradient_mark g;
        if (!gradient_mark_read(r, i, &g))
            continue;
        xgrow(layers, r->parameter_count, &capacity, sizeof **layers);
        (*layers)[r->parameter_count] = layer_at(c, p, i);
        xgrow(&r->parameters, r->parameter_count, &r->parameter_capacity,
              sizeof *r->parameters);
        r->parameters[r->parameter_count++] =
            (struct parameter){0, g.elements, g.each};
    }
}

void pipe_profile_after(struct rewrite *w, const struct pipe_cut *c,
                        const struct pipe_step *step, double share)
{
    layer_scale_lists(w, c->marks, step->after_first, step->after_end, share);
}
