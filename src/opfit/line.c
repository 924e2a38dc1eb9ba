/* SPDX-License-Identifier: Apache-2.0 */
#include "opfit/line.h"
#include "common/base/xmalloc.h"

#include <gsl/gsl_multimin.h>
#include <math.h>
#include <stdlib.h>

#define STEPS     400
#define PRECISION 1e-4
#define MAX_ROWS  3000 /* more change the figures in the third digit */

typedef double price_row(const double *terms, const struct ops_sample *sample,
                         const struct cost_gpu *gpu);

struct problem {
    const struct ops_part *part;
    price_row *price;
    double terms[8];
    size_t count;
};

static double mean_error(const gsl_vector *v, void *argument)
{
    struct problem *p = argument;
    size_t stride = p->part->count / MAX_ROWS + 1, used = 0;
    double sum = 0;

    for (size_t i = 0; i < p->count; i++)
        p->terms[i] = gsl_vector_get(v, i);
    for (size_t i = 0; i < p->part->count; i += stride, used++) {
        const struct ops *ops = p->part->ops;
        const struct ops_sample *s = &ops->samples[p->part->rows[i]];
        double ns = p->price(p->terms, s, &ops->sources[s->source].gpu);

        sum += fabs(log(ns / s->ns));
    }
    return isfinite(sum) ? sum / (double)(used ? used : 1) : 1e9;
}

/* Improves START by a simplex of size STEP. */
static double minimize_problem(struct problem *p, const double *start,
                               double step)
{
    gsl_multimin_function f = {mean_error, p->count, p};
    gsl_vector *x = gsl_vector_alloc(p->count);
    gsl_vector *steps = gsl_vector_alloc(p->count);
    gsl_multimin_fminimizer *m = gsl_multimin_fminimizer_alloc(
        gsl_multimin_fminimizer_nmsimplex2, p->count);

    for (size_t i = 0; i < p->count; i++)
        gsl_vector_set(x, i, start[i]);
    gsl_vector_set_all(steps, step);
    gsl_multimin_fminimizer_set(m, &f, x, steps);
    for (int i = 0; i < STEPS && !gsl_multimin_fminimizer_iterate(m); i++)
        if (gsl_multimin_fminimizer_size(m) < PRECISION)
            break;
    double error = mean_error(m->x, p);
    gsl_multimin_fminimizer_free(m);
    gsl_vector_free(steps);
    gsl_vector_free(x);
    return error;
}

/* Starts the simplex at each of STARTS; TERMS keeps the best. */
static void minimize_from(struct problem *p, const double (*starts)[8],
                          size_t count, double *terms)
{
    double best = INFINITY;

    for (size_t i = 0; i < count; i++) {
        double error = minimize_problem(p, starts[i], 0.5);

        error = fmin(error, minimize_problem(p, p->terms, 0.1));
        if (error < best) {
            best = error;
            for (size_t k = 0; k < p->count; k++)
                terms[k] = p->terms[k];
        }
    }
}

static struct cost_roofline line_of(const double *terms)
{
    return (struct cost_roofline){exp(terms[0]), exp(terms[1]), exp(terms[2]),
                                  0};
}

static double price_line(const double *terms, const struct ops_sample *sample,
                         const struct cost_gpu *gpu)
{
    struct cost_roofline line = line_of(terms);

    if (line.compute > 5 || line.memory > 5 || line.compute < 1e-4 ||
        line.memory < 1e-4)
        return INFINITY;
    return cost_roofline_ns(&line, gpu, &sample->work);
}

/* Terms: ln of the efficiencies; the floor is given. */
static double price_above(const double *terms, const struct ops_sample *sample,
                          const struct cost_gpu *gpu)
{
    const double all[3] = {log(cost_roofline_default(&sample->work)->floor_ns),
                           terms[0], terms[1]};

    return price_line(all, sample, gpu);
}

#define NEAR_FLOOR 0.05 /* of the rows show it */

/* Whether enough of PART's times are so short that they tell the floor. */
static bool shows_floor(const struct ops_part *part, double floor_ns)
{
    size_t near = 0;

    for (size_t i = 0; i < part->count; i++)
        near += part->ops->samples[part->rows[i]].ns < 2 * floor_ns;
    return (double)near >= NEAR_FLOOR * (double)part->count;
}

/* The efficiencies alone, above the family's usual floor. */
static struct cost_roofline fit_above_floor(const struct ops_part *part)
{
    const double starts[][8] = {
        {log(0.6), log(0.7)}, {log(0.3), log(0.4)}, {log(0.03), log(0.7)}};
    struct problem problem = {part, price_above, {0}, 2};
    double terms[8] = {log(0.6), log(0.7)};

    minimize_from(&problem, starts, 3, terms);
    return (struct cost_roofline){
        cost_roofline_default(&part->ops->samples[part->rows[0]].work)
            ->floor_ns,
        exp(terms[0]), exp(terms[1]), 0};
}

#define FEW_ROWS 9

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The family's usual roofline, both efficiencies scaled by the median. */
static struct cost_roofline scale_usual_line(const struct ops_part *part)
{
    double *ratios = xmalloc((part->count + 1) * sizeof *ratios);
    struct cost_roofline line = {0, 1, 1, 0};

    for (size_t i = 0; i < part->count; i++) {
        const struct ops_sample *s = &part->ops->samples[part->rows[i]];

        line = *cost_roofline_default(&s->work);
        ratios[i] =
            s->ns / cost_roofline_ns(&line, &part->ops->sources[s->source].gpu,
                                     &s->work);
    }
    qsort(ratios, part->count, sizeof *ratios, compare_doubles);
    double middle = part->count ? ratios[part->count / 2] : 1;
    free(ratios);
    line.compute /= middle;
    line.memory /= middle;
    line.near = 0; /* not of a fit */
    return line;
}

struct cost_roofline line_fit(const struct ops_part *part)
{
    const double starts[][8] = {{log(3000), log(0.6), log(0.7)},
                                {log(8000), log(0.3), log(0.4)},
                                {log(8000), log(0.03), log(0.7)}};
    struct problem problem = {part, price_line, {0}, 3};
    double terms[8] = {log(3000), log(0.6), log(0.7)};

    if (part->count < FEW_ROWS)
        return scale_usual_line(part);
    minimize_from(&problem, starts, 3, terms);
    struct cost_roofline line = line_of(terms);
    return shows_floor(part, line.floor_ns) ? line : fit_above_floor(part);
}

/* Terms: ln of the floor and of the memory's efficiency. */
static double price_bytes(const double *terms, const struct ops_sample *sample,
                          const struct cost_gpu *gpu)
{
    const double all[3] = {
        terms[0], log(cost_roofline_default(&sample->work)->compute), terms[1]};

    return price_line(all, sample, gpu);
}

struct cost_roofline line_fit_bytes(const struct ops_part *part)
{
    const double starts[][8] = {{log(3000), log(0.7)}, {log(8000), log(0.8)}};
    struct problem problem = {part, price_bytes, {0}, 2};
    double terms[8] = {log(3000), log(0.7)};

    minimize_from(&problem, starts, 2, terms);
    return (struct cost_roofline){
        exp(terms[0]),
        cost_roofline_default(&part->ops->samples[part->rows[0]].work)->compute,
        exp(terms[1]), 0};
}

/* Terms: k1, ln(k2 - k1), y1, ln(y2 - y1), ln b1. */
static struct cost_segments segments_of(const double *terms)
{
    struct cost_segments s = {.k1 = terms[0], .y1 = terms[2]};

    s.k2 = s.k1 + exp(terms[1]);
    s.y2 = s.y1 + exp(terms[3]);
    s.b1 = exp(terms[4]);
    return s;
}

static double price_segments(const double *terms,
                             const struct ops_sample *sample,
                             const struct cost_gpu *gpu)
{
    struct cost_segments s = segments_of(terms);

    (void)gpu;
    return cost_segments_ns(&s, sample->work.read_bytes +
                                    sample->work.written_bytes);
}

/* The value below which the share Q of PART's ln bytes or ln times lie. */
static double quantile_of(const struct ops_part *part, double q, bool time);

#define SMALLEST 0.1 /* of the rows, by bytes */

/* The median ln t of the smallest sizes. */
static double smallest_time(const struct ops_part *part)
{
    double limit = quantile_of(part, SMALLEST, false);
    uint32_t *rows = xmalloc((part->count + 1) * sizeof *rows);
    struct ops_part small = {part->ops, rows, 0};

    for (size_t i = 0; i < part->count; i++) {
        const struct work *w = &part->ops->samples[part->rows[i]].work;

        if (log(fmax(w->read_bytes + w->written_bytes, 1)) <= limit)
            rows[small.count++] = part->rows[i];
    }
    double time = quantile_of(&small, 0.5, true);
    free(rows);
    return time;
}

struct cost_segments segments_fit(const struct ops_part *part)
{
    double starts[3][8] = {{0}};
    struct problem problem = {part, price_segments, {0}, 5};
    double terms[8];

    for (int i = 0; i < 3; i++) {
        double low = 0.15 + 0.15 * i, high = 0.6 + 0.1 * i;
        double k1 = quantile_of(part, low, false);
        double k2 = fmax(quantile_of(part, high, false), k1 + 0.5);
        double y1 = quantile_of(part, low, true);
        double y2 = fmax(quantile_of(part, high, true), y1 + 0.1);

        starts[i][0] = k1;
        starts[i][1] = log(k2 - k1);
        starts[i][2] = y1;
        starts[i][3] = log(y2 - y1);
        starts[i][4] = log(0.05);
    }
    minimize_from(&problem, (const double(*)[8])starts, 3, terms);
    struct cost_segments s = segments_of(terms);
    s.least = fmin(smallest_time(part), s.y1);
    return s;
}

static double quantile_of(const struct ops_part *part, double q, bool time)
{
    double *values = xmalloc((part->count + 1) * sizeof *values);

    for (size_t i = 0; i < part->count; i++) {
        const struct ops_sample *s = &part->ops->samples[part->rows[i]];

        values[i] = log(
            time ? s->ns : fmax(s->work.read_bytes + s->work.written_bytes, 1));
    }
    qsort(values, part->count, sizeof *values, compare_doubles);
    double value = values[(size_t)(q * (double)(part->count - 1))];
    free(values);
    return value;
}
