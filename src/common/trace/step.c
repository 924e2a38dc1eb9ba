/* SPDX-License-Identifier: Apache-2.0 */
#include "common/trace/step.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"
#include "common/trace/step_repeat.h"

/* Ranges that mark steps: torch.profiler's, and what programs write by hand. */
static const char *const range_starts[] = {"ProfilerStep#", "step", "Step",
                                           "iteration", "Iteration"};

bool step_counter_phase(struct step_counter *c, uint64_t phase)
{
    if (phase == TRACE_PHASE_OPTIMIZER)
        c->stepped = true;
    if (phase != TRACE_PHASE_FORWARD || (c->begun && !c->stepped))
        return false;
    if (c->begun)
        c->step++;
    else if (c->stepped)
        c->step = 1; /* an optimizer that no forward came before */
    c->begun = true;
    c->stepped = false;
    return true;
}

unsigned step_counter_whole(const struct step_counter *c)
{
    return c->begun ? c->step + c->stepped : 0;
}

static bool text_starts(const struct trace_item *item, const char *start)
{
    size_t length = strlen(start);

    return item->head.text_bytes >= length &&
           !memcmp(item->text, start, length);
}

enum step_mark_event step_marks_take(struct step_marks *m,
                                     const struct trace_item *item)
{
    if (item->head.kind == TRACE_RANGE_PUSH &&
        text_starts(item, STEP_MARK_TEXT)) {
        m->begun++;
        m->domain = trace_as_range_push(item)->domain;
        m->open = true;
        return STEP_MARK_BEGINS;
    }
    if (item->head.kind == TRACE_RANGE_POP && m->open &&
        trace_as_range_pop(item)->domain == m->domain) {
        m->open = false;
        return STEP_MARK_ENDS;
    }
    return STEP_MARK_NONE;
}

void step_tracker_take(struct step_tracker *t, const struct trace_item *item)
{
    const struct step_carried carried = step_phases_take(&t->phases, item);

    if (step_marks_take(&t->marks, item) == STEP_MARK_BEGINS &&
        t->marks.begun == 1 && t->counter.begun)
        t->unmarked = t->counter.step + 1;
    for (unsigned i = 0; i < carried.count; i++)
        step_counter_phase(&t->counter, carried.phases[i]);
}

unsigned step_tracker_step(const struct step_tracker *t)
{
    bool next = t->phases.capturing && t->counter.begun && t->counter.stepped;

    return t->marks.begun ? t->unmarked + t->marks.begun - 1
                          : t->counter.step + next;
}

bool step_tracker_begun(const struct step_tracker *t)
{
    return t->marks.begun || t->counter.begun;
}

unsigned step_tracker_whole(const struct step_tracker *t)
{
    return t->marks.begun ? t->marks.begun - t->marks.open
                          : step_counter_whole(&t->counter);
}

void step_tracker_fini(struct step_tracker *t)
{
    step_phases_fini(&t->phases);
}

bool step_calls_take(struct step_calls *c, const struct trace_item *item)
{
    uint32_t *depth = item->head.thread < STEP_THREADS
                          ? &c->depth[item->head.thread]
                          : NULL;

    if (!depth)
        return false;
    if (item->head.kind == TRACE_MODULE_ENTER)
        return !(*depth)++;
    if (item->head.kind == TRACE_MODULE_LEAVE && *depth)
        (*depth)--;
    return false;
}

const char *step_rule_name(enum step_rule rule)
{
    static const char *const names[] = {
        [STEP_NONE] = "none",
        [STEP_OPTIMIZER] = "optimizer steps",
        [STEP_MODULE] = "outermost module calls",
        [STEP_REPEAT] = "outermost module calls that are repeated together",
        [STEP_RANGE] = "profiler or NVTX ranges",
        [STEP_MARK] = "calls of --step-mark's function",
    };

    return names[rule];
}

/* --- finding -------------------------------------------------------------- */

struct found {
    struct step *steps;
    size_t count, capacity;
    bool open; /* the last one has not ended */
    struct step_batch batch; /* of that one */
};

struct step_finder {
    struct step_phases phases;
    struct found by_optimizer, by_module, by_range, by_mark;
    struct step_marks marks;
    uint64_t marked, marked_ns; /* where the last mark's call ended */
    struct step_counter counter;
    uint64_t phase;
    uint64_t record, time_ns; /* of the record that is taken */
    uint64_t last_work, last_work_ns;
    uint64_t last_memory;             /* record of the last cudaMalloc */
    uint64_t last_oom;  /* records up to and with the last of these ... */
    uint64_t oom_phase; /* ... and the phase it was in */
    uint64_t optimized, optimized_ns; /* where the last optimizer ended */
    struct step_calls calls;
    struct step_repeat repeat; /* the calls of by_module */
    uint32_t range_depth, range_at; /* at: depth of the step's range, from 1 */
    bool later; /* the first range is by its number not the job's first step */
};

struct step_finder *step_finder_create(void)
{
    return xcalloc(1, sizeof(struct step_finder));
}

static void found_end(struct found *l, uint64_t record, uint64_t time_ns)
{
    if (!l->open)
        return;
    l->steps[l->count - 1].end = record;
    l->steps[l->count - 1].end_ns = time_ns;
    l->steps[l->count - 1].input = step_batch_input(&l->batch);
    l->open = false;
}

static void found_begin(struct step_finder *f, struct found *l)
{
    found_end(l, f->record, f->time_ns);
    xgrow(&l->steps, l->count, &l->capacity, sizeof *l->steps);
    l->steps[l->count++] =
        (struct step){.first = f->record, .first_ns = f->time_ns};
    l->batch = (struct step_batch){.count = 0};
    l->open = true;
}

static void take_phase(struct step_finder *f, uint64_t phase)
{
    bool first = step_counter_phase(&f->counter, phase);

    if (first)
        found_begin(f, &f->by_optimizer);
    if (f->phase == TRACE_PHASE_OPTIMIZER) {
        f->optimized = f->record;
        f->optimized_ns = f->time_ns;
    }
    f->phase = phase;
}

/* What backward calls again was counted. */
static bool is_backward(const struct step_finder *f)
{
    return f->phase == TRACE_PHASE_BACKWARD ||
           f->phase == TRACE_PHASE_RECOMPUTE;
}

/* A captured call of a model is one of each launch of its graph, unless a call
 * makes the launch. */
static void take_captured_call(struct step_finder *f,
                               const struct trace_item *item,
                               const struct step_carried *carried)
{
    uint16_t thread = item->head.thread;

    if (!carried->calls || is_backward(f) ||
        (thread < STEP_THREADS && f->calls.depth[thread]))
        return;
    found_begin(f, &f->by_module);
    step_batch_repeat(&f->by_module.batch, carried->batch);
    step_repeat_begin(&f->repeat, trace_as_graph_launch(item)->capture);
}

static void take_carried(struct step_finder *f,
                         const struct step_carried *carried)
{
    for (unsigned i = 0; i < carried->count; i++)
        take_phase(f, carried->phases[i]);
    if (!carried->batch)
        return;
    step_batch_repeat(&f->by_optimizer.batch, carried->batch);
    step_batch_repeat(&f->by_mark.batch, carried->batch);
    if (carried->count > 1)
        f->optimized = f->record + 1; /* the launch is a part of it */
}

static void take_batch(struct step_finder *f, const struct trace_batch *batch)
{
    if (f->phases.capturing || is_backward(f))
        return;
    step_batch_add(&f->by_optimizer.batch, batch);
    step_batch_add(&f->by_module.batch, batch);
    step_batch_add(&f->by_range.batch, batch);
    step_batch_add(&f->by_mark.batch, batch);
}

static bool is_step_range(const struct trace_item *item)
{
    for (size_t i = 0; i < sizeof range_starts / sizeof *range_starts; i++)
        if (text_starts(item, range_starts[i]))
            return true;
    return false;
}

/* Does the text of a step's range say that steps came before it?
 * torch.profiler counts from 0, programs from 0 or from 1. */
static bool is_later(const struct trace_item *item)
{
    bool profiler = text_starts(item, range_starts[0]);
    uint32_t i = 0, number = 0;

    while (i < item->head.text_bytes &&
           (item->text[i] < '0' || item->text[i] > '9'))
        i++;
    for (; i < item->head.text_bytes && number < 2 && item->text[i] >= '0' &&
           item->text[i] <= '9';
         i++)
        number = 10 * number + (uint32_t)(item->text[i] - '0');
    return number > (profiler ? 0 : 1);
}

/* Returns true if the record is a mark's. */
static bool take_mark(struct step_finder *f, const struct trace_item *item)
{
    enum step_mark_event event = step_marks_take(&f->marks, item);

    if (event == STEP_MARK_BEGINS)
        found_begin(f, &f->by_mark);
    if (event == STEP_MARK_ENDS) {
        f->marked = f->record + 1;
        f->marked_ns = f->time_ns;
    }
    return event != STEP_MARK_NONE;
}

static void take_range(struct step_finder *f, const struct trace_item *item)
{
    if (take_mark(f, item))
        return;
    if (item->head.kind == TRACE_RANGE_PUSH) {
        f->range_depth++;
        if (f->range_at || !is_step_range(item))
            return;
        f->range_at = f->range_depth;
        if (!f->by_range.count)
            f->later = is_later(item);
        found_begin(f, &f->by_range);
        return;
    }
    if (f->range_at && f->range_at == f->range_depth) {
        found_end(&f->by_range, f->record, f->time_ns);
        f->range_at = 0;
    }
    if (f->range_depth)
        f->range_depth--;
}

bool step_is_work(unsigned kind)
{
    return (kind >= TRACE_LAUNCH && kind <= TRACE_COLLECTIVE) ||
           (kind >= TRACE_SYNC_STREAM && kind <= TRACE_SYNC_EVENT) ||
           kind == TRACE_GRAPH_LAUNCH;
}

static void take_call(struct step_finder *f, const struct trace_item *item)
{
    uint16_t thread = item->head.thread;
    bool begins = step_calls_take(&f->calls, item);

    if (f->phases.capturing || is_backward(f))
        return;
    if (begins) {
        found_begin(f, &f->by_module);
        step_repeat_begin(&f->repeat, trace_as_module_enter(item)->module);
        return;
    }
    step_repeat_take(&f->repeat, item,
                     thread < STEP_THREADS && f->calls.depth[thread]);
}

void step_finder_take(struct step_finder *f, const struct trace_item *item)
{
    unsigned kind = item->head.kind;

    f->time_ns = item->head.time_ns;
    const struct step_carried carried = step_phases_take(&f->phases, item);
    take_captured_call(f, item, &carried);
    take_carried(f, &carried);
    take_call(f, item);
    if (kind == TRACE_BATCH)
        take_batch(f, trace_as_batch(item));
    else if (kind == TRACE_RANGE_PUSH || kind == TRACE_RANGE_POP)
        take_range(f, item);
    else if (kind == TRACE_DEVICE_MALLOC)
        f->last_memory = f->record;
    f->record++;
    if (kind == TRACE_OOM) {
        f->last_oom = f->record;
        f->oom_phase = f->phase;
    }
    if (step_is_work(kind)) {
        f->last_work = f->record;
        f->last_work_ns = f->time_ns;
    }
}

/* A job's first step has work that later ones lack (states, workspaces,
 * tuning); so may those in which memory is still taken from the driver, of
 * which the second half of a run is never. A profile may begin LATER. */
static void steps_mark_warm_up(struct step_list *list, uint64_t last_memory,
                               bool later)
{
    for (size_t i = 0; i < list->count; i++)
        list->steps[i].warm_up =
            list->count > 1 &&
            ((!i && !later) || (list->steps[i].first < last_memory &&
                                i < list->count / 2));
}

/* Whether the last step was not carried out: no optimizer stepped, the call of
 * --step-mark's function did not end, or memory ran out in it and nothing was
 * launched since. */
static bool is_cut(const struct step_finder *f, enum step_rule rule)
{
    bool ended = f->last_oom > f->last_work;

    if (rule == STEP_MARK && f->marks.open)
        return true;
    if (rule != STEP_OPTIMIZER)
        return ended;
    return !f->counter.stepped ||
           (ended && f->oom_phase == TRACE_PHASE_OPTIMIZER);
}

/* Joins the calls that are repeated together. Returns the rule. */
static enum step_rule join_repeated(struct found *l,
                                    const struct step_repeat *repeat)
{
    size_t first, length = step_repeat_find(repeat, &first), count = first;

    if (length < 2 || repeat->count != l->count)
        return STEP_MODULE;
    for (size_t i = first; i < l->count; i += length) {
        struct step step = l->steps[i];

        for (size_t j = 1; j < length; j++)
            step_input_add(&step.input, &l->steps[i + j].input);
        step.calls = (uint32_t)length;
        step.end = l->steps[i + length - 1].end;
        step.end_ns = l->steps[i + length - 1].end_ns;
        l->steps[count++] = step;
    }
    l->count = count;
    return STEP_REPEAT;
}

static void list_take(struct step_list *list, struct found *l,
                      enum step_rule rule)
{
    list->rule = rule;
    list->steps = l->steps;
    list->count = l->count;
    l->steps = NULL;
}

/* Calls of the same model of which each is given one token more than the one
 * before generate text without a cache. */
static void texts_find(struct found *l)
{
    for (size_t first = 0, i; first < l->count; first = i) {
        for (i = first + 1; i < l->count; i++)
            if (!step_input_grows(&l->steps[i - 1].input, &l->steps[i].input))
                break;
        for (size_t j = first; j < i && i - first > STEP_TEXT_GROWS; j++)
            step_input_generate(&l->steps[j].input);
    }
}

void step_finder_conclude(struct step_finder *f, struct step_list *list)
{
    bool optimizers = step_counter_whole(&f->counter) > 0;

    *list = (struct step_list){.rule = STEP_NONE};
    if (f->counter.stepped && f->phase != TRACE_PHASE_OPTIMIZER)
        found_end(&f->by_optimizer, f->optimized, f->optimized_ns);
    found_end(&f->by_optimizer, f->last_work, f->last_work_ns);
    found_end(&f->by_module, f->last_work, f->last_work_ns);
    found_end(&f->by_range, f->last_work, f->last_work_ns);
    texts_find(&f->by_module);
    if (!f->marks.open)
        found_end(&f->by_mark, f->marked, f->marked_ns);
    found_end(&f->by_mark, f->last_work, f->last_work_ns);
    if (f->by_mark.count)
        list_take(list, &f->by_mark, STEP_MARK);
    else if (optimizers && f->by_optimizer.count)
        list_take(list, &f->by_optimizer, STEP_OPTIMIZER);
    else if (f->by_module.count)
        list_take(list, &f->by_module,
                  join_repeated(&f->by_module, &f->repeat));
    else if (f->by_range.count)
        list_take(list, &f->by_range, STEP_RANGE);
    if (list->count && is_cut(f, list->rule))
        list->count--;
    steps_mark_warm_up(list, f->last_memory,
                       list->rule == STEP_RANGE && f->later);
    xfree(f->by_optimizer.steps);
    xfree(f->by_module.steps);
    xfree(f->by_range.steps);
    xfree(f->by_mark.steps);
    step_phases_fini(&f->phases);
    step_repeat_fini(&f->repeat);
    xfree(f);
}

void step_list_fini(struct step_list *list)
{
    xfree(list->steps);
    *list = (struct step_list){.rule = STEP_NONE};
}

struct step_list step_list_copy(const struct step_list *list)
{
    struct step_list copy = *list;

    copy.steps = xcalloc(list->count + 1, sizeof *copy.steps);
    for (size_t i = 0; i < list->count; i++)
        copy.steps[i] = list->steps[i];
    return copy;
}
