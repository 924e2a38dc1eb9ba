/* SPDX-License-Identifier: Apache-2.0
 * The least time by linear regression on the published formula and what it
 * leaves out, with a ridge that cross-validation chooses: on one node, or with
 * one collective, most of the columns are multiples of each other. */
#include "commfit/model.h"
#include "common/base/xmalloc.h"
#include "runtime/nccl/fit_formula.h"

#include <gsl/gsl_multifit.h>
#include <math.h>
#include <stdlib.h>

#define FOLDS    5
#define MIN_ROWS (2 * FIT_TERMS)

static const double ridges[] = {1e-6, 1e-4, 1e-3, 1e-2, 1e-1, 1};

#define RIDGES (sizeof ridges / sizeof *ridges)

struct rows {
    size_t count;
    double (*features)[FIT_TERMS]; /* each divided by the row's time */
};

static void fill_rows(const struct series_family *f, const struct fit *fit,
                      struct rows *rows)
{
    size_t capacity = 0;

    *rows = (struct rows){0};
    for (uint32_t i = 0; i < f->count; i++)
        for (uint32_t j = 0; j < f->series[i].count; j++) {
            const struct series_point *p = &f->series[i].points[j];
            double us = sqrt(p->us[0] * p->us[1]);

            xgrow(&rows->features, rows->count, &capacity,
                  sizeof *rows->features);
            double *x = rows->features[rows->count++];
            fit_regression_features(f->coll, fit->levels[FIT_PUBLISHED],
                                    p->bytes, f->series[i].nodes, f->gpus, x);
            for (int k = 0; k < FIT_TERMS; k++)
                x[k] /= us;
        }
}

/* Root mean square of each column: columns are scaled to the same size, so
 * that one ridge serves them all. */
static void column_scales(const struct rows *rows, double scales[FIT_TERMS])
{
    for (int k = 0; k < FIT_TERMS; k++) {
        double squares = 0;

        for (size_t i = 0; i < rows->count; i++)
            squares += rows->features[i][k] * rows->features[i][k];
        scales[k] = sqrt(squares / (double)rows->count);
    }
}

static bool left_out(size_t row, int fold)
{
    return fold >= 0 && row % FOLDS == (size_t)fold;
}

/* Solves for all rows but FOLD's (-1: for all). Returns 0 or -1. */
static int regression_solve(const struct rows *rows,
                            const double scales[FIT_TERMS], int fold,
                            double ridge, double terms[FIT_TERMS])
{
    size_t n = 0;
    double residual, norm;
    gsl_matrix *x = gsl_matrix_alloc(rows->count, FIT_TERMS);
    gsl_vector *y = gsl_vector_alloc(rows->count);
    gsl_vector *c = gsl_vector_alloc(FIT_TERMS);

    for (size_t i = 0; i < rows->count; i++) {
        if (left_out(i, fold))
            continue;
        for (size_t k = 0; k < FIT_TERMS; k++)
            gsl_matrix_set(
                x, n, k, scales[k] > 0 ? rows->features[i][k] / scales[k] : 0);
        gsl_vector_set(y, n++, 1);
    }
    gsl_matrix_view xv = gsl_matrix_submatrix(x, 0, 0, n, FIT_TERMS);
    gsl_vector_view yv = gsl_vector_subvector(y, 0, n);
    gsl_multifit_linear_workspace *w = gsl_multifit_linear_alloc(n, FIT_TERMS);
    int rc = gsl_multifit_linear_svd(&xv.matrix, w) ||
             gsl_multifit_linear_solve(sqrt(ridge * (double)n), &xv.matrix,
                                       &yv.vector, c, &residual, &norm, w);
    for (size_t k = 0; k < FIT_TERMS; k++) {
        terms[k] = scales[k] > 0 ? gsl_vector_get(c, k) / scales[k] : 0;
        rc |= !isfinite(terms[k]);
    }
    gsl_multifit_linear_free(w);
    gsl_vector_free(c);
    gsl_vector_free(y);
    gsl_matrix_free(x);
    return rc ? -1 : 0;
}

/* Predicted over measured. */
static double predict_ratio(const double *features, const double *terms)
{
    double sum = 0;

    for (int k = 0; k < FIT_TERMS; k++)
        sum += features[k] * terms[k];
    return sum;
}

static double validate_rows(const struct rows *rows, const double *scales,
                            double ridge)
{
    double error = 0, terms[FIT_TERMS];

    for (int fold = 0; fold < FOLDS; fold++) {
        if (regression_solve(rows, scales, fold, ridge, terms))
            return INFINITY;
        for (size_t i = (size_t)fold; i < rows->count; i += FOLDS)
            error += fmin(fabs(predict_ratio(rows->features[i], terms) - 1), 1);
    }
    return error;
}

static void take_ranges(const struct series_family *s, struct fit_regression *r)
{
    r->bytes_min = INFINITY;
    r->bytes_max = 0;
    r->ranks_min = (double)s->series[0].nodes * s->gpus;
    r->ranks_max = (double)s->series[s->count - 1].nodes * s->gpus;
    for (uint32_t i = 0; i < s->count; i++) {
        const struct series *t = &s->series[i];

        r->bytes_min = fmin(r->bytes_min, t->points[0].bytes);
        r->bytes_max = fmax(r->bytes_max, t->points[t->count - 1].bytes);
    }
}

void regression_fit(const struct series_family *s, const struct fit *fit,
                    struct fit_family *family)
{
    struct rows rows;
    double scales[FIT_TERMS], least = INFINITY, ridge = 0;

    fill_rows(s, fit, &rows);
    if (rows.count >= MIN_ROWS) {
        column_scales(&rows, scales);
        for (size_t i = 0; i < RIDGES; i++) {
            double error = validate_rows(&rows, scales, ridges[i]);

            if (error < least) {
                least = error;
                ridge = ridges[i];
            }
        }
        family->regression.known =
            ridge > 0 && !regression_solve(&rows, scales, -1, ridge,
                                           family->regression.terms);
        take_ranges(s, &family->regression);
    }
    free(rows.features);
}
