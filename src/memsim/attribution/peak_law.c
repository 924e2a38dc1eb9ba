/* SPDX-License-Identifier: Apache-2.0
 *
 *   peak |          x        A law holds if all steps lie on it but for what
 *        |      x            blocks are rounded by. The least degree that holds
 *        |   x               is taken, and only with more lengths than it has
 *        | x                 coefficients: any three points are on a parabola.
 *        +------------- tokens or values of a sample, or samples */
#include "memsim/attribution/peak_law.h"

#include <math.h>
#include <string.h>

#define TOLERANCE 0.002 /* of the highest peak */
#define DEGREES   2

static bool is_clear(const struct step_input *input)
{
    return input->most.samples != 0;
}

uint64_t peak_law_size(const struct step_input *input,
                       enum peak_law_dimension dimension)
{
    const uint64_t sizes[] = {
        [PEAK_LAW_TOKEN] = input->most.tokens,
        [PEAK_LAW_VALUE] = input->most.values,
        [PEAK_LAW_SAMPLE] = input->most.samples,
        [PEAK_LAW_BATCH_TOKEN] = input->most.batch_tokens,
        [PEAK_LAW_BATCH_VALUE] = input->most.batch_values,
    };

    return sizes[dimension];
}

void peak_law_add(struct peak_law_points *p, const struct step_input *input,
                  uint64_t peak_bytes)
{
    if (!is_clear(input) || p->count == PEAK_LAW_POINTS)
        return;
    if (!p->warm) {
        p->warm = true;
        return;
    }
    for (int d = 0; d < PEAK_LAW_DIMENSIONS; d++)
        p->of[d][p->count] = peak_law_size(input, (enum peak_law_dimension)d);
    p->peak[p->count++] = peak_bytes;
}

/* How many different values D has, up to DEGREES + 2; 0: one is not known. */
static unsigned count_lengths(const struct peak_law_points *p,
                              enum peak_law_dimension d)
{
    uint64_t seen[DEGREES + 2];
    unsigned count = 0;

    for (unsigned i = 0; i < p->count; i++) {
        unsigned j = 0;
        if (!p->of[d][i])
            return 0;
        while (j < count && seen[j] != p->of[d][i])
            j++;
        if (j == count && count < DEGREES + 2)
            seen[count++] = p->of[d][i];
    }
    return count;
}

/* Solves the N equations of M, in place, by Gauss's elimination; the last
 * column is the right side. False: they have no one solution. */
static bool equations_solve(unsigned n, double m[DEGREES + 1][DEGREES + 2])
{
    for (unsigned i = 0; i < n; i++) {
        if (fabs(m[i][i]) < 1e-9)
            return false;
        for (unsigned row = 0; row < n; row++) {
            double factor = m[row][i] / m[i][i];
            for (unsigned col = i; row != i && col <= n; col++)
                m[row][col] -= factor * m[i][col];
        }
    }
    for (unsigned i = 0; i < n; i++)
        m[i][n] /= m[i][i];
    return true;
}

/* Least squares with lengths as parts of the longest one, so that no power is
 * out of range. */
static bool fit_law(const struct peak_law_points *p, struct peak_law *law)
{
    double m[DEGREES + 1][DEGREES + 2] = {{0}};
    double scale = (double)law->longest;
    unsigned n = law->degree + 1;

    for (unsigned i = 0; i < p->count; i++) {
        double x = (double)p->of[law->dimension][i] / scale;
        for (unsigned row = 0; row < n; row++) {
            for (unsigned col = 0; col < n; col++)
                m[row][col] += pow(x, row + col);
            m[row][n] += pow(x, row) * (double)p->peak[i];
        }
    }
    if (!equations_solve(n, m))
        return false;
    law->constant = m[0][n];
    law->linear = m[1][n] / scale;
    law->square = n > 2 ? m[2][n] / scale / scale : 0;
    return true;
}

uint64_t peak_law_at(const struct peak_law *law, uint64_t length)
{
    double n = (double)length;
    double bytes = law->constant + law->linear * n + law->square * n * n;

    return bytes > 0 ? (uint64_t)bytes : 0;
}

static bool law_holds(const struct peak_law_points *p,
                      const struct peak_law *law)
{
    double most = 0, error = 0;

    for (unsigned i = 0; i < p->count; i++) {
        double at = (double)peak_law_at(law, p->of[law->dimension][i]);
        most = fmax(most, (double)p->peak[i]);
        error = fmax(error, fabs(at - (double)p->peak[i]));
    }
    /* A peak that does not rise with the length has no law. */
    return error <= TOLERANCE * most &&
           (double)peak_law_at(law, law->longest) >
               (double)peak_law_at(law, law->shortest) +
                   2 * TOLERANCE * most &&
           law->square >= 0;
}

static bool law_find(const struct peak_law_points *p, enum peak_law_dimension d,
                     struct peak_law *law)
{
    unsigned different = count_lengths(p, d);

    *law = (struct peak_law){
        .dimension = d,
        .samples = count_lengths(p, PEAK_LAW_SAMPLE) > 1
                       ? 0
                       : p->of[PEAK_LAW_SAMPLE][0],
        .shortest = UINT64_MAX,
        .steps = p->count,
    };
    for (unsigned i = 0; i < p->count; i++) {
        uint64_t n = p->of[d][i];
        law->longest = n > law->longest ? n : law->longest;
        law->shortest = n < law->shortest ? n : law->shortest;
    }
    for (law->degree = 1; law->degree <= DEGREES; law->degree++)
        if (different >= law->degree + 2 && fit_law(p, law) &&
            law_holds(p, law))
            return true;
    return false;
}

/* Whether D may be what differs: the samples alone, their sizes alone, or the
 * whole batch where both differ. */
static bool is_what_differs(enum peak_law_dimension d, bool samples, bool sizes)
{
    switch (d) {
    case PEAK_LAW_TOKEN:
    case PEAK_LAW_VALUE:
        return sizes && !samples;
    case PEAK_LAW_SAMPLE:
        return samples && !sizes;
    default:
        return samples && sizes;
    }
}

/* What the inputs are, where they do not differ: a law of degree 0. */
static struct peak_law all_alike(const struct peak_law_points *p)
{
    static const enum peak_law_dimension dimensions[] = {
        PEAK_LAW_TOKEN, PEAK_LAW_VALUE, PEAK_LAW_SAMPLE};
    struct peak_law law = {.degree = 0};

    for (size_t i = 0; i < 3 && !law.steps; i++)
        if (count_lengths(p, dimensions[i]) == 1)
            (void)law_find(p, dimensions[i], &law);
    law.degree = 0;
    return law;
}

struct peak_law peak_law_find(const struct peak_law_points *p)
{
    bool samples = count_lengths(p, PEAK_LAW_SAMPLE) > 1;
    bool sizes = count_lengths(p, PEAK_LAW_TOKEN) > 1 ||
                 count_lengths(p, PEAK_LAW_VALUE) > 1;
    struct peak_law law, none = {.degree = 0};

    if (!samples && !sizes)
        return all_alike(p);
    for (int i = 0; i < PEAK_LAW_DIMENSIONS; i++) {
        enum peak_law_dimension d = (enum peak_law_dimension)i;
        if (!is_what_differs(d, samples, sizes) || count_lengths(p, d) < 2)
            continue;
        if (law_find(p, d, &law))
            return law;
        if (!none.steps)
            none = law;
    }
    none.degree = 0;
    return none;
}

static const char *const names[] = {
    [PEAK_LAW_TOKEN] = "token",
    [PEAK_LAW_VALUE] = "value",
    [PEAK_LAW_SAMPLE] = "sample",
    [PEAK_LAW_BATCH_TOKEN] = "batch-token",
    [PEAK_LAW_BATCH_VALUE] = "batch-value",
};

const char *peak_law_dimension_name(enum peak_law_dimension dimension)
{
    return names[dimension];
}

enum peak_law_dimension peak_law_dimension_find(const char *text, size_t length)
{
    int i = 0;

    while (i < PEAK_LAW_DIMENSIONS && (strlen(names[i]) != length ||
                                       strncmp(names[i], text, length) != 0))
        i++;
    return (enum peak_law_dimension)i;
}
