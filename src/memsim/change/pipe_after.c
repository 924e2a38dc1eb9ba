/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/change/pipe_after.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"
#include "memsim/change/layer_after.h"
#include "memsim/change/list_launches.h"

#define LOOP_MOST 64 /* operations of an optimizer for one parameter */

/* --- which stage ---------------------------------------------------------- */

static const struct pipe_pass *first_forward(const struct pipe_cut *c)
{
    for (size_t i = 0; i < c->records->steps.count; i++)
        if (c->steps[i].cut)
            return &c->steps[i].all[0].forward;
    return NULL;
}

/* Where PASS enters MODULE first; its end: nowhere. */
static size_t entered_at(const struct pipe_cut *c, const struct pipe_pass *p,
                         uint64_t module)
{
    for (size_t i = p->from; i < p->until; i++) {
        const struct record *record = &c->records->all[i];
        if (record->kind == TRACE_MODULE_ENTER &&
            ((const struct trace_module_enter *)records_fields(c->records,
                                                               record))
                    ->module == module)
            return i;
    }
    return p->until;
}

static bool calls_another(const struct pipe_cut *c, const struct pipe_pass *p,
                          uint64_t module)
{
    for (size_t i = entered_at(c, p, module) + 1; i < p->until; i++) {
        enum trace_kind kind = c->records->all[i].kind;
        if (kind == TRACE_MODULE_ENTER || kind == TRACE_MODULE_LEAVE)
            return kind == TRACE_MODULE_ENTER;
    }
    return false;
}

/* A parameter outside of the layers: in the first stage (false) or the last. */
static int end_place(const struct pipe_cut *c, const struct pipe_pass *p,
                     uint64_t module, bool *last, struct err *err)
{
    size_t at = entered_at(c, p, module);

    *last = at > p->cuts[c->layers - 1];
    if (at < p->until && !calls_another(c, p, module))
        return 0;
    return err_set(err,
                   "--change: stages cannot be made of this recording: a "
                   "parameter of '%s' itself, outside of the layers, may "
                   "belong to the first stage or to the last. `memsim run' of "
                   "the changed script needs no GPU",
                   records_module(c->records, module));
}

static bool has_parameters(const struct records *r, uint64_t module)
{
    for (size_t i = 0; i < r->parameter_count; i++)
        if (r->parameters[i].module == module)
            return true;
    return false;
}

/* A product outside of the layers, in a module without parameters: it has those
 * of another one, as a head with the embedding's weights does. */
static int check_tied(const struct pipe_cut *c, const struct pipe_pass *p,
                      struct err *err)
{
    uint64_t module = 0;

    for (size_t i = p->from; i < p->until; i++) {
        const struct record *record = &c->records->all[i];
        const uint64_t *f = records_fields(c->records, record);
        if (record->kind == TRACE_MODULE_ENTER)
            module = ((const struct trace_module_enter *)f)->module;
        else if (record->kind == TRACE_MODULE_LEAVE)
            module = 0;
        if (record->kind != TRACE_GEMM || !module ||
            map_get(&c->layer_by_module, module) ||
            has_parameters(c->records, module))
            continue;
        return err_set(err,
                       "--change: stages cannot be made of this recording: "
                       "'%s' has no parameters of its own and multiplies: "
                       "weights that it shares with another module would be "
                       "in two stages, and their gradients would have to be "
                       "added. `memsim run' of the changed script needs no GPU",
                       records_module(c->records, module));
    }
    return 0;
}

int pipe_parameters_place(const struct pipe_cut *c,
                          const struct pipe_split *split, uint32_t *stages,
                          struct err *err)
{
    const struct records *r = c->records;
    const struct pipe_pass *p = first_forward(c);

    if (!p)
        return err_set(err, "--change: no step of the recording can be cut "
                            "into microbatches");
    for (size_t i = 0; i < r->parameter_count; i++) {
        uint32_t layer = c->modules->layer_of[i]; /* from 1 */
        bool last = false;
        if (!layer && end_place(c, p, r->parameters[i].module, &last, err))
            return -1;
        stages[i] = layer
                        ? pipe_split_stage(split, layer)
                        : (last ? split->stages - 1 : 0);
    }
    return check_tied(c, p, err);
}

/* --- the optimizer -------------------------------------------------------- */

static const struct trace_launch *launch_at(const struct pipe_cut *c, size_t op)
{
    const struct list_place all = {c->records, c->marks->ops, c->marks->count};

    return list_launch_at(&all, op);
}

/* Do the PERIOD operations from OP on work on ELEMENTS each? Those on single
 * values, such as a step's number, may be among them. */
static bool works_on(const struct pipe_cut *c, size_t op, size_t period,
                     uint64_t elements)
{
    bool found = false;

    for (size_t i = op; i < op + period; i++) {
        const struct trace_launch *l = launch_at(c, i);
        if (!l || list_launch_is(l) || (l->a != elements && l->a != 1))
            return false;
        found |= l->a == elements;
    }
    return found;
}

/* Does the loop over the parameters with PERIOD operations for each begin at
 * OP? */
static bool loop_is(const struct pipe_cut *c, size_t op, size_t period)
{
    const struct records *r = c->records;

    for (size_t i = 0; i < r->parameter_count; i++)
        if (!works_on(c, op + i * period, period, r->parameters[i].elements))
            return false;
    return r->parameter_count > 0;
}

/* Finds a loop over the parameters in [FIRST, END); *AT is its begin. Returns
 * its period, 0: there is none. */
static size_t loop_find(const struct pipe_cut *c, size_t first, size_t end,
                        size_t *at)
{
    size_t count = c->records->parameter_count;

    for (size_t op = first; op + count <= end; op++)
        for (size_t period = LOOP_MOST; period > 0; period--)
            if (op + count * period <= end && loop_is(c, op, period)) {
                *at = op;
                return period;
            }
    return 0;
}

static void loop_cut(struct rewrite *w, const struct pipe_cut *c, size_t at,
                     size_t period, const bool *kept)
{
    for (size_t i = 0; i < c->records->parameter_count; i++) {
        struct edit edit = {.kind = EDIT_DROP, .shift = period};
        size_t op = at + i * period;
        if (kept[i])
            continue;
        edit.from = w->ops[op];
        edit.until = op + period < w->op_count ? w->ops[op + period]
                                               : w->ops[op + period - 1] + 1;
        rewrite_add(w, &edit);
    }
}

/* Kernels that work on no list, and of which no loop was found: as many as
 * there are parameters must not be taken for the same in all stages. */
static int check_rest(const struct pipe_cut *c, size_t first, size_t end,
                      struct err *err)
{
    size_t plain = 0;

    for (size_t op = first; op < end; op++) {
        const struct trace_launch *l = launch_at(c, op);
        plain += l && !list_launch_is(l);
    }
    if (plain < c->records->parameter_count)
        return 0;
    return err_set(err,
                   "--change: stages cannot be made of this recording: which "
                   "of the %zu kernels behind the backward work on which "
                   "parameter is not known. `memsim run' of the changed "
                   "script needs no GPU",
                   plain);
}

static int change_lists(const struct pipe_cut *c,
                        const struct layer_after *like, size_t first,
                        size_t end, struct err *err)
{
    struct layer_after after = *like;

    after.first = first;
    after.end = end;
    return check_rest(c, first, end, err) || layer_after_change(&after, err)
               ? -1
               : 0;
}

/* The parameters that are KEPT; *COUNT of them, to be freed. */
static struct parameter *kept_of(const struct records *r, const bool *kept,
                                 size_t *count)
{
    struct parameter *all = xcalloc(r->parameter_count + 1, sizeof *all);

    *count = 0;
    for (size_t i = 0; i < r->parameter_count; i++)
        if (kept[i])
            all[(*count)++] = r->parameters[i];
    return all;
}

int pipe_after_change(struct rewrite *w, const struct pipe_cut *c,
                      const struct pipe_step *step, const bool *kept,
                      bool warm_up, struct err *err)
{
    struct layer_after after = {.rewrite = w,
                                .marks = c->marks,
                                .modules = c->modules,
                                .warm_up = warm_up};
    struct parameter *job = kept_of(c->records, kept, &after.job_count);
    size_t at = step->after_first, behind = at;
    size_t period = loop_find(c, step->after_first, step->after_end, &at);

    after.job = job;
    if (period) {
        loop_cut(w, c, at, period, kept);
        behind = at + period * c->records->parameter_count;
    }
    int rc = change_lists(c, &after, step->after_first, at, err) ||
                     change_lists(c, &after, behind, step->after_end, err)
                 ? -1
                 : 0;
    free(job);
    return rc;
}
