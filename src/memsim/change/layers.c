/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/change/layers.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"
#include "memsim/change/layer_after.h"
#include "memsim/change/layer_modules.h"
#include "memsim/change/layer_period.h"
#include "memsim/change/side.h"

struct work {
    const struct layers_change *change;
    struct layers_report *report;
    struct records records;
    struct layer_marks marks;
    struct layer_modules modules; /* count 0: a profile's */
    struct rewrite rewrite;
    bool *changed;              /* steps */
    struct layer_region region; /* of the segment that is looked at */
};

/* --- where a layer begins ------------------------------------------------- */

static int depth_step(const struct record *record)
{
    if (record->kind == TRACE_MODULE_ENTER)
        return 1;
    return record->kind == TRACE_MODULE_LEAVE ? -1 : 0;
}

/* The first record behind operation OP that does not belong to it; FROM where
 * OP is the first of its segment. */
static size_t gap_begin(const struct work *w, const struct segment *s,
                        size_t op)
{
    size_t at = s->from;

    if (op != s->first)
        return layer_marks_behind(&w->marks, &w->records, op);
    while (at < w->marks.ops[op] &&
           w->records.all[at].kind == TRACE_EVENT_RECORD)
        at++;
    return at;
}

/* The record before operation OP at which the fewest modules are open: DEPTH of
 * them, which were *OPEN behind the operation before. */
static size_t gap_cut(const struct work *w, size_t begin, size_t op, int *open,
                      int *depth)
{
    size_t cut = begin;

    *depth = *open;
    for (size_t i = begin; i < w->marks.ops[op]; i++) {
        *open += depth_step(&w->records.all[i]);
        if (*open >= *depth)
            continue;
        *depth = *open;
        cut = i + 1;
    }
    return cut;
}

/* The place in the middle of REGION, in operations of segment S, where the
 * fewest modules are open: calls beside the operations may differ at the ends.
 * *FROM and *UNTIL are the records of the PERIODS periods behind it. */
static bool cut_find(const struct work *w, const struct segment *s,
                     const struct layer_region *region, size_t periods,
                     size_t *from, size_t *until)
{
    size_t length = region->period * periods;
    size_t room = region->length - length;
    size_t last = s->first + region->at + room; /* a cut at most here */
    size_t first =
        s->first + region->at + room / 2 / region->period * region->period;
    int open = 0, best = 0;
    size_t best_op = SIZE_MAX;

    for (size_t op = s->first; op <= last && op < s->end; op++) {
        int depth;
        size_t cut = gap_cut(w, gap_begin(w, s, op), op, &open, &depth);
        if (op < first || op >= first + region->period ||
            (best_op != SIZE_MAX && depth >= best))
            continue;
        best = depth;
        best_op = op;
        *from = cut;
    }
    if (best_op == SIZE_MAX)
        return false;
    if (best_op + length == s->end) {
        *until = w->marks.ops[s->end - 1] + 1;
        return true;
    }
    /* as far behind the gap's beginning as FROM, by what is in it */
    open = 0;
    *until = gap_begin(w, s, best_op + length);
    size_t begin = gap_begin(w, s, best_op);
    for (size_t i = begin; i < *from; i++)
        open += depth_step(&w->records.all[i]);
    while (open < 0 && *until < w->marks.ops[best_op + length])
        open -= depth_step(&w->records.all[(*until)++]);
    return true;
}

/* --- regions -------------------------------------------------------------- */

static int change_region(struct work *w, const struct segment *s,
                         const struct layer_region *region, struct err *err)
{
    uint32_t recorded = w->report->recorded, wanted = w->change->layers;
    size_t periods = wanted > recorded ? 1 : recorded - wanted;
    struct edit edit = {
        .kind = wanted > recorded ? EDIT_REPEAT : EDIT_DROP,
        .copies = wanted > recorded ? wanted - recorded : 0,
        .shift = region->period * periods,
    };

    if (wanted == recorded)
        return 0;
    if (region->length < region->period * periods ||
        !cut_find(w, s, region, periods, &edit.from, &edit.until))
        return err_set(err,
                       "--change: step %" PRIu32 ": too little of it "
                       "repeats to leave out %zu layers",
                       s->step, periods);
    rewrite_add(&w->rewrite, &edit);
    w->changed[s->step] = true;
    return 0;
}

static const char *segment_name(enum segment_kind kind)
{
    return kind == SEGMENT_FORWARD ? "forward" : "backward";
}

static int segment_refuse(const struct work *w, const struct segment *s,
                          struct err *err)
{
    return err_set(err,
                   "--change: layers cannot be changed in this recording: the "
                   "%s of step %" PRIu32 " does not repeat the same operations "
                   "for each of the %" PRIu32 " layers of %s (gradients of "
                   "several layers in one collective, layers that differ, or "
                   "CUDA graphs). `memsim run' of the changed script needs no "
                   "GPU",
                   segment_name(s->kind), s->step, w->report->recorded,
                   w->report->prefix);
}

/* --- collectives ---------------------------------------------------------- */

#define SMALL_ELEMENTS 1024 /* of a norm, a loss, a count of tokens */

/* Elements that S averages or adds over ranks outside of the layers. */
static uint64_t reduced_elements(const struct work *w, const struct segment *s)
{
    uint64_t sum = 0;

    for (size_t op = s->first; op < s->end; op++) {
        const struct record *record = &w->records.all[w->marks.ops[op]];
        const struct trace_collective *c =
            (const struct trace_collective *)records_fields(&w->records,
                                                            record);
        if (record->kind != TRACE_COLLECTIVE)
            continue;
        const char *name = trace_names_get(&w->records.names, c->name);
        bool all = !strcmp(name, "ncclAllReduce");
        if (!all && strcmp(name, "ncclReduceScatter"))
            continue;
        if (c->count > SMALL_ELEMENTS &&
            (op - s->first < w->region.at ||
             op - s->first >= w->region.at + w->region.length))
            sum += c->count * (all ? 1 : c->ranks);
    }
    return sum;
}

/* Gradients of layers that are averaged together with others, as in DDP's
 * buckets, would need other buckets. The first and the last layer may be
 * outside of what repeats. */
static int check_collectives(const struct work *w, const struct segment *s,
                             struct err *err)
{
    uint64_t outside = 0, all = 0;

    for (size_t i = 0; i < w->records.parameter_count; i++)
        all += w->records.parameters[i].elements;
    outside = all - w->modules.elements;
    uint32_t layers = w->modules.count;
    uint64_t ends = w->modules.elements / layers * (layers < 3 ? 1 : 2);
    if (s->warm_up || reduced_elements(w, s) <= outside + ends + SMALL_ELEMENTS)
        return 0;
    return err_set(err,
                   "--change: layers cannot be changed in this recording: "
                   "collectives average the gradients of several layers at a "
                   "time, and are no buckets of DDP whose rule is known (step "
                   "%" PRIu32 "). `memsim run' of the changed script "
                   "needs no GPU",
                   s->step);
}

/* --- segments ------------------------------------------------------------- */

/* Operations of S behind REGION, such as copies of gradients, repeat too. */
static int change_tail(struct work *w, const struct segment *s,
                       const struct layer_region *region, struct err *err)
{
    struct segment tail = *s;
    struct layer_region copies;

    tail.first = s->first + region->at + region->length;
    if (tail.first == s->end)
        return 0;
    tail.from = w->marks.ops[tail.first - 1] + 1;
    if (!layer_region_find(w->marks.marks + tail.first, s->end - tail.first,
                           w->report->recorded, w->modules.per_layer, &copies))
        return 0;
    return change_region(w, &tail, &copies, err);
}

/* A forward or backward: one region. Segments of few operations, such as
 * phases that a hook enters, have none. */
static int change_pass(struct work *w, const struct segment *s, struct err *err)
{
    const uint64_t *marks = w->marks.marks + s->first;
    uint32_t layers = w->report->recorded;

    if (!layer_region_find(marks, s->end - s->first, layers, 1, &w->region))
        return s->warm_up || s->end - s->first < 2 * (size_t)layers
                   ? check_collectives(w, s, err)
                   : segment_refuse(w, s, err);
    if (s->kind == SEGMENT_FORWARD)
        w->report->forward_ops = w->region.period;
    else
        w->report->backward_ops = w->region.period;
    if (check_collectives(w, s, err) || change_region(w, s, &w->region, err))
        return -1;
    bool copies = w->change->copies && s->kind == SEGMENT_BACKWARD;
    return copies ? change_tail(w, s, &w->region, err) : 0;
}

/* Operations [FIRST, END) of S, which one thread launched: every region that
 * repeats as often, but for lists, whose times are scaled. Adds the operations
 * of these to *COVERED. */
static int change_run(struct work *w, const struct segment *s, size_t first,
                      size_t end, size_t *covered, struct err *err)
{
    struct layer_region regions[LAYER_REGIONS_MAX];
    size_t found = layer_regions_find(w->marks.marks + first, end - first,
                                      w->report->recorded, regions);

    for (size_t i = 0; i < found; i++) {
        struct layer_region *region = &regions[i];
        region->at += first - s->first;
        if (layer_op_is_list(&w->marks, &w->records, s->first + region->at))
            continue;
        if (change_region(w, s, region, err))
            return -1;
        *(*covered ? &w->report->backward_ops : &w->report->forward_ops) =
            region->period;
        *covered += region->length;
    }
    return 0;
}

/* A profile's step: the script's thread launches forwards, autograd's
 * backwards. */
static int change_whole(struct work *w, const struct segment *s,
                        struct err *err)
{
    size_t covered = 0;

    for (size_t op = s->first, next; op < s->end; op = next) {
        next = layer_run_end(&w->marks, &w->records, op, s->end);
        if (change_run(w, s, op, next, &covered, err))
            return -1;
    }
    if (!covered)
        return err_set(err,
                       "--change: step %" PRIu32 " of the profile does not "
                       "repeat the same operations %" PRIu32 " times",
                       s->step, w->report->recorded);
    if (!w->change->recorded && 2 * covered < s->end - s->first)
        return err_set(err,
                       "--change: no layers were found: what repeats %" PRIu32
                       " times is %zu%% of the operations of step %" PRIu32
                       " alone. If these are layers, say so: "
                       "--change layers=%" PRIu32 ":%" PRIu32,
                       w->report->recorded, 100 * covered / (s->end - s->first),
                       s->step, w->report->recorded, w->change->layers);
    w->report->covered_percent = 100 * covered / (s->end - s->first);
    w->report->lists_scaled += layer_scale_lists(
        &w->rewrite, &w->marks, s->first, s->end,
        (double)w->change->layers / w->report->recorded);
    return 0;
}

/* Operations [FIRST, END) of S, behind the backward. */
static int change_after(struct work *w, const struct segment *s, size_t first,
                        size_t end, struct err *err)
{
    const struct layer_after after = {
        .rewrite = &w->rewrite,
        .marks = &w->marks,
        .modules = &w->modules,
        .first = first,
        .end = end,
        .warm_up = s->warm_up,
        .wanted = w->change->layers,
    };

    return layer_after_change(&after, err);
}

/* An optimizer that takes one parameter after the other repeats like a pass;
 * what is before and behind it works on lists. */
static int change_optimizer(struct work *w, const struct segment *s,
                            struct err *err)
{
    struct layer_region region;
    size_t first = s->first, count = s->end - s->first;

    if (!layer_region_find(w->marks.marks + first, count, w->report->recorded,
                           w->modules.per_layer, &region))
        return change_after(w, s, first, s->end, err);
    if (change_region(w, s, &region, err) ||
        change_after(w, s, first, first + region.at, err))
        return -1;
    return change_after(w, s, first + region.at + region.length, s->end, err);
}

static int change_segment(struct work *w, const struct segment *s,
                          struct err *err)
{
    switch (s->kind) {
    case SEGMENT_FORWARD:
    case SEGMENT_BACKWARD:
        return change_pass(w, s, err);
    case SEGMENT_WHOLE:
        return change_whole(w, s, err);
    case SEGMENT_AFTER:
        return change_optimizer(w, s, err);
    default:
        return 0;
    }
}

/* --- the whole ------------------------------------------------------------ */

/* The layers of a profile: by repetition. */
static int guess_layers(struct work *w, struct err *err)
{
    w->report->guessed = layer_marks_guess(&w->marks, &w->records);
    w->report->recorded =
        w->change->recorded ? w->change->recorded : w->report->guessed;
    if (w->report->recorded >= 2)
        return 0;
    return err_set(err, "--change: nothing in a step of this profile repeats "
                        "three times or more: no layers were found");
}

static int find_layers(struct work *w, struct err *err)
{
    if (w->records.imported)
        return guess_layers(w, err);
    if (layer_modules_find(&w->modules, &w->records, w->change->prefix, err))
        return -1;
    w->report->recorded = w->modules.count;
    memcpy(w->report->prefix, w->modules.prefix, sizeof w->report->prefix);
    if (!w->change->recorded || w->change->recorded == w->modules.count)
        return 0;
    return err_set(err,
                   "--change: the recording has %" PRIu32 " layers (%s), "
                   "not %" PRIu32,
                   w->modules.count, w->modules.prefix, w->change->recorded);
}

static int change_all(struct work *w, struct err *err)
{
    if (!w->records.steps.count)
        return err_set(err, "--change: the recording has no steps");
    if (find_layers(w, err))
        return -1;
    for (size_t i = 0; i < w->marks.segment_count; i++)
        if (change_segment(w, &w->marks.segments[i], err))
            return -1;
    for (size_t i = 0; i < w->records.steps.count; i++) {
        if (w->changed[i])
            w->report->steps++;
        else
            w->report->steps_kept++;
    }
    return 0;
}

int layers_change(const struct layers_change *change, const char *from,
                  const char *to, struct layers_report *report, struct err *err)
{
    struct work w = {.change = change, .report = report};

    *report = (struct layers_report){.recorded = 0};
    if (records_read(&w.records, from, err))
        return -1;
    layer_marks_make(&w.marks, &w.records);
    w.changed = xcalloc(w.records.steps.count + 1, sizeof *w.changed);
    w.rewrite = rewrite_of(&w.records, &w.marks);
    int rc = change_all(&w, err) || rewrite_write(&w.rewrite, to, err) ? -1 : 0;
    free(w.changed);
    free(w.rewrite.edits);
    layer_modules_fini(&w.modules);
    layer_marks_fini(&w.marks);
    records_fini(&w.records);
    return rc;
}
