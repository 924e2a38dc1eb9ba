/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/change/pipe_cut.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/bisect.h"
#include "common/base/xmalloc.h"

#define NOT_YET SIZE_MAX

/* --- modules -------------------------------------------------------------- */

/* Notes which layer each module is in: "blocks.3.attn" in 3. */
static void modules_place(struct pipe_cut *c)
{
    const struct records *r = c->records;
    size_t length = strlen(c->modules->prefix);

    for (size_t i = 0; i < r->module_count; i++) {
        const char *name = trace_names_get(&r->names, r->modules[i].name);
        char *end;
        if (strncmp(name, c->modules->prefix, length) || name[length] != '.' ||
            name[length + 1] < '0' || name[length + 1] > '9')
            continue;
        unsigned long layer = strtoul(name + length + 1, &end, 10);
        if (layer >= c->layers || (*end && *end != '.'))
            continue;
        void *value = (void *)(uintptr_t)(layer + 1);
        map_put(&c->layer_by_module, r->modules[i].module, value);
        if (!*end)
            map_put(&c->layer_itself, r->modules[i].module, value);
    }
}

/* The layer that MODULE is in, from 1; 0: none. */
static uint32_t layer_in(const struct map *layers, uint64_t module)
{
    return module ? (uint32_t)(uintptr_t)map_get(layers, module) : 0;
}

/* The module that RECORD names; 0: none. */
static uint64_t module_named(const struct pipe_cut *c,
                             const struct record *record)
{
    const uint64_t *f = records_fields(c->records, record);

    if (record->kind == TRACE_BLOCK_ALLOC)
        return ((const struct trace_block_alloc *)f)->module;
    if (record->kind == TRACE_MODULE_ENTER)
        return ((const struct trace_module_enter *)f)->module;
    return 0;
}

/* --- operations ----------------------------------------------------------- */

/* The first operation at or behind RECORD. */
static size_t op_from(const struct pipe_cut *c, size_t record)
{
    return BISECT(i, c->marks->count, c->marks->ops[i] < record);
}

static size_t ops_between(const struct pipe_cut *c, size_t from, size_t until)
{
    return op_from(c, until) - op_from(c, from);
}

static uint64_t stream_of(const struct pipe_cut *c, const struct record *record,
                          uint64_t *device)
{
    const uint64_t *f = records_fields(c->records, record);

    if (record->kind == TRACE_COPY || record->kind == TRACE_SET) {
        *device = ((const struct trace_set *)f)->device;
        return ((const struct trace_set *)f)->stream;
    }
    *device = ((const struct trace_work *)f)->device;
    return ((const struct trace_work *)f)->stream;
}

static int refuse_pass(const struct pipe_cut *c, size_t record, const char *why,
                       struct err *err)
{
    (void)c;
    return err_set(err,
                   "--change: stages cannot be made of this recording: %s "
                   "(record %zu). `memsim run' of the changed script needs no "
                   "GPU",
                   why, record);
}

/* One stream, no collectives, no graphs: what is moved must not wait for what
 * is elsewhere. */
static int check_work(struct pipe_cut *c, const struct pipe_pass *p,
                      struct err *err)
{
    for (size_t i = p->from; i < p->until; i++) {
        const struct record *record = &c->records->all[i];
        if (record->kind == TRACE_COLLECTIVE)
            return refuse_pass(c, i,
                               "its layers call collectives, so that it "
                               "is one of several ranks",
                               err);
        if (record->kind == TRACE_GRAPH_LAUNCH)
            return refuse_pass(c, i, "its layers are in CUDA graphs", err);
        if (record->kind == TRACE_STREAM_WAIT)
            return refuse_pass(c, i, "its layers work on several streams", err);
    }
    for (size_t op = op_from(c, p->from); op < op_from(c, p->until); op++) {
        const struct record *record = &c->records->all[c->marks->ops[op]];
        uint64_t device, stream = stream_of(c, record, &device);
        if (c->stream == UINT64_MAX) {
            c->stream = stream;
            c->device = device;
        }
        if (stream != c->stream || device != c->device)
            return refuse_pass(c, c->marks->ops[op],
                               "its layers work on several streams", err);
    }
    return 0;
}

/* --- forward -------------------------------------------------------------- */

static int refuse_layers(const struct pipe_cut *c, const struct pipe_pass *p,
                         const char *pass, struct err *err)
{
    return err_set(err,
                   "--change: stages cannot be made of this recording: a %s "
                   "(records %zu to %zu) does not go through the %" PRIu32
                   " layers of %s once, one after the other. `memsim run' of "
                   "the changed script needs no GPU",
                   pass, p->from, p->until, c->layers, c->modules->prefix);
}

static int cut_forward(struct pipe_cut *c, struct pipe_pass *p, struct err *err)
{
    uint32_t next = 0;

    p->cuts = xcalloc(c->layers, sizeof *p->cuts);
    for (size_t i = p->from; i < p->until; i++) {
        const struct record *record = &c->records->all[i];
        if (record->kind != TRACE_MODULE_ENTER)
            continue;
        uint32_t layer = layer_in(&c->layer_itself, module_named(c, record));
        if (!layer)
            continue;
        if (layer != next + 1)
            return refuse_layers(c, p, "forward", err);
        c->thread = record->thread;
        p->cuts[next++] = i;
    }
    return next == c->layers ? check_work(c, p, err)
                             : refuse_layers(c, p, "forward", err);
}

/* Gradients begin with a 1 that the forward's thread makes: it is a part of the
 * backward. */
static void ones_move(const struct pipe_cut *c, struct pipe_microbatch *m)
{
    for (size_t i = m->forward.until; i-- > m->forward.from;) {
        const struct record *record = &c->records->all[i];
        if (record->kind != TRACE_BLOCK_ALLOC)
            continue;
        const struct trace_block_alloc *a =
            (const struct trace_block_alloc *)records_fields(c->records,
                                                             record);
        if (strcmp(trace_names_get(&c->records->names, a->operator),
                   "aten::ones_like"))
            return;
        m->forward.until = m->backward.from = i;
        return;
    }
}

/* --- backward ------------------------------------------------------------- */

/* What names no module, or one outside of the layers, goes with what comes
 * before. */
static int cut_backward(struct pipe_cut *c, struct pipe_pass *p,
                        struct err *err)
{
    uint32_t at = c->layers + 1; /* the layer that is worked on, from 1 */

    p->cuts = xcalloc(c->layers, sizeof *p->cuts);
    for (size_t i = p->from; i < p->until; i++) {
        uint32_t layer =
            layer_in(&c->layer_by_module, module_named(c, &c->records->all[i]));
        if (!layer || layer == at)
            continue;
        if (layer + 1 != at)
            return refuse_layers(c, p, "backward", err);
        at = layer;
        p->cuts[layer - 1] = i;
    }
    return at == 1 ? check_work(c, p, err)
                   : refuse_layers(c, p, "backward", err);
}

/* --- steps ---------------------------------------------------------------- */

static struct pipe_microbatch *microbatch_add(struct pipe_step *step,
                                              const struct segment *s)
{
    xgrow(&step->all, step->count, &step->capacity, sizeof *step->all);
    struct pipe_microbatch *m = &step->all[step->count++];
    *m = (struct pipe_microbatch){
        .forward = {.from = s->from, .until = s->until}};
    m->feed_until = s->from;
    m->feed_from =
        step->count > 1 ? step->all[step->count - 2].backward.until : s->from;
    return m;
}

/* Where the backward that S has ends: what the script calls behind it, on
 * another thread than autograd's, is in the same phase. */
static size_t backward_end(const struct pipe_cut *c, const struct segment *s)
{
    uint32_t thread = c->records->all[s->from].thread;

    for (size_t op = s->end; op-- > s->first;)
        if (c->records->all[c->marks->ops[op]].thread == thread)
            return op + 1 < s->end ? c->marks->ops[op] + 1 : s->until;
    return s->until;
}

/* Where the microbatches of the step are, by its segments. */
static int step_split(struct pipe_cut *c, uint32_t index, struct err *err)
{
    struct pipe_step *step = &c->steps[index];
    struct pipe_microbatch *m = NULL;
    bool forward = false; /* the last pass */

    step->after_until = c->records->steps.steps[index].end;
    for (size_t i = 0; i < c->marks->segment_count; i++) {
        const struct segment *s = &c->marks->segments[i];
        if (s->step != index || s->from == s->until)
            continue;
        if (s->kind == SEGMENT_FORWARD && forward) {
            m->forward.until = s->until;
        } else if (s->kind == SEGMENT_FORWARD) {
            m = microbatch_add(step, s);
            forward = true;
        } else if (s->kind == SEGMENT_BACKWARD && m) {
            if (forward)
                m->backward.from = s->from;
            m->forward.until = m->backward.from;
            m->backward.until = backward_end(c, s);
            forward = false;
        }
    }
    if (!m || forward)
        return err_set(err,
                       "--change: stages cannot be made of this recording: "
                       "step %" PRIu32 " has no forward and backward",
                       index);
    step->after_from = m->backward.until;
    step->after_first = op_from(c, step->after_from);
    step->after_end = op_from(c, step->after_until);
    return 0;
}

void pipe_step_fini(struct pipe_step *step)
{
    for (size_t i = 0; i < step->count; i++) {
        free(step->all[i].forward.cuts);
        free(step->all[i].backward.cuts);
    }
    free(step->all);
    *step = (struct pipe_step){.count = 0};
}

static int step_cut(struct pipe_cut *c, uint32_t index, struct err *err)
{
    struct pipe_step *step = &c->steps[index];

    if (step_split(c, index, err))
        return -1;
    for (size_t i = 0; i < step->count; i++) {
        struct pipe_microbatch *m = &step->all[i];
        ones_move(c, m);
        if (cut_forward(c, &m->forward, err) ||
            cut_backward(c, &m->backward, err))
            return -1;
    }
    step->cut = true;
    return 0;
}

/* --- boundaries ----------------------------------------------------------- */

/* The tensors of MODULE between records FROM and UNTIL: *COUNT of them, and the
 * bytes of the last one. */
static uint64_t value_of(const struct pipe_cut *c, uint32_t layer,
                         const struct pipe_range *range, bool is_output,
                         uint32_t *count)
{
    const struct records *r = c->records;
    uint64_t bytes = 0;

    *count = 0;
    for (size_t i = BISECT(k, r->value_count, r->values[k].at <= range->from);
         i < r->value_count && r->values[i].at <= range->until; i++) {
        const struct module_value *v = &r->values[i];
        if (v->is_output != is_output ||
            layer_in(&c->layer_itself, v->module) != layer + 1)
            continue;
        bytes = v->bytes;
        ++*count;
    }
    return bytes;
}

/* Where layer LAYER of forward P is left. */
static size_t layer_left(const struct pipe_cut *c, const struct pipe_pass *p,
                         uint32_t layer)
{
    for (size_t i = p->cuts[layer]; i < p->until; i++) {
        const struct record *record = &c->records->all[i];
        const uint64_t *f = records_fields(c->records, record);
        if (record->kind == TRACE_MODULE_LEAVE &&
            layer_in(&c->layer_itself,
                     ((const struct trace_module_leave *)f)->module) ==
                layer + 1)
            return i;
    }
    return p->until;
}

/* What LAYER gives to the next one in forward P. */
static void boundary_read(const struct pipe_cut *c, const struct pipe_pass *p,
                          uint32_t layer, struct pipe_boundary *b)
{
    size_t left = layer_left(c, p, layer), next = p->cuts[layer + 1];
    const struct pipe_range own = {p->cuts[layer], left};
    const struct pipe_range gap = {left, next};
    uint32_t outputs, inputs;
    uint64_t bytes = value_of(c, layer, &own, true, &outputs);

    value_of(c, layer + 1, &gap, false, &inputs);
    if (ops_between(c, left, next))
        b->why = "something is computed between the two";
    else if (!outputs)
        b->why = "the recording does not say what the layer returns: it has "
                 "no submodules";
    else if (outputs > 1 || inputs > 1)
        b->why = "more than one tensor goes from the one to the other";
    else if (!bytes || (b->bytes && b->bytes != bytes))
        b->why = "the size of what goes from the one to the other is not "
                 "known, or not always the same";
    b->bytes = bytes;
}

static void boundaries_read(struct pipe_cut *c)
{
    c->boundaries = xcalloc(c->layers, sizeof *c->boundaries);
    for (size_t i = 0; i < c->records->steps.count; i++)
        for (size_t k = 0; c->steps[i].cut && k < c->steps[i].count; k++)
            for (uint32_t layer = 0; layer + 1 < c->layers; layer++)
                boundary_read(c, &c->steps[i].all[k].forward, layer,
                              &c->boundaries[layer]);
}

/* --- the whole ------------------------------------------------------------ */

int pipe_cut_make(struct pipe_cut *c, const struct records *records,
                  const struct layer_marks *marks,
                  const struct layer_modules *modules, struct err *err)
{
    *c = (struct pipe_cut){.records = records,
                           .marks = marks,
                           .modules = modules,
                           .layers = modules->count,
                           .stream = UINT64_MAX};
    c->steps = xcalloc(records->steps.count + 1, sizeof *c->steps);
    modules_place(c);
    for (size_t i = 0; i < records->steps.count; i++) {
        if (!step_cut(c, (uint32_t)i, err))
            continue;
        if (!records->steps.steps[i].warm_up || i + 1 == records->steps.count)
            return -1;
        err_clear(err);
        pipe_step_fini(&c->steps[i]);
    }
    boundaries_read(c);
    return 0;
}

void pipe_cut_fini(struct pipe_cut *c)
{
    for (size_t i = 0; c->steps && i < c->records->steps.count; i++)
        pipe_step_fini(&c->steps[i]);
    free(c->steps);
    free(c->boundaries);
    map_fini(&c->layer_by_module);
    map_fini(&c->layer_itself);
}

struct pipe_range pipe_cut_forward(const struct pipe_cut *c,
                                   const struct pipe_pass *p, uint32_t first,
                                   uint32_t end)
{
    return (struct pipe_range){first ? p->cuts[first] : p->from,
                               end < c->layers ? p->cuts[end] : p->until};
}

struct pipe_range pipe_cut_backward(const struct pipe_cut *c,
                                    const struct pipe_pass *p, uint32_t first,
                                    uint32_t end)
{
    return (struct pipe_range){end < c->layers ? p->cuts[end - 1] : p->from,
                               first ? p->cuts[first - 1] : p->until};
}
