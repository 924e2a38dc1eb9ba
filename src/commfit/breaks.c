/* SPDX-License-Identifier: Apache-2.0 */
#include "commfit/breaks.h"
#include "common/base/xmalloc.h"

#include <math.h>
#include <stdlib.h>

/* Sums up to a size, for the squares that a line leaves. */
struct sums {
    double n, x, y, xx, xy, yy;
};

/* One different X: the sums before it and where it begins. */
struct group {
    struct sums before;
    uint32_t start;
};

static uint32_t group_sizes(const double *x, const double *y, uint32_t count,
                            struct group *groups)
{
    struct sums s = {0};
    uint32_t n = 0;

    for (uint32_t i = 0; i < count; i++) {
        double lx = log(x[i]);

        if (!i || x[i] != x[i - 1])
            groups[n++] = (struct group){s, i};
        s.n++;
        s.x += lx;
        s.y += y[i];
        s.xx += lx * lx;
        s.xy += lx * y[i];
        s.yy += y[i] * y[i];
    }
    groups[n] = (struct group){s, count};
    return n;
}

/* The squares left by a line through the groups [A, B). */
static double line_squares(const struct sums *a, const struct sums *b)
{
    double n = b->n - a->n, x = b->x - a->x, y = b->y - a->y;
    double sxx = b->xx - a->xx - x * x / n;
    double sxy = b->xy - a->xy - x * y / n;
    double syy = b->yy - a->yy - y * y / n;

    return fmax(sxx > 0 ? syy - sxy * sxy / sxx : syy, 0);
}

uint32_t breaks_find(const double *x, const double *y, uint32_t count,
                     uint32_t pieces, uint32_t min_sizes, uint32_t *ends)
{
    struct group *g = xcalloc(count + 1, sizeof *g);
    uint32_t n = group_sizes(x, y, count, g);

    while (pieces > 1 && n < pieces * min_sizes)
        pieces--;
    double *best = xcalloc((size_t)pieces * (n + 1), sizeof *best);
    uint32_t *from = xcalloc((size_t)pieces * (n + 1), sizeof *from);
    for (uint32_t k = 0; k < pieces; k++)
        for (uint32_t b = 0; b <= n; b++) {
            double *at = &best[k * (n + 1) + b];

            *at = k || b < min_sizes ? INFINITY
                                     : line_squares(&g[0].before, &g[b].before);
            for (uint32_t a = min_sizes; k && a + min_sizes <= b; a++) {
                double squares = best[(k - 1) * (n + 1) + a] +
                                 line_squares(&g[a].before, &g[b].before);

                if (squares < *at) {
                    *at = squares;
                    from[k * (n + 1) + b] = a;
                }
            }
        }
    for (uint32_t k = pieces, b = n; k-- > 0; b = from[k * (n + 1) + b])
        ends[k] = g[b].start;
    free(best);
    free(from);
    free(g);
    return pieces;
}
