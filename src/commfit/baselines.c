/* SPDX-License-Identifier: Apache-2.0
 * The models that others use, fitted to the same data with the same loss. */
#include "commfit/model.h"

#include <math.h>

#define ROUNDS 20
#define SMALL  0.02 /* errors below count as squares, above as themselves */

static void baseline_columns(enum baseline which, double bytes, double ranks,
                             double x[2])
{
    double part = (ranks - 1) / ranks * bytes;

    x[0] = which == BASELINE_ALPHA_BETA ? 1
           : which == BASELINE_LOGGP    ? ranks - 1
                                        : log2(ranks);
    x[1] = which == BASELINE_ALPHA_BETA ? bytes : part;
}

double baseline_us(const struct baselines *b, enum baseline which, double bytes,
                   double ranks)
{
    double x[2];

    baseline_columns(which, bytes, ranks, x);
    return b->terms[which][0] * x[0] + b->terms[which][1] * x[1];
}

/* Normal equations of two columns. */
struct squares {
    double aa, ab, bb, a, b;
};

static void add_row(struct squares *s, const double x[2], double us,
                    const double terms[2])
{
    double u = x[0] / us, v = x[1] / us;
    double left = fabs(terms[0] * u + terms[1] * v - 1);
    double weight = 1 / fmax(left, SMALL);

    s->aa += weight * u * u;
    s->ab += weight * u * v;
    s->bb += weight * v * v;
    s->a += weight * u;
    s->b += weight * v;
}

/* Neither may be negative: then the other is alone. */
static void squares_solve(const struct squares *s, double terms[2])
{
    double det = s->aa * s->bb - s->ab * s->ab;

    terms[0] = det > 0 ? (s->a * s->bb - s->b * s->ab) / det : 0;
    terms[1] = det > 0 ? (s->b * s->aa - s->a * s->ab) / det : 0;
    if (terms[0] < 0 || det <= 0) {
        terms[0] = 0;
        terms[1] = s->b / s->bb;
    } else if (terms[1] < 0) {
        terms[1] = 0;
        terms[0] = s->a / s->aa;
    }
}

static void add_series(const struct series *s, enum baseline which,
                       const double terms[2], struct squares *squares)
{
    double x[2];

    for (uint32_t i = 0; i < s->count; i++)
        for (int place = 0; place < 2; place++) {
            baseline_columns(which, s->points[i].bytes,
                             (double)s->nodes * s->gpus, x);
            add_row(squares, x, s->points[i].us[place], terms);
        }
}

void baselines_fit(const struct series_family *s, struct baselines *b)
{
    bool several = s->series[s->count - 1].nodes > 1;

    b->coll = s->coll;
    b->gpus = s->gpus;
    for (int which = 0; which < BASELINE_COUNT; which++) {
        double *terms = b->terms[which];

        terms[0] = terms[1] = 0;
        for (int round = 0; round < ROUNDS; round++) {
            struct squares squares = {0};

            for (uint32_t i = 0; i < s->count; i++)
                if (!several || s->series[i].nodes > 1)
                    add_series(&s->series[i], (enum baseline)which, terms,
                               &squares);
            squares_solve(&squares, terms);
        }
    }
}
