/* SPDX-License-Identifier: Apache-2.0 */
#include "opfit/fit_ops.h"
#include "common/base/xmalloc.h"
#include "opfit/fit_class.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MIN_ROWS 4

#define BIT(type)   (UINT32_C(1) << (type))
#define HALF        (BIT(WORK_FP16) | BIT(WORK_BF16))
#define ANY_TYPE    (BIT(WORK_TYPES) - 1)
#define ANY_VARIANT UINT32_MAX

/* Types whose arithmetic runs at one rate share a model; families that memory
 * bounds have one for all. */
static const uint32_t type_classes[] = {
    HALF,           BIT(WORK_FP32), BIT(WORK_TF32),
    BIT(WORK_FP64), BIT(WORK_FP8),  BIT(WORK_INT8),
    BIT(WORK_FP4),
};

static bool is_typed(enum work_family family)
{
    return family >= WORK_GEMM && family <= WORK_CONVOLUTION_WGRAD;
}

static bool in_class(const struct fit_class *c, const struct work *work)
{
    return work->family == c->family && (c->types >> work->type & 1) &&
           (c->variants >> work_variant(work) & 1);
}

/* The rows of the class: measured ones, or estimates. */
static void pick_rows_of(struct fit_class *c, const char *gpu, bool estimates)
{
    c->own_count = c->other_count = 0;
    for (size_t i = 0; i < c->ops->count; i++) {
        const struct ops_sample *s = &c->ops->samples[i];
        const struct ops_source *source = &c->ops->sources[s->source];

        if (!in_class(c, &s->work))
            continue;
        if ((source->clock == OPS_ESTIMATED) == estimates &&
            !strcmp(source->gpu_name, gpu))
            c->own[c->own_count++] = (uint32_t)i;
        else if (source->clock != OPS_ESTIMATED && !estimates)
            c->other[c->other_count++] = (uint32_t)i;
    }
}

/* Estimates serve where there are no measurements, and no other GPU. */
static void pick_rows(struct fit_class *c, const char *gpu)
{
    size_t n = c->ops->count;

    c->own = xmalloc((n + 1) * sizeof *c->own);
    c->other = xmalloc((n + 1) * sizeof *c->other);
    pick_rows_of(c, gpu, false);
    if (c->own_count < MIN_ROWS)
        pick_rows_of(c, gpu, true);
}

/* The band of the estimates among the own rows; 0: none are. */
static double estimates_band(const struct fit_class *c)
{
    const struct ops_source *source =
        &c->ops->sources[c->ops->samples[c->own[0]].source];

    return source->clock == OPS_ESTIMATED ? source->band : 0;
}

static void fit_class(struct fit_ops *fit, enum work_family family,
                      uint32_t types, uint32_t variants)
{
    struct fit_class c = {.ops = fit->ops,
                          .limits = &fit->limits,
                          .family = family,
                          .types = types,
                          .variants = variants,
                          .seed = fit->seed};
    struct ops_model model = {.family = family,
                              .types = types,
                              .variants = variants,
                              .basis = COST_FITTED,
                              .low = 1,
                              .high = 1};

    pick_rows(&c, fit->gpu);
    if (c.own_count >= MIN_ROWS) {
        struct ops_part all = {c.ops, c.own, c.own_count};

        fit_class_prepare(&c, fit->gpu);
        model.kind =
            fit_class_validate(&c, &model.errors, &model.low, &model.high);
        struct fit_state state = fit_class_state(&c, model.kind, &all);
        fit_class_cap_floor(&c, model.kind, state.state);
        double band = estimates_band(&c);
        if (band > 0) {
            model.basis = COST_ESTIMATED;
            model.low = fmin(model.low, 1 / band);
            model.high = fmax(model.high, band);
        }
        model.state = state.state;
        model.state_bytes = state.bytes;
        xgrow(&fit->models, fit->count, &fit->capacity, sizeof *fit->models);
        fit->models[fit->count++] = model;
    }
    fit_class_fini(&c);
}

/* Variants that have models for each type. */
static unsigned last_variant(enum work_family family)
{
    return family < WORK_CONVOLUTION_FORWARD ? WORK_VARIANTS - 1 : 0;
}

/* Enough rows for trees to learn what batches change. */
#define MANY_ROWS 1000

/* The mean error of the models from FROM on, and their ROWS. */
static double mean_error(const struct fit_ops *fit, size_t from, size_t *rows)
{
    double sum = 0;

    *rows = 0;
    for (size_t i = from; i < fit->count; i++) {
        const struct ops_model *m = &fit->models[i];

        sum += (double)m->errors.rows * m->errors.mape[m->kind];
        *rows += m->errors.rows;
    }
    return *rows ? sum / (double)*rows : 0;
}

/* Drops the models FROM to before TO. */
static void drop_models(struct fit_ops *fit, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        free(fit->models[i].state);
    memmove(fit->models + from, fit->models + to,
            (fit->count - to) * sizeof *fit->models);
    fit->count -= to - from;
}

/* Products of one type: one model, or one for batched ones and one for others
 * where that is better. */
static void fit_products(struct fit_ops *fit, uint32_t types)
{
    size_t first = fit->count, rows, split_rows;

    fit_class(fit, WORK_GEMM, types, ANY_VARIANT);
    double whole = mean_error(fit, first, &rows);
    if (!rows || rows >= MANY_ROWS)
        return;
    for (unsigned v = 0; v < 2; v++)
        fit_class(fit, WORK_GEMM, types, BIT(v));
    double split = mean_error(fit, first + 1, &split_rows);
    if (split_rows == rows && split < whole)
        drop_models(fit, first, first + 1);
    else
        drop_models(fit, first + 1, fit->count);
}

static void fit_family(struct fit_ops *fit, enum work_family family)
{
    for (unsigned v = 0; family == WORK_SORT && v < WORK_VARIANTS; v++)
        fit_class(fit, family, ANY_TYPE, BIT(v));
    if (family == WORK_SORT)
        return;
    if (!is_typed(family)) {
        fit_class(fit, family, ANY_TYPE, ANY_VARIANT);
        return;
    }
    for (size_t t = 0; t < sizeof type_classes / sizeof *type_classes; t++) {
        if (family == WORK_GEMM)
            fit_products(fit, type_classes[t]);
        for (unsigned v = 0; family != WORK_GEMM && v <= last_variant(family);
             v++)
            fit_class(fit, family, type_classes[t], BIT(v));
    }
    if (family >= WORK_CONVOLUTION_FORWARD) /* depthwise: one rate for all */
        fit_class(fit, family, ANY_TYPE, BIT(1));
}

void fit_ops_run(const struct ops *ops, const char *gpu,
                 const struct cost_gpu *limits, uint64_t seed,
                 struct fit_ops *fit)
{
    *fit = (struct fit_ops){.limits = *limits, .ops = ops, .seed = seed};
    snprintf(fit->gpu, sizeof fit->gpu, "%s", gpu);
    for (int family = 0; family < WORK_FAMILIES; family++)
        fit_family(fit, family);
}

void fit_ops_free(struct fit_ops *fit)
{
    for (size_t i = 0; i < fit->count; i++)
        free(fit->models[i].state);
    free(fit->models);
    *fit = (struct fit_ops){0};
}

static void append_name(char *name, size_t size, const char *word)
{
    size_t length = strlen(name);

    snprintf(name + length, size - length, " %s", word);
}

void ops_model_name(const struct ops_model *model, char *name, size_t size)
{
    snprintf(name, size, "%s", work_family_name(model->family));
    for (int t = 0; t < WORK_TYPES && model->types != ANY_TYPE; t++)
        if (model->types >> t & 1)
            append_name(name, size, work_type_name(t));
    for (unsigned v = 0; v < WORK_VARIANTS && model->variants != ANY_VARIANT;
         v++)
        if ((model->variants >> v & 1) && work_variant_name(model->family, v))
            append_name(name, size, work_variant_name(model->family, v));
}

static void print_percent(FILE *out, double percent)
{
    if (percent < 0)
        fprintf(out, " %9s", "-");
    else
        fprintf(out, " %8.1f%%", percent);
}

void fit_ops_print(const struct fit_ops *fit, FILE *out)
{
    fprintf(out, "%-36s %6s %6s %9s %9s %9s %9s  %-9s %9s %9s\n",
            "mean |error|, shape groups held out", "rows", "groups", "limits",
            "roofline", "segments", "trees", "chosen", "median", "larger");
    for (size_t i = 0; i < fit->count; i++) {
        const struct ops_model *m = &fit->models[i];
        char name[96];

        ops_model_name(m, name, sizeof name);
        fprintf(out, "%-36s %6zu %6zu", name, m->errors.rows, m->errors.groups);
        print_percent(out, m->errors.plain);
        for (int kind = 0; kind < COST_KINDS; kind++)
            print_percent(out, m->errors.mape[kind]);
        fprintf(out, "  %-9s", cost_kind_ops(m->kind)->name);
        print_percent(out, m->errors.median);
        print_percent(out, m->errors.larger);
        fputc('\n', out);
    }
}
