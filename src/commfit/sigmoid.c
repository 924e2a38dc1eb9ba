/* SPDX-License-Identifier: Apache-2.0 */
#include "commfit/sigmoid.h"
#include "commfit/breaks.h"
#include "common/base/xmalloc.h"
#include "runtime/nccl/fit_curve.h"

#include <gsl/gsl_multifit_nlinear.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PARAMETERS   5 /* base, limit, steepness, midpoint, latency */
#define ITERATIONS   1000
#define TOLERANCE    1e-5
#define ROUNDS       3 /* of reweighting */
#define STARTS       3
#define CAUCHY       0.1 /* residuals beyond 10% count less and less */
#define FOLDS        5
#define MIN_SIZES    5    /* for a sigmoid; fewer: latency and one bandwidth */
#define PIECE_SIZES  5    /* the fewest of a piece */
#define WORTH        0.95 /* another piece must save this much */
#define GOOD         0.01 /* an error that no other piece is tried for */
#define STEEPNESS    6.0
#define MIDPOINT_MAX 30.0 /* log of 10 TB */

/* Of a tie to the start: what the data does not fix (a limit beyond the largest
 * size, a steepness without a slope) stays there instead of running away, and
 * what it does fix is moved by less than a thousandth. */
#define TIE 1e-2

/* The parameters as GSL moves them: each real number stands for a value in
 * range, so that no bandwidth and no latency can become negative. */
struct problem {
    const struct sigmoid_point *points;
    uint32_t count;
    bool constant;     /* only latency and base are free */
    bool keep_latency; /* LATENCY is given */
    double latency_us;
    const struct fit_sigmoid *guess; /* the only start, where not NULL */
    double start[PARAMETERS];
};

static double logistic_of(double x)
{
    return 1 / (1 + exp(-x));
}

static double logit_of(double p)
{
    return log(p / (1 - p));
}

static double clamp_between(double x, double low, double high)
{
    return fmin(fmax(x, low), high);
}

/* exp, within what a time in us or a bandwidth in GB/s may be. */
static double make_positive(double x)
{
    return exp(clamp_between(x, -20, 20));
}

static size_t free_count(const struct problem *p)
{
    return (p->constant ? 1 : 4) + !p->keep_latency;
}

/* From GSL's vector: base [limit steepness midpoint] [latency]. */
static struct fit_sigmoid unpack_sigmoid(const struct problem *p,
                                         const gsl_vector *x)
{
    struct fit_sigmoid s = {.steepness = 1};

    s.base_gbps = make_positive(gsl_vector_get(x, 0));
    if (!p->constant) {
        s.limit_gbps = make_positive(gsl_vector_get(x, 1));
        s.steepness = STEEPNESS * logistic_of(gsl_vector_get(x, 2));
        s.midpoint = MIDPOINT_MAX * logistic_of(gsl_vector_get(x, 3));
    }
    s.latency_us = p->keep_latency
                       ? p->latency_us
                       : make_positive(gsl_vector_get(x, free_count(p) - 1));
    return s;
}

static double model_us(const struct sigmoid_point *p,
                       const struct fit_sigmoid *s)
{
    double x = p->log_size - s->midpoint;
    double gbps = s->limit_gbps / (1 + exp(-s->steepness * x)) + s->base_gbps;

    return p->fixed_us + p->steps * s->latency_us +
           p->sent_bytes / (1e3 * gbps);
}

static double point_residual(const struct sigmoid_point *p,
                             const struct fit_sigmoid *s)
{
    return log(fmax(model_us(p, s), FIT_MIN_US) / p->us);
}

static int all_residuals(const gsl_vector *x, void *arg, gsl_vector *f)
{
    const struct problem *p = arg;
    struct fit_sigmoid s = unpack_sigmoid(p, x);

    for (uint32_t i = 0; i < p->count; i++)
        gsl_vector_set(f, i, point_residual(&p->points[i], &s));
    for (size_t i = 0; i < x->size; i++)
        gsl_vector_set(f, p->count + i,
                       TIE * (gsl_vector_get(x, i) - p->start[i]));
    return GSL_SUCCESS;
}

/* d us / d x of unpack's numbers, over us: the logarithm's slope. A bandwidth's
 * own slopes in order: log base, log limit, and the two logits. */
static void point_slopes(const struct problem *p, const struct sigmoid_point *q,
                         const struct fit_sigmoid *s, double row[PARAMETERS])
{
    double distance = q->log_size - s->midpoint;
    double rise = 1 / (1 + exp(-s->steepness * distance));
    double gbps = s->limit_gbps * rise + s->base_gbps;
    double us =
        q->fixed_us + q->steps * s->latency_us + q->sent_bytes / (1e3 * gbps);
    double by_gbps = -q->sent_bytes / (1e3 * gbps * gbps) / us;
    double by_rise = by_gbps * s->limit_gbps * rise * (1 - rise);

    row[0] = by_gbps * s->base_gbps;
    if (!p->constant) {
        row[1] = by_gbps * s->limit_gbps * rise;
        row[2] =
            by_rise * distance * s->steepness * (1 - s->steepness / STEEPNESS);
        row[3] = -by_rise * s->steepness * s->midpoint *
                 (1 - s->midpoint / MIDPOINT_MAX);
    }
    if (!p->keep_latency)
        row[free_count(p) - 1] = q->steps * s->latency_us / us;
}

static int all_slopes(const gsl_vector *x, void *arg, gsl_matrix *j)
{
    const struct problem *p = arg;
    struct fit_sigmoid s = unpack_sigmoid(p, x);
    double row[PARAMETERS];

    for (uint32_t i = 0; i < p->count; i++) {
        point_slopes(p, &p->points[i], &s, row);
        for (size_t k = 0; k < x->size; k++)
            gsl_matrix_set(j, i, k, row[k]);
    }
    for (size_t i = 0; i < x->size; i++)
        for (size_t k = 0; k < x->size; k++)
            gsl_matrix_set(j, p->count + i, k, i == k ? TIE : 0);
    return GSL_SUCCESS;
}

/* Cauchy's weights for what the last round left. */
static void reweight_points(const struct problem *p,
                            const struct fit_sigmoid *s, gsl_vector *weights)
{
    for (uint32_t i = 0; i < p->count; i++) {
        double r = s ? point_residual(&p->points[i], s) / CAUCHY : 0;

        gsl_vector_set(weights, i, 1 / (1 + r * r));
    }
    for (size_t i = p->count; i < weights->size; i++)
        gsl_vector_set(weights, i, 1);
}

/* The robust loss that the rounds bring down; compares starts. */
static double sigmoid_loss(const struct problem *p, const struct fit_sigmoid *s)
{
    double sum = 0;

    for (uint32_t i = 0; i < p->count; i++) {
        double r = point_residual(&p->points[i], s) / CAUCHY;

        sum += log1p(r * r);
    }
    return sum / p->count;
}

/* Where no step is better than standing still GSL's driver says "too many
 * iterations" too, and the true reason apart (multifit_nlinear/fdf.c,
 * gsl_multifit_nlinear_driver). */
static bool has_converged(int status, int info)
{
    return status == GSL_SUCCESS ||
           (status == GSL_EMAXITER && info == GSL_ENOPROG);
}

/* Runs from X, which is overwritten. Returns 0 or -1. */
static int descend_from(struct problem *p, gsl_vector *x, struct fit_sigmoid *s)
{
    gsl_multifit_nlinear_parameters options =
        gsl_multifit_nlinear_default_parameters();
    gsl_multifit_nlinear_fdf fdf = {
        .f = all_residuals,
        .df = all_slopes,
        .n = p->count + x->size,
        .p = x->size,
        .params = p,
    };
    /* The tie keeps the normal equations well conditioned; QR takes three
     * times as long. */
    options.solver = gsl_multifit_nlinear_solver_cholesky;
    gsl_multifit_nlinear_workspace *w = gsl_multifit_nlinear_alloc(
        gsl_multifit_nlinear_trust, &options, fdf.n, fdf.p);
    gsl_vector *weights = gsl_vector_alloc(fdf.n);
    int rc = -1, info = 0;

    for (size_t i = 0; i < x->size; i++)
        p->start[i] = gsl_vector_get(x, i);
    reweight_points(p, NULL, weights);
    for (int round = 0; round < ROUNDS; round++) {
        if (gsl_multifit_nlinear_winit(x, weights, &fdf, w))
            break;
        int status = gsl_multifit_nlinear_driver(
            ITERATIONS, TOLERANCE, TOLERANCE, 0, NULL, NULL, &info, w);
        gsl_vector_memcpy(x, gsl_multifit_nlinear_position(w));
        *s = unpack_sigmoid(p, x);
        rc = has_converged(status, info) && isfinite(sigmoid_loss(p, s)) ? 0
                                                                         : -1;
        reweight_points(p, s, weights);
    }
    gsl_vector_free(weights);
    gsl_multifit_nlinear_free(w);
    return rc;
}

/* Rates and the least time of the points: where starts are taken from. */
struct scale {
    double slowest_gbps, fastest_gbps, us, middle;
};

static struct scale scale_of(const struct problem *p)
{
    struct scale s = {INFINITY, 0, INFINITY, 0};

    for (uint32_t i = 0; i < p->count; i++) {
        const struct sigmoid_point *q = &p->points[i];
        double gbps = fmax(q->sent_bytes, 1) / q->us / 1e3;

        s.slowest_gbps = fmin(s.slowest_gbps, gbps);
        s.fastest_gbps = fmax(s.fastest_gbps, gbps);
        s.us = fmin(s.us, q->us / fmax(q->steps, 1));
        s.middle += log(q->bytes + 1) / p->count;
    }
    return s;
}

static void start_at(const struct problem *p, const struct scale *s, int start,
                     gsl_vector *x)
{
    static const struct {
        double steepness, shift, base;
    } starts[STARTS] = {{0.7, 0, 1e-2}, {1.5, 2, 1e-1}, {0.4, -3, 1e-3}};

    gsl_vector_set(x, 0,
                   log(s->fastest_gbps) +
                       (p->constant ? 0 : log(starts[start].base)));
    if (!p->constant) {
        double middle = s->middle + starts[start].shift;

        gsl_vector_set(x, 1, log(s->fastest_gbps));
        gsl_vector_set(x, 2, logit_of(starts[start].steepness / STEEPNESS));
        gsl_vector_set(
            x, 3, logit_of(clamp_between(middle / MIDPOINT_MAX, 0.05, 0.95)));
    }
    if (!p->keep_latency)
        gsl_vector_set(x, free_count(p) - 1, log(0.8 * s->us));
}

/* Where another fit of nearly the same points ended. */
static void start_from(const struct problem *p, const struct fit_sigmoid *s,
                       gsl_vector *x)
{
    gsl_vector_set(x, 0, log(s->base_gbps));
    if (!p->constant) {
        double k = clamp_between(s->steepness / STEEPNESS, 1e-6, 1 - 1e-6);
        double m = clamp_between(s->midpoint / MIDPOINT_MAX, 1e-6, 1 - 1e-6);

        gsl_vector_set(x, 1, log(fmax(s->limit_gbps, 1e-9)));
        gsl_vector_set(x, 2, logit_of(k));
        gsl_vector_set(x, 3, logit_of(m));
    }
    if (!p->keep_latency)
        gsl_vector_set(x, free_count(p) - 1, log(fmax(s->latency_us, 1e-6)));
}

static int sigmoid_solve(struct problem *p, struct fit_sigmoid *best)
{
    struct scale scale = scale_of(p);
    gsl_vector *x = gsl_vector_alloc(free_count(p));
    double best_loss = INFINITY;
    int starts = p->guess || p->constant ? 1 : STARTS;

    for (int start = 0; start < starts; start++) {
        struct fit_sigmoid s;

        if (p->guess)
            start_from(p, p->guess, x);
        else
            start_at(p, &scale, start, x);
        if (!descend_from(p, x, &s) && sigmoid_loss(p, &s) < best_loss) {
            best_loss = sigmoid_loss(p, &s);
            *best = s;
        }
    }
    gsl_vector_free(x);
    return isfinite(best_loss) ? 0 : -1;
}

static uint32_t count_sizes(const struct sigmoid_point *points, uint32_t count)
{
    uint32_t sizes = count > 0;

    for (uint32_t i = 1; i < count; i++)
        sizes += points[i].bytes != points[i - 1].bytes;
    return sizes;
}

/* One sigmoid over all points; LATENCY_US and GUESS may be NULL. */
static int fit_one(const struct sigmoid_point *points, uint32_t count,
                   const double *latency_us, const struct fit_sigmoid *guess,
                   struct fit_sigmoid *s)
{
    struct problem p = {
        .points = points,
        .count = count,
        .constant =
            count_sizes(points, count) < MIN_SIZES || count < PARAMETERS,
        .keep_latency = latency_us || count < 2,
        .latency_us = latency_us ? *latency_us : 0,
        .guess = guess,
    };

    return sigmoid_solve(&p, s);
}

/* Where the residuals of WHOLE change their course. */
static uint32_t find_ends(const struct sigmoid_point *points, uint32_t count,
                          const struct fit_sigmoid *whole, uint32_t pieces,
                          uint32_t ends[FIT_PIECES])
{
    double *left = xcalloc(count, sizeof *left);
    double *x = xcalloc(count, sizeof *x);

    for (uint32_t i = 0; i < count; i++) {
        x[i] = points[i].bytes;
        left[i] = point_residual(&points[i], whole);
    }
    pieces = breaks_find(x, left, count, pieces, PIECE_SIZES, ends);
    free(left);
    free(x);
    return pieces;
}

/* PIECES sigmoids, the latency that of one over all points; GUESS as that one's
 * start, or NULL. */
static int fit_pieces(const struct sigmoid_point *points, uint32_t count,
                      uint32_t pieces, const struct fit_sigmoid *guess,
                      struct sigmoid_fit *fit)
{
    uint32_t ends[FIT_PIECES] = {count};
    struct fit_sigmoid whole;

    if (fit_one(points, count, NULL, guess, &whole))
        return -1;
    fit->latency_us = whole.latency_us;
    fit->piece_count = 1;
    fit->pieces[0] = whole;
    if (pieces > 1)
        fit->piece_count = find_ends(points, count, &whole, pieces, ends);
    for (uint32_t i = 0, from = 0; fit->piece_count > 1 && i < fit->piece_count;
         from = ends[i++]) {
        if (fit_one(points + from, ends[i] - from, &fit->latency_us, &whole,
                    &fit->pieces[i]))
            return -1;
        if (from)
            fit->pieces[i].from_bytes =
                sqrt(points[from - 1].bytes * points[from].bytes);
    }
    fit->pieces[0].from_bytes = 0;
    return 0;
}

/* log(model / measured) of one point. */
static double fit_residual(const struct sigmoid_fit *fit,
                           const struct sigmoid_point *p)
{
    double gbps = fit_sigmoid_gbps(fit->pieces, fit->piece_count, p->bytes);
    double us =
        p->fixed_us + p->steps * fit->latency_us + p->sent_bytes / (1e3 * gbps);

    return log(us / p->us);
}

/* What the points kept on both sides of P suggest for its residual. */
static double kept_residual(const struct sigmoid_fit *fit,
                            const struct sigmoid_point *kept, uint32_t count,
                            const struct sigmoid_point *p)
{
    uint32_t i = 0;

    while (i < count && kept[i].bytes < p->bytes)
        i++;
    if (!i || i == count)
        return fit_residual(fit, &kept[i ? count - 1 : 0]);
    double a = fit_residual(fit, &kept[i - 1]);
    double b = fit_residual(fit, &kept[i]);
    double span = log(kept[i].bytes / kept[i - 1].bytes);
    double w = span > 0 ? log(p->bytes / kept[i - 1].bytes) / span : 0;
    return a + w * (b - a);
}

/* Mean errors over sizes left out. */
struct validation {
    double plain, half, corrected;
};

static void add_errors(struct validation *v, const struct sigmoid_fit *fit,
                       const struct sigmoid_point *kept, uint32_t count,
                       const struct sigmoid_point *p, double weight)
{
    double off = fit_residual(fit, p);
    double around = kept_residual(fit, kept, count, p);

    v->plain += weight * fmin(fabs(off), 1);
    v->half += weight * fmin(fabs(off - around / 2), 1);
    v->corrected += weight * fmin(fabs(off - around), 1);
}

/* Errors of PIECES pieces over sizes left out; infinite where some fold does
 * not converge. */
static struct validation validate_points(const struct sigmoid_point *points,
                                         uint32_t count, uint32_t pieces,
                                         const struct fit_sigmoid *guess)
{
    struct sigmoid_point *kept = xcalloc(count, sizeof *kept);
    struct validation v = {0, 0, 0};
    struct sigmoid_fit fit;

    for (uint32_t fold = 0; fold < FOLDS; fold++) {
        uint32_t n = 0, size = 0;

        for (uint32_t i = 0; i < count; i++) {
            size += i && points[i].bytes != points[i - 1].bytes;
            if (size % FOLDS != fold)
                kept[n++] = points[i];
        }
        if (!n || fit_pieces(kept, n, pieces, guess, &fit)) {
            v = (struct validation){INFINITY, INFINITY, INFINITY};
            break;
        }
        for (uint32_t i = 0, at = 0; i < count; i++) {
            at += i && points[i].bytes != points[i - 1].bytes;
            if (at % FOLDS == fold)
                add_errors(&v, &fit, kept, n, &points[i], 1.0 / count);
        }
    }
    free(kept);
    return v;
}

static void take_errors(const struct validation *v, struct sigmoid_fit *fit)
{
    fit->error = v->plain;
    fit->half_error = v->half;
    fit->corrected_error = v->corrected;
}

int sigmoid_fit(struct sigmoid_point *points, uint32_t count,
                uint32_t max_pieces, struct sigmoid_fit *fit)
{
    uint32_t sizes = count_sizes(points, count), best = 1;
    struct fit_sigmoid whole;

    for (uint32_t i = 0; i < count; i++)
        points[i].log_size = log(points[i].bytes + 1);
    if (fit_one(points, count, NULL, NULL, &whole))
        return -1;
    fit->error = fit->half_error = fit->corrected_error = -1;
    if (sizes >= MIN_SIZES && max_pieces > 1) {
        struct validation v = validate_points(points, count, 1, &whole);

        take_errors(&v, fit);
    }
    for (uint32_t pieces = 2;
         pieces <= max_pieces && sizes >= pieces * (PIECE_SIZES + 1) &&
         fit->error > GOOD;
         pieces++) {
        struct validation v = validate_points(points, count, pieces, &whole);

        if (v.plain < WORTH * fit->error) {
            take_errors(&v, fit);
            best = pieces;
        }
    }
    return fit_pieces(points, count, best, &whole, fit);
}
