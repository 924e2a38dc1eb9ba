/* SPDX-License-Identifier: Apache-2.0
 *
 *   peak |          x        A law holds if all steps lie on it but for what
 *        |      x            blocks are rounded by. The least degree that holds
 *        |   x               is taken, and only with more lengths than it has
 *        | x                 coefficients: any three points are on a parabola.
 *        +------------- tokens of a sample */
#include "memsim/attribution/peak_law.h"

#include <math.h>

#define TOLERANCE 0.002 /* of the highest peak */
#define DEGREES   2

void peak_law_add(struct peak_law_points *p, const struct step_input *input,
                  uint64_t peak_bytes)
{
    bool clear = input->samples && input->tokens && input->calls == 1 &&
                 input->tokens % input->samples == 0;

    if (!clear || p->count == PEAK_LAW_POINTS)
        return;
    if (!p->warm) {
        p->warm = true;
        return;
    }
    p->unlike |= p->count && p->samples != input->samples;
    p->samples = input->samples;
    p->length[p->count] = input->tokens / input->samples;
    p->peak[p->count++] = peak_bytes;
}

/* Distinct lengths, up to DEGREES + 2. */
static unsigned lengths(const struct peak_law_points *p)
{
    uint64_t seen[DEGREES + 2];
    unsigned count = 0;

    for (unsigned i = 0; i < p->count && count < DEGREES + 2; i++) {
        unsigned j = 0;
        while (j < count && seen[j] != p->length[i])
            j++;
        if (j == count)
            seen[count++] = p->length[i];
    }
    return count;
}

/* Solves the N equations of M, in place, by Gauss's elimination; the last
 * column is the right side. False: they have no one solution. */
static bool solve(unsigned n, double m[DEGREES + 1][DEGREES + 2])
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
static bool fit(const struct peak_law_points *p, struct peak_law *law)
{
    double m[DEGREES + 1][DEGREES + 2] = {{0}};
    double scale = (double)law->longest;
    unsigned n = law->degree + 1;

    for (unsigned i = 0; i < p->count; i++) {
        double x = (double)p->length[i] / scale;
        for (unsigned row = 0; row < n; row++) {
            for (unsigned col = 0; col < n; col++)
                m[row][col] += pow(x, row + col);
            m[row][n] += pow(x, row) * (double)p->peak[i];
        }
    }
    if (!solve(n, m))
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

static bool holds(const struct peak_law_points *p, const struct peak_law *law)
{
    double most = 0, error = 0;

    for (unsigned i = 0; i < p->count; i++) {
        double at = (double)peak_law_at(law, p->length[i]);
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

struct peak_law peak_law_find(const struct peak_law_points *p)
{
    struct peak_law law = {.samples = p->samples, .shortest = UINT64_MAX,
                           .steps = p->count};
    unsigned different = p->unlike ? 0 : lengths(p);

    for (unsigned i = 0; i < p->count; i++) {
        law.longest = p->length[i] > law.longest ? p->length[i] : law.longest;
        law.shortest =
            p->length[i] < law.shortest ? p->length[i] : law.shortest;
    }
    for (law.degree = 1; law.degree <= DEGREES; law.degree++)
        if (different >= law.degree + 2 && fit(p, &law) && holds(p, &law))
            return law;
    return (struct peak_law){.degree = 0};
}
