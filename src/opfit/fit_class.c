/* SPDX-License-Identifier: Apache-2.0 */
#include "opfit/fit_class.h"
#include "common/base/xmalloc.h"
#include "opfit/trees.h"
#include "runtime/cost/cost_features.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MIN_SEGMENTS 40
#define MIN_TREES    150
#define MANY_OWN     1000  /* enough to do without other GPUs */
#define OWN_WEIGHT   4.0   /* of an own row where others help */
#define MANY_OTHERS  40000 /* more take minutes and change little */

/* What trees are for: families of shapes, not of bytes alone. */
static bool has_shapes(enum work_family family)
{
    return family >= WORK_GEMM && family <= WORK_CONVOLUTION_WGRAD;
}

/* What a source adds to the time of a shape: bursts run above what power lets
 * a GPU sustain. Memory's rate does not depend on it. */
static uint32_t source_input(const struct fit_class *c, uint32_t source)
{
    return has_shapes(c->family) ? c->source_rank[source] : 0;
}

/* One answer for all parts of the own rows, so that what is validated on parts
 * is what the whole is fitted by. */
static bool has_few(const struct fit_class *c)
{
    return c->own_count < MANY_OWN && has_shapes(c->family);
}

static bool uses_others(const struct fit_class *c)
{
    return !c->alone && has_few(c);
}

bool fit_class_uses_others(const struct fit_class *c, enum cost_kind kind)
{
    return kind == COST_TREES && uses_others(c) && c->other_count;
}

bool fit_class_tries(const struct fit_class *c, enum cost_kind kind,
                     size_t rows)
{
    if (kind == COST_SEGMENTS)
        return !has_shapes(c->family) && !c->launch_only &&
               rows >= MIN_SEGMENTS;
    if (kind == COST_TREES && c->family == WORK_ELEMENTWISE)
        return false; /* bytes are all that tells one from another */
    if (kind == COST_TREES)
        return rows + (uses_others(c) ? c->other_count : 0) >= MIN_TREES;
    return true;
}

static struct fit_state copy_state(const void *from, size_t bytes)
{
    struct fit_state state = {xmalloc(bytes), bytes};

    memcpy(state.state, from, bytes);
    return state;
}

struct learner {
    const struct fit_class *c;
    float *x;
    double *y, *weight;
    size_t count;
    unsigned features;
};

static void learn_row(struct learner *l, uint32_t row, uint32_t rank,
                      const struct cost_roofline *line, double weight)
{
    const struct ops *ops = l->c->ops;
    const struct ops_sample *s = &ops->samples[row];
    const struct cost_gpu *gpu = &ops->sources[s->source].gpu;
    float x[COST_FEATURES];

    l->features = cost_features(gpu, &s->work, rank, x);
    memcpy(l->x + l->count * l->features, x, l->features * sizeof *x);
    l->y[l->count] = log(s->ns / cost_roofline_ns(line, gpu, &s->work));
    l->weight[l->count++] = weight;
}

/* Of arithmetic whose times all include a launch the floor takes up what is
 * left of that; fit_class_cap_floor() takes it off. */
static struct cost_roofline class_line(const struct fit_class *c,
                                       const struct ops_part *part)
{
    return c->launch_only && c->family == WORK_ELEMENTWISE
               ? line_fit_bytes(part)
               : line_fit(part);
}

static struct fit_state grow_trees(const struct fit_class *c,
                                   const struct ops_part *part)
{
    static const struct trees_options options = {.trees = 400,
                                                 .depth = 6,
                                                 .leaf_weight = 5,
                                                 .ridge = 1,
                                                 .rate = 0.08,
                                                 .row_share = 0.7,
                                                 .feature_share = 0.6};
    struct trees_options chosen = options;
    struct cost_roofline line = class_line(c, part);
    bool others = uses_others(c);
    size_t rows = part->count + (others ? c->other_count : 0);
    struct learner l = {.c = c};
    struct fit_state state;

    l.x = xmalloc((rows + 1) * COST_FEATURES * sizeof *l.x);
    l.y = xmalloc((rows + 1) * sizeof *l.y);
    l.weight = xmalloc((rows + 1) * sizeof *l.weight);
    for (size_t i = 0; i < part->count; i++) {
        uint32_t source = c->ops->samples[part->rows[i]].source;

        learn_row(&l, part->rows[i], source_input(c, source), &line,
                  has_few(c) ? OWN_WEIGHT : 1);
    }
    size_t stride = c->other_count / MANY_OTHERS + 1;
    for (size_t i = 0; others && i < c->other_count; i += stride)
        learn_row(&l, c->other[i], 0,
                  &c->source_lines[c->ops->samples[c->other[i]].source], 1);
    struct trees_data data = {l.count, l.features, l.x, l.y, l.weight};
    chosen.seed = c->seed;
    if (rows < 1500)
        chosen.trees = 150;
    state.state = trees_grow(&data, &chosen, &line, &state.bytes);
    free(l.x);
    free(l.y);
    free(l.weight);
    return state;
}

struct fit_state fit_class_state(const struct fit_class *c, enum cost_kind kind,
                                 const struct ops_part *part)
{
    if (kind == COST_TREES)
        return grow_trees(c, part);
    if (kind == COST_SEGMENTS) {
        struct cost_segments segments = segments_fit(part);

        return copy_state(&segments, sizeof segments);
    }
    struct cost_roofline line = class_line(c, part);
    return copy_state(&line, sizeof line);
}

double fit_class_price(const struct fit_class *c, enum cost_kind kind,
                       const void *state, uint32_t row)
{
    const struct ops_sample *s = &c->ops->samples[row];
    const struct work *work = &s->work;
    double ns;

    if (kind == COST_TREES)
        ns = cost_trees_ns(state, c->limits, work, source_input(c, s->source));
    else if (kind == COST_SEGMENTS)
        ns = cost_segments_ns(state, work->read_bytes + work->written_bytes);
    else
        ns = cost_roofline_ns(state, c->limits, work);
    return fmax(ns, cost_bound_ns(c->limits, work));
}

void fit_class_cap_floor(const struct fit_class *c, enum cost_kind kind,
                         void *state)
{
    struct cost_roofline *line =
        kind == COST_TREES ? &((struct cost_trees *)state)->line : state;
    const struct work *work = &c->ops->samples[c->own[0]].work;

    if (c->launch_only && kind != COST_SEGMENTS)
        line->floor_ns =
            fmin(line->floor_ns, cost_roofline_default(work)->floor_ns);
}

/* Sustained times first: that is what a step of training sees. */
static int source_order(const struct ops_source *a, const struct ops_source *b)
{
    if (a->clock != b->clock)
        return a->clock == OPS_SUSTAINED   ? -1
               : b->clock == OPS_SUSTAINED ? 1
               : a->clock == OPS_LOOP      ? -1
               : b->clock == OPS_LOOP      ? 1
                                           : (int)a->clock - (int)b->clock;
    return (a->rows < b->rows) - (a->rows > b->rows);
}

static void rank_sources(struct fit_class *c, const bool *used)
{
    const struct ops_source *sources = c->ops->sources;

    for (size_t i = 0; i < c->ops->source_count; i++) {
        uint32_t rank = 0;

        for (size_t j = 0; used[i] && j < c->ops->source_count; j++) {
            int order = source_order(&sources[j], &sources[i]);

            rank += used[j] && j != i && (order < 0 || (!order && j < i));
        }
        c->source_rank[i] = rank;
    }
}

/* The roofline of the GPU of source SOURCE, from its rows of this class. */
static struct cost_roofline other_line(const struct fit_class *c,
                                       const char *gpu)
{
    struct ops_part part = {c->ops, NULL, 0};
    uint32_t *rows = xmalloc((c->other_count + 1) * sizeof *rows);

    for (size_t i = 0; i < c->other_count; i++) {
        uint32_t source = c->ops->samples[c->other[i]].source;

        if (!strcmp(c->ops->sources[source].gpu_name, gpu))
            rows[part.count++] = c->other[i];
    }
    part.rows = rows;
    struct cost_roofline line = line_fit(&part);
    free(rows);
    return line;
}

void fit_class_prepare(struct fit_class *c, const char *gpu)
{
    size_t n = c->ops->source_count;
    bool *used = xcalloc(n + 1, sizeof *used);

    c->source_rank = xcalloc(n + 1, sizeof *c->source_rank);
    c->source_lines = xcalloc(n + 1, sizeof *c->source_lines);
    c->launch_only = true;
    for (size_t i = 0; i < c->own_count; i++) {
        uint32_t source = c->ops->samples[c->own[i]].source;

        used[source] = true;
        c->launch_only &= c->ops->sources[source].clock == OPS_LAUNCH;
    }
    rank_sources(c, used);
    memset(used, 0, n * sizeof *used);
    for (size_t i = 0; i < c->other_count; i++)
        used[c->ops->samples[c->other[i]].source] = true;
    for (size_t i = 0; i < n && uses_others(c); i++)
        if (used[i] && strcmp(c->ops->sources[i].gpu_name, gpu))
            c->source_lines[i] = other_line(c, c->ops->sources[i].gpu_name);
    free(used);
}

void fit_class_fini(struct fit_class *c)
{
    free(c->own);
    free(c->other);
    free(c->source_rank);
    free(c->source_lines);
}
