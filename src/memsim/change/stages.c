/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/change/stages.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"
#include "memsim/change/group_span.h"
#include "memsim/change/pipe_adds.h"
#include "memsim/change/pipe_after.h"
#include "memsim/change/pipe_profile.h"
#include "memsim/change/pipe_rank.h"
#include "memsim/change/side.h"

struct work {
    const struct stages_change *change;
    struct stages_report *report;
    struct records records;
    struct layer_marks marks;
    struct layer_modules modules;
    struct pipe_cut cut;
    struct pipe_split split;
    struct pipe_shape shape;
    struct pipe_list lists[PIPE_RANKS_MAX];
    uint32_t *stage_of; /* of the parameters */
};

/* --- what is asked for ---------------------------------------------------- */

/* Microbatches of a step, of the first step that is cut. */
static size_t recorded_microbatches(const struct work *w)
{
    for (size_t i = 0; i < w->records.steps.count; i++)
        if (w->cut.steps[i].cut)
            return w->cut.steps[i].count;
    return 0;
}

/* Does the recording not show how the gradients of several microbatches are
 * added? */
static bool adds_gradients(const struct work *w)
{
    return w->report->recorded == 1 && w->shape.microbatches > 1;
}

static int shape_make(struct work *w, struct err *err)
{
    const struct stages_change *c = w->change;
    uint32_t recorded = (uint32_t)recorded_microbatches(w);

    w->shape = (struct pipe_shape){
        .ranks = w->split.ranks,
        .chunks = w->split.chunks,
        .microbatches = c->microbatches ? c->microbatches : recorded,
    };
    w->report->recorded = recorded;
    if (pipe_schedule_named(&w->shape.kind, c->schedule, w->shape.chunks, err))
        return -1;
    if (adds_gradients(w) && pipe_adds_check(&w->records, err))
        return -1;
    return pipe_schedule_make(&w->shape, w->lists, err);
}

/* A profile does not name them. */
static const char *layers_name(const struct work *w)
{
    return w->records.imported ? "layers" : w->modules.prefix;
}

static int check_boundaries(const struct work *w, struct err *err)
{
    for (uint32_t s = 1; s < w->split.stages; s++) {
        uint32_t layer = w->split.first[s] - 1;
        const char *why = w->cut.boundaries[layer].why;
        if (why)
            return err_set(err,
                           "--change: no stage can end between %s.%" PRIu32
                           " and %s.%" PRIu32 " of this recording: %s. "
                           "`memsim run' of the changed script needs no GPU",
                           layers_name(w), layer, layers_name(w), layer + 1,
                           why);
    }
    return 0;
}

static int check_steps(const struct work *w, struct err *err)
{
    if (w->records.imported && w->records.steps.count)
        return 0;
    if (!w->records.steps.count || w->records.steps.rule != STEP_OPTIMIZER)
        return err_set(err, "--change: stages need steps that an optimizer "
                            "ends, and the recording has none");
    return 0;
}

/* --- ranks ---------------------------------------------------------------- */

/* The share of a profile's parameters that are KEPT by RANK: of those whose
 * gradients it marks, else of the layers. */
static double rank_share(const struct work *w, uint32_t rank, const bool *kept)
{
    uint64_t own = 0, all = 0;

    for (size_t i = 0; i < w->records.parameter_count; i++) {
        all += w->records.parameters[i].elements;
        own += kept[i] ? w->records.parameters[i].elements : 0;
    }
    for (uint32_t s = 0; !w->records.parameter_count && s < w->split.stages;
         s++) {
        uint32_t layers = w->split.first[s + 1] - w->split.first[s];
        all += layers;
        own += s % w->split.ranks == rank ? layers : 0;
    }
    return all ? (double)own / (double)all : 1;
}

/* What is behind the backward of STEP, as RANK has it. */
static int after_change(struct work *w, struct rewrite *rewrite, uint32_t rank,
                        uint32_t step, const bool *kept, struct err *err)
{
    const struct pipe_step *s = &w->cut.steps[step];

    if (!w->records.imported)
        return pipe_after_change(rewrite, &w->cut, s, kept,
                                 w->records.steps.steps[step].warm_up, err);
    pipe_profile_after(rewrite, &w->cut, s, rank_share(w, rank, kept));
    return 0;
}

/* Stages of a node, which the other ranks of a profile's groups share with
 * them; 0: not known. */
static uint32_t node_ranks(const struct work *w)
{
    uint32_t all = w->change->node_ranks;
    uint32_t each = w->records.imported ? group_span(&w->records) : 1;

    return all > each ? all / each : all ? 1 : 0;
}

static int rank_write(struct work *w, uint32_t rank, const char *path,
                      struct err *err)
{
    struct rewrite rewrite = rewrite_of(&w->records, &w->marks);
    struct pipe_rank job = {.cut = &w->cut,
                            .split = &w->split,
                            .list = &w->lists[rank],
                            .rewrite = &rewrite,
                            .rank = rank,
                            .apart = w->records.imported
                                         ? group_span(&w->records)
                                         : 1,
                            .node_gpus = w->change->node_ranks,
                            .adds_stage =
                                adds_gradients(w) ? w->stage_of : NULL,
                            .node_ranks = node_ranks(w)};
    bool *kept = xcalloc(w->records.parameter_count + 1, sizeof *kept);
    int rc = 0;

    if (!job.node_ranks || job.node_ranks > w->split.ranks)
        job.node_ranks = w->split.ranks;
    for (size_t i = 0; i < w->records.parameter_count; i++)
        kept[i] = w->stage_of[i] % w->split.ranks == rank;
    for (uint32_t i = 0; !rc && i < w->records.steps.count; i++)
        if (w->cut.steps[i].cut)
            rc = after_change(w, &rewrite, rank, i, kept, err);
    if (!rc)
        rc = pipe_rank_write(&job, path, err);
    free(kept);
    free(rewrite.edits);
    return rc;
}

/* Records that were added for a rank are no part of the next one's. */
static int ranks_write(struct work *w, stages_path *path, void *context,
                       struct err *err)
{
    const struct records before = w->records;
    char name[PATH_MAX];

    for (uint32_t r = 0; r < w->split.ranks; r++) {
        path(context, r, name, sizeof name);
        if (rank_write(w, r, name, err))
            return -1;
        w->records.count = before.count;
        w->records.words_count = before.words_count;
        w->records.texts_count = before.texts_count;
    }
    return 0;
}

/* --- what comes of it ----------------------------------------------------- */

/* What the forward of stage S leaves in memory, in the last step. */
static uint64_t activation_bytes(const struct work *w, uint32_t s)
{
    const struct pipe_step *last = NULL;

    for (size_t i = 0; i < w->records.steps.count; i++)
        if (w->cut.steps[i].cut)
            last = &w->cut.steps[i];
    const struct pipe_pass *p = &last->all[last->count - 1].forward;
    struct pipe_range range =
        pipe_cut_forward(&w->cut, p, w->split.first[s], w->split.first[s + 1]);
    uint64_t before = w->records.all[range.from].allocated_bytes;
    uint64_t behind = w->records.all[range.until].allocated_bytes;

    return behind > before ? behind - before : 0;
}

static void report_make(struct work *w)
{
    struct stages_report *r = w->report;

    r->split = w->split;
    r->kind = w->shape.kind;
    r->layers = w->modules.count;
    r->microbatches = w->shape.microbatches;
    memcpy(r->prefix, w->modules.prefix, sizeof r->prefix);
    for (size_t i = 0; i < w->records.steps.count; i++) {
        r->steps += w->cut.steps[i].cut;
        r->steps_left_out += !w->cut.steps[i].cut;
    }
    for (uint32_t s = 0; s < w->split.stages; s++) {
        struct stages_report_row *row = &r->rows[s];
        row->rank = s % w->split.ranks;
        row->first = w->split.first[s];
        row->end = w->split.first[s + 1];
        row->sent_bytes =
            s + 1 < w->split.stages ? w->cut.boundaries[row->end - 1].bytes : 0;
        row->in_flight = pipe_list_in_flight(&w->lists[row->rank], s);
        row->activation_bytes = activation_bytes(w, s);
    }
    for (size_t i = 0; i < w->records.parameter_count; i++)
        r->rows[w->stage_of[i]].parameters += w->records.parameters[i].elements;
}

/* --- the whole ------------------------------------------------------------ */

/* Of a profile: as the user listed them, else by the repetition. */
static int layers_count(struct work *w, struct err *err)
{
    struct layer_modules *m = &w->modules;

    for (uint32_t i = 0; w->split.listed[0] && i < w->split.stages; i++)
        m->count += w->split.listed[i];
    if (!m->count)
        m->count = layer_marks_guess(&w->marks, &w->records);
    if (m->count >= 2)
        return 0;
    return err_set(err, "--change: nothing in a step of this profile repeats "
                        "three times or more: no layers were found");
}

static int cut_make(struct work *w, struct err *err)
{
    struct records *r = &w->records;

    if (!r->imported)
        return pipe_cut_make(&w->cut, r, &w->marks, &w->modules, err);
    w->cut = (struct pipe_cut){.records = r,
                               .marks = &w->marks,
                               .modules = &w->modules,
                               .layers = w->modules.count};
    if (pipe_profile_cut(&w->cut, err))
        return -1;
    pipe_profile_parameters(&w->cut, r, &w->modules.layer_of);
    return 0;
}

/* Puts the stages of the parameters into stage_of. */
static int parameters_place(struct work *w, struct err *err)
{
    const struct pipe_split *split = &w->split;

    w->stage_of = xcalloc(w->records.parameter_count + 1, sizeof *w->stage_of);
    if (!w->records.imported)
        return pipe_parameters_place(&w->cut, split, w->stage_of, err);
    for (size_t i = 0; i < w->records.parameter_count; i++)
        w->stage_of[i] = pipe_split_stage(split, w->modules.layer_of[i]);
    return 0;
}

static int change_all(struct work *w, stages_path *path, void *context,
                      struct err *err)
{
    if (check_steps(w, err))
        return -1;
    layer_marks_make(&w->marks, &w->records);
    if ((w->records.imported
             ? layers_count(w, err)
             : layer_modules_find(&w->modules, &w->records, w->change->prefix,
                                  err)) ||
        pipe_split_layers(&w->split, w->modules.count, err))
        return -1;
    if (cut_make(w, err) || parameters_place(w, err) ||
        check_boundaries(w, err) || shape_make(w, err))
        return -1;
    report_make(w);
    return ranks_write(w, path, context, err);
}

int stages_change(const struct stages_change *change, const char *from,
                  stages_path *path, void *context,
                  struct stages_report *report, struct err *err)
{
    struct work w = {.change = change, .report = report};

    *report = (struct stages_report){.layers = 0};
    if (pipe_split_read(&w.split, change->stages, err) ||
        records_read(&w.records, from, err))
        return -1;
    int rc = change_all(&w, path, context, err);
    for (uint32_t r = 0; r < PIPE_RANKS_MAX; r++)
        pipe_list_fini(&w.lists[r]);
    free(w.stage_of);
    pipe_cut_fini(&w.cut);
    layer_modules_fini(&w.modules);
    layer_marks_fini(&w.marks);
    records_fini(&w.records);
    return rc;
}
