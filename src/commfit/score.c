/* SPDX-License-Identifier: Apache-2.0 */
#include "commfit/score.h"
#include "common/base/xmalloc.h"
#include "fits/fit_read.h"
#include "runtime/nccl/cost_nccl.h"

#include <math.h>
#include <stdlib.h>

#define FOLDS     5
#define MIN_SIZES 5      /* of a series, for sizes of it to be left out */

/* Another model must be this much better than curves, which span wider gaps in
 * cross-validation than they will, and on at least so many rows. */
#define WORTH    0.5
#define MIN_ROWS 40

static const char *const scorer_names[SCORER_COUNT] = {
    "the fit",    "curves",     "formula",  "published",     "regression",
    "alpha-beta", "LogGP-like", "GenModel", "interpolation",
};

static const char *const held_names[HELD_COUNT] = {
    "every other size", "every fifth size", "node count between",
    "next node count",  "other data",       "nothing left out",
};

const char *scorer_name(enum scorer who)
{
    return scorer_names[who];
}

const char *held_out_name(enum held_out held)
{
    return held_names[held];
}

/* Everything that one refit needs to predict. */
struct trained {
    struct series_set set;
    struct fit fit;
    struct baselines *baselines; /* one a family of SET */
};

static int train_fit(struct trained *t, struct err *err)
{
    if (model_fit(&t->set, &t->fit, err)) {
        series_fini(&t->set);
        return -1;
    }
    t->baselines = xcalloc(t->set.count + 1, sizeof *t->baselines);
    for (uint32_t i = 0; i < t->set.count; i++)
        baselines_fit(&t->set.families[i], &t->baselines[i]);
    return 0;
}

static void trained_fini(struct trained *t)
{
    free(t->baselines);
    fit_fini(&t->fit);
    series_fini(&t->set);
}

static double predict_row(const struct fit *fit, struct score_row *row,
                          enum fit_model model, double quantile)
{
    struct cost_nccl_answer answer;
    const struct cost_nccl_query query = {
        .coll = row->coll,
        .nodes = row->nodes,
        .gpus_per_node = row->gpus,
        .bytes = row->bytes,
        .in_place = row->in_place,
        .model = model,
        .quantile = quantile,
    };

    if (cost_nccl(fit, &query, &answer))
        return NAN;
    if (model == FIT_MODEL_DEFAULT)
        row->answer = answer;
    return answer.us;
}

static const struct series_family *family_find(const struct series_set *set,
                                               const struct score_row *row,
                                               size_t *i)
{
    for (*i = 0; *i < set->count; ++*i)
        if (set->families[*i].coll == row->coll &&
            set->families[*i].gpus == row->gpus)
            return &set->families[*i];
    return NULL;
}

/* On lines in S between the sizes of S; outside, the nearest one's rate. */
static double between_sizes(const struct series *s, double bytes, int place)
{
    const struct series_point *p = s->points;
    uint32_t i = 0;

    if (bytes <= p[0].bytes)
        return p[0].us[place];
    if (bytes >= p[s->count - 1].bytes)
        return p[s->count - 1].us[place] * bytes / p[s->count - 1].bytes;
    while (p[i + 1].bytes < bytes)
        i++;
    double w = (bytes - p[i].bytes) / (p[i + 1].bytes - p[i].bytes);
    return p[i].us[place] + w * (p[i + 1].us[place] - p[i].us[place]);
}

/* Log-log between the node counts of F; beyond, along the last two. */
static double interpolate_row(const struct series_family *f,
                              const struct score_row *row)
{
    uint32_t i = 0;

    while (i + 2 < f->count && f->series[i + 1].nodes < row->nodes)
        i++;
    double a = between_sizes(&f->series[i], row->bytes, row->in_place);
    if (f->series[i].nodes == row->nodes || f->count < 2)
        return f->series[i].nodes == row->nodes ? a : NAN;
    double b = between_sizes(&f->series[i + 1], row->bytes, row->in_place);
    double w = log((double)row->nodes / f->series[i].nodes) /
               log((double)f->series[i + 1].nodes / f->series[i].nodes);
    return a * pow(b / a, w);
}

static void predict_all(const struct trained *t, struct score_row *row)
{
    static const enum fit_model models[] = {
        [SCORE_FIT] = FIT_MODEL_DEFAULT,
        [SCORE_CURVES] = FIT_MODEL_CURVES,
        [SCORE_FORMULA] = FIT_MODEL_FORMULA,
        [SCORE_PUBLISHED] = FIT_MODEL_PUBLISHED,
        [SCORE_REGRESSION] = FIT_MODEL_REGRESSION,
    };
    size_t i;
    const struct series_family *f = family_find(&t->set, row, &i);

    for (int who = 0; who < SCORER_COUNT; who++)
        row->predicted[who] = NAN;
    if (!f)
        return;
    for (int who = SCORE_FIT; who <= SCORE_REGRESSION; who++)
        row->predicted[who] = predict_row(&t->fit, row, models[who], 0);
    for (int b = 0; b < BASELINE_COUNT; b++)
        row->predicted[SCORE_ALPHA_BETA + b] =
            baseline_us(&t->baselines[i], (enum baseline)b, row->bytes,
                        (double)row->nodes * row->gpus);
    row->predicted[SCORE_INTERPOLATION] = interpolate_row(f, row);
}

static void add_row(struct scores *scores, const struct trained *t,
                    const struct series *s, uint32_t index, int place,
                    enum held_out held)
{
    const struct series_point *p = &s->points[index];

    if (!p->measured[place])
        return;
    xgrow(&scores->rows, scores->count, &scores->capacity,
          sizeof *scores->rows);
    struct score_row *row = &scores->rows[scores->count++];
    *row = (struct score_row){
        .coll = s->coll,
        .nodes = s->nodes,
        .gpus = s->gpus,
        .bytes = p->bytes,
        .in_place = place,
        .held = held,
        .us = p->raw_us[place],
    };
    predict_all(t, row);
}

/* One way of leaving something out. */
struct cut {
    enum held_out held;
    uint32_t modulus, fold; /* sizes: those whose index is FOLD of MODULUS */
    enum fit_coll coll;     /* node counts: of this family */
    uint32_t gpus, nodes;   /* ... this count */
    uint32_t larger_too;    /* ... and those above it */
};

static bool cuts_size(const struct series *s, uint32_t index, const void *arg)
{
    const struct cut *cut = arg;

    return s->count >= MIN_SIZES && index % cut->modulus == cut->fold;
}

static bool cuts_nodes(const struct series *s, uint32_t index, const void *arg)
{
    const struct cut *cut = arg;

    (void)index;
    return s->coll == cut->coll && s->gpus == cut->gpus &&
           (s->nodes == cut->nodes ||
            (cut->larger_too && s->nodes > cut->nodes));
}

static bool cuts_nothing(const struct series *s, uint32_t index,
                         const void *arg)
{
    (void)s;
    (void)index;
    (void)arg;
    return false;
}

/* Of what was cut, what counts. */
static bool is_scored(const struct series *s, uint32_t index,
                      const struct cut *cut)
{
    switch (cut->held) {
    case HELD_ALTERNATE:
        return index && index + 1 < s->count;
    case HELD_BETWEEN:
    case HELD_BEYOND:
        return s->nodes == cut->nodes;
    default:
        return true;
    }
}

static void run_cut(const struct series_set *set, const struct cut *cut,
                    struct scores *scores)
{
    series_leave_out *leave_out = cut->held == HELD_NOTHING ? cuts_nothing
                                  : cut->modulus            ? cuts_size
                                                            : cuts_nodes;
    struct err ignored = {""};
    struct trained t;

    series_copy(set, leave_out, cut, &t.set);
    series_clean(&t.set, NULL);
    if (train_fit(&t, &ignored)) /* too little is left: nothing to score */
        return;
    for (uint32_t i = 0; i < set->count; i++)
        for (uint32_t j = 0; j < set->families[i].count; j++) {
            const struct series *s = &set->families[i].series[j];

            for (uint32_t k = 0; k < 2 * s->count; k++)
                if (is_scored(s, k / 2, cut) &&
                    (cut->held == HELD_NOTHING || leave_out(s, k / 2, cut)))
                    add_row(scores, &t, s, k / 2, k % 2, cut->held);
        }
    trained_fini(&t);
}

static void cut_sizes(const struct series_set *set, struct scores *scores)
{
    for (uint32_t fold = 0; fold < 2 + FOLDS; fold++) {
        struct cut cut = {
            .held = fold < 2 ? HELD_ALTERNATE : HELD_FOLDS,
            .modulus = fold < 2 ? 2 : FOLDS,
            .fold = fold < 2 ? fold : fold - 2,
        };

        run_cut(set, &cut, scores);
    }
}

/* A count between needs one on each side; the next larger one needs two below
 * it, since one says nothing about growth. */
static void cut_nodes(const struct fit_machine *machine,
                      struct series_family *f, struct scores *scores)
{
    const struct series_set set = {*machine, true, 1,
                                   f}; /* no other family's business */

    for (uint32_t i = 0; i < f->count; i++) {
        struct cut cut = {
            .held = HELD_BETWEEN,
            .coll = f->coll,
            .gpus = f->gpus,
            .nodes = f->series[i].nodes,
        };

        if (i && i + 1 < f->count)
            run_cut(&set, &cut, scores);
        cut.held = HELD_BEYOND;
        cut.larger_too = true;
        if (i >= 2)
            run_cut(&set, &cut, scores);
    }
}

/* The curves of SET's series, fitted once for all cuts that leave them whole.
 */
static void remember_curves(struct series_set *set, const struct fit *fit)
{
    for (uint32_t i = 0; i < set->count; i++)
        for (uint32_t j = 0; j < set->families[i].count; j++)
            set->families[i].series[j].known = &fit->families[i].curves[j];
}

void score_held_out(const struct series_set *set, struct scores *scores)
{
    const struct cut nothing = {.held = HELD_NOTHING};
    struct series_set whole;
    struct err ignored = {""};
    struct trained t;

    *scores = (struct scores){0};
    series_copy(set, cuts_nothing, NULL, &whole);
    series_copy(set, cuts_nothing, NULL, &t.set);
    series_clean(&t.set, NULL);
    bool trained = !train_fit(&t, &ignored);
    if (trained)
        remember_curves(&whole, &t.fit);
    run_cut(&whole, &nothing, scores);
    cut_sizes(&whole, scores);
    for (uint32_t i = 0; i < whole.count; i++)
        cut_nodes(&whole.machine, &whole.families[i], scores);
    if (trained)
        trained_fini(&t);
    series_fini(&whole);
}

/* Of values in order, on straight lines between them. */
static double quantile_of(const double *sorted, size_t count, double q)
{
    double at = q * (double)(count - 1);
    size_t i = (size_t)at;

    if (i + 1 >= count)
        return sorted[count - 1];
    return sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]);
}

static void add_eval(struct scores *scores, const struct score_row *row,
                     double us)
{
    xgrow(&scores->rows, scores->count, &scores->capacity,
          sizeof *scores->rows);
    scores->rows[scores->count] = *row;
    scores->rows[scores->count++].us = us;
}

static void eval_point(struct bench_point *p, const struct fit *fit,
                       double quantile, struct scores *scores)
{
    struct score_row row = {
        .coll = p->coll,
        .nodes = p->nodes,
        .gpus = p->gpus,
        .bytes = (double)p->bytes,
        .in_place = p->in_place,
        .held = HELD_EVAL,
    };

    for (int who = 0; who < SCORER_COUNT; who++)
        row.predicted[who] = NAN;
    for (int model = 0; model < FIT_MODEL_COUNT; model++)
        row.predicted[SCORE_FIT + model] =
            predict_row(fit, &row, (enum fit_model)model, quantile);
    if (quantile > 0) {
        bench_sort_values(p->us, p->kept);
        add_eval(scores, &row, quantile_of(p->us, p->kept, quantile));
        return;
    }
    for (uint32_t i = 0; i < p->kept; i++)
        add_eval(scores, &row, p->us[i]);
}

void score_eval(const struct bench *b, const struct fit *fit, double quantile,
                struct scores *scores)
{
    *scores = (struct scores){0};
    for (size_t i = 0; i < b->point_count; i++)
        eval_point(&b->points[i], fit, quantile, scores);
}

static bool row_passes(const struct score_row *row,
                       const struct score_filter *f)
{
    return row->held == f->held &&
           (!f->by_family || (row->coll == f->coll && row->gpus == f->gpus)) &&
           (!f->nodes || row->nodes == f->nodes) &&
           (!f->level || (row->nodes > 1) == (f->level == 2)) &&
           row->bytes >= f->bytes_min &&
           (f->bytes_max <= 0 || row->bytes < f->bytes_max);
}

struct score_summary score_sum(const struct scores *scores,
                               const struct score_filter *filter,
                               enum scorer who)
{
    struct score_summary s = {.worst = -1};
    double *errors = xcalloc(scores->count + 1, sizeof *errors);
    double *logs = xcalloc(scores->count + 1, sizeof *logs);
    double squares = 0;

    for (size_t i = 0; i < scores->count; i++) {
        const struct score_row *row = &scores->rows[i];
        double left = row->predicted[who] - row->us;

        if (!row_passes(row, filter) || isnan(left))
            continue;
        double error = fabs(left) / row->us;
        logs[s.count] = fabs(log(row->predicted[who] / row->us));
        errors[s.count++] = error;
        s.mape += error;
        squares += left * left;
        if (error > s.worst) {
            s.worst = error;
            s.worst_row = row;
        }
    }
    if (s.count) {
        bench_sort_values(errors, s.count);
        bench_sort_values(logs, s.count);
        s.band = quantile_of(logs, s.count, 0.8);
        s.median = quantile_of(errors, s.count, 0.5);
        s.p95 = quantile_of(errors, s.count, 0.95);
        s.mape /= (double)s.count;
        s.rmse_ms = sqrt(squares / (double)s.count) / 1e3;
    }
    free(logs);
    free(errors);
    return s;
}

/* WHO on what HELD left out of FAMILY. */
static struct score_summary family_sum(const struct scores *scores,
                                       const struct fit_family *family,
                                       enum held_out held, enum scorer who)
{
    const struct score_filter filter = {
        .held = held,
        .by_family = true,
        .coll = family->coll,
        .gpus = family->gpus_per_node,
    };

    return score_sum(scores, &filter, who);
}

/* The model with the least error on what HELD left out of F: curves, unless
 * another is clearly better. */
static enum fit_model choose_model(const struct scores *scores,
                                   const struct fit_family *f,
                                   enum held_out held)
{
    struct score_summary best = family_sum(scores, f, held, SCORE_CURVES);
    enum fit_model chosen = FIT_MODEL_CURVES;

    for (int model = FIT_MODEL_FORMULA; model < FIT_MODEL_COUNT; model++) {
        struct score_summary s =
            family_sum(scores, f, held, (enum scorer)(SCORE_FIT + model));

        if (s.count >= MIN_ROWS && s.median < WORTH * best.median) {
            chosen = (enum fit_model)model;
            best = s;
        }
    }
    return chosen;
}

/* Negative where nothing was left out. */
static double median_or_none(struct score_summary s)
{
    return s.count ? s.median : -1;
}

static double band_or_none(struct score_summary s)
{
    return s.count ? s.band : -1;
}

void score_store(const struct scores *scores, struct fit *fit)
{
    for (uint32_t i = 0; i < fit->family_count; i++) {
        struct fit_family *f = &fit->families[i];

        f->model = choose_model(scores, f, HELD_FOLDS);
        f->between_model = choose_model(scores, f, HELD_BETWEEN);
        f->beyond_model = choose_model(scores, f, HELD_BEYOND);
        enum scorer who = (enum scorer)(SCORE_FIT + f->model);
        struct score_summary size = family_sum(scores, f, HELD_ALTERNATE, who);
        struct score_summary between =
            family_sum(scores, f, HELD_BETWEEN,
                       (enum scorer)(SCORE_FIT + f->between_model));
        struct score_summary beyond =
            family_sum(scores, f, HELD_BEYOND,
                       (enum scorer)(SCORE_FIT + f->beyond_model));
        f->errors = (struct fit_errors){
            .size_median = median_or_none(size),
            .size_p95 = size.count ? size.p95 : -1,
            .between_median = median_or_none(between),
            .beyond_median = median_or_none(beyond),
            .size_band = band_or_none(size),
            .between_band = band_or_none(between),
            .beyond_band = band_or_none(beyond),
        };
    }
}
