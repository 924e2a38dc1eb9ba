/* SPDX-License-Identifier: Apache-2.0
 * What a class's candidates make of shapes that they have not seen. */
#include "common/base/xmalloc.h"
#include "opfit/fit_class.h"

#include <math.h>
#include <stdlib.h>

#define FOLDS      5
#define FEW_GROUPS 10
/* A model of more numbers must be this much better. */
#define WORTH 0.95

struct errors {
    double *log_ratio; /* ln(price / time) of each own row; NAN: not tried */
    size_t count;
};

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static uint64_t sample_group(const struct fit_class *c, size_t i, bool rows)
{
    uint64_t group =
        rows ? (c->own[i] + 1) * UINT64_C(0x9e3779b97f4a7c15)
             : c->ops->samples[c->own[i]].group * UINT64_C(0xbf58476d1ce4e5b9);

    return group >> 33;
}

static size_t count_groups(const struct fit_class *c)
{
    double *groups = xmalloc((c->own_count + 1) * sizeof *groups);
    size_t count = 0;

    for (size_t i = 0; i < c->own_count; i++)
        groups[i] = (double)sample_group(c, i, false);
    qsort(groups, c->own_count, sizeof *groups, compare_doubles);
    for (size_t i = 0; i < c->own_count; i++)
        count += !i || groups[i] > groups[i - 1];
    free(groups);
    return count;
}

static double row_size(const struct fit_class *c, size_t i)
{
    const struct ops_sample *s = &c->ops->samples[c->own[i]];
    static const struct cost_roofline peak = {0, 1, 1, 0};

    return cost_roofline_ns(&peak, c->limits, &s->work);
}

static double mean_percent(const struct errors *e)
{
    double sum = 0;
    size_t count = 0;

    for (size_t i = 0; i < e->count; i++)
        if (!isnan(e->log_ratio[i])) {
            sum += fabs(exp(e->log_ratio[i]) - 1);
            count++;
        }
    return count ? 100 * sum / (double)count : -1;
}

/* Trains KIND on the rows that TRAIN marks, tests it on those of TEST. */
static void test_split(const struct fit_class *c, enum cost_kind kind,
                       const bool *train, const bool *test,
                       struct errors *errors)
{
    uint32_t *rows = xmalloc((c->own_count + 1) * sizeof *rows);
    struct ops_part part = {c->ops, rows, 0};

    for (size_t i = 0; i < c->own_count; i++)
        if (train[i])
            rows[part.count++] = c->own[i];
    if (part.count && fit_class_tries(c, kind, part.count)) {
        struct fit_state state = fit_class_state(c, kind, &part);

        for (size_t i = 0; i < c->own_count; i++)
            if (test[i])
                errors->log_ratio[i] =
                    log(fit_class_price(c, kind, state.state, c->own[i]) /
                        c->ops->samples[c->own[i]].ns);
        free(state.state);
    }
    free(rows);
}

static void clear_errors(struct errors *errors, size_t count)
{
    errors->count = count;
    for (size_t i = 0; i < count; i++)
        errors->log_ratio[i] = NAN;
}

static void hold_groups_out(const struct fit_class *c, enum cost_kind kind,
                            bool by_row, struct errors *errors)
{
    bool *train = xcalloc(c->own_count + 1, sizeof *train);
    bool *test = xcalloc(c->own_count + 1, sizeof *test);

    clear_errors(errors, c->own_count);
    for (unsigned fold = 0; fold < FOLDS; fold++) {
        for (size_t i = 0; i < c->own_count; i++) {
            test[i] = sample_group(c, i, by_row) % FOLDS == fold;
            train[i] = !test[i];
        }
        test_split(c, kind, train, test, errors);
    }
    free(train);
    free(test);
}

static double hold_largest_out(const struct fit_class *c, enum cost_kind kind,
                               struct errors *errors)
{
    size_t n = c->own_count;
    double *sizes = xmalloc((n + 1) * sizeof *sizes);
    bool *train = xcalloc(n + 1, sizeof *train);
    bool *test = xcalloc(n + 1, sizeof *test);

    for (size_t i = 0; i < n; i++)
        sizes[i] = row_size(c, i);
    qsort(sizes, n, sizeof *sizes, compare_doubles);
    for (size_t i = 0; i < n; i++) {
        train[i] = row_size(c, i) < sizes[n * 7 / 10];
        test[i] = row_size(c, i) > sizes[n * 8 / 10];
    }
    clear_errors(errors, n);
    test_split(c, kind, train, test, errors);
    free(sizes);
    free(train);
    free(test);
    return mean_percent(errors);
}

static double quantile_of(const double *sorted, size_t count, double q)
{
    return sorted[(size_t)(q * (double)(count - 1) + 0.5)];
}

/* The median errors and the band that 80% of the times lie in. */
static void describe_errors(const struct errors *e, struct fit_errors *errors,
                            double *low, double *high)
{
    double *signed_errors = xmalloc((e->count + 1) * sizeof *signed_errors);
    double *sizes = xmalloc((e->count + 1) * sizeof *sizes);
    size_t n = 0;

    for (size_t i = 0; i < e->count; i++)
        if (!isnan(e->log_ratio[i])) {
            signed_errors[n] = e->log_ratio[i];
            sizes[n++] = fabs(exp(e->log_ratio[i]) - 1);
        }
    qsort(signed_errors, n, sizeof *signed_errors, compare_doubles);
    qsort(sizes, n, sizeof *sizes, compare_doubles);
    if (n) {
        errors->median = 100 * quantile_of(sizes, n, 0.5);
        errors->bias = 100 * (exp(quantile_of(signed_errors, n, 0.5)) - 1);
        *low = fmin(1, exp(-quantile_of(signed_errors, n, 0.9)));
        *high = fmax(1, exp(-quantile_of(signed_errors, n, 0.1)));
    }
    free(signed_errors);
    free(sizes);
}

static double bare_error(const struct fit_class *c, struct errors *errors)
{
    clear_errors(errors, c->own_count);
    for (size_t i = 0; i < c->own_count; i++)
        errors->log_ratio[i] =
            log(row_size(c, i) / c->ops->samples[c->own[i]].ns);
    return mean_percent(errors);
}

static double try_kind(const struct fit_class *c, enum cost_kind kind,
                       bool by_row, struct errors *errors)
{
    clear_errors(errors, c->own_count);
    if (fit_class_tries(c, kind, c->own_count))
        hold_groups_out(c, kind, by_row, errors);
    return mean_percent(errors);
}

static double keep_joint(struct fit_class *c, enum cost_kind kind, bool by_row,
                         double alone, struct errors *errors)
{
    struct errors joint = {xmalloc((c->own_count + 1) * sizeof(double)), 0};
    double *worse = joint.log_ratio;

    c->alone = false;
    double error = try_kind(c, kind, by_row, &joint);
    c->alone = alone >= 0 && !(error >= 0 && error < alone);
    if (!c->alone) {
        worse = errors->log_ratio;
        *errors = joint;
    }
    free(worse);
    return c->alone ? alone : error;
}

/* Tries KIND without the other GPUs' rows and with them, and keeps what errs
 * less in C and ERRORS. */
static double try_both(struct fit_class *c, enum cost_kind kind, bool by_row,
                       struct errors *errors)
{
    bool others = fit_class_uses_others(c, kind);

    c->alone = c->alone || others;
    double alone = try_kind(c, kind, by_row, errors);
    return others ? keep_joint(c, kind, by_row, alone, errors) : alone;
}

enum cost_kind fit_class_validate(struct fit_class *c,
                                  struct fit_errors *errors, double *low,
                                  double *high)
{
    struct errors e = {xmalloc((c->own_count + 1) * sizeof(double)), 0};
    enum cost_kind best = COST_LINE;

    *errors =
        (struct fit_errors){.rows = c->own_count, .groups = count_groups(c)};
    bool by_row = errors->groups < FEW_GROUPS;
    for (int kind = 0; kind < COST_KINDS; kind++) {
        errors->mape[kind] = try_both(c, kind, by_row, &e);
        if (errors->mape[kind] >= 0 &&
            (kind == COST_LINE ||
             errors->mape[kind] < WORTH * errors->mape[best])) {
            best = kind;
            describe_errors(&e, errors, low, high);
        }
    }
    errors->plain = bare_error(c, &e);
    errors->larger_line = hold_largest_out(c, COST_LINE, &e);
    errors->larger =
        best == COST_LINE ? errors->larger_line : hold_largest_out(c, best, &e);
    free(e.log_ratio);
    return best;
}
