/* SPDX-License-Identifier: Apache-2.0 */
#include "playback/stragglers.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/base/random.h"

#define SPREAD_MOST 100.0 /* per cent */
#define TAU         6.283185307179586

int stragglers_parse(const char *text, struct stragglers *s, struct err *err)
{
    char *end;
    double percent = strtod(text, &end);

    *s = (struct stragglers){.spread = percent / 100};
    if (end != text && *end == '%' && percent > 0 && percent <= SPREAD_MOST) {
        end++;
        if (!*end)
            return 0;
        errno = 0;
        const char *seed = *end == ',' ? end + 1 : "";
        s->seed = strtoull(seed, &end, 10);
        if (end != seed && !*end && *seed != '-' && !errno)
            return 0;
    }
    return err_set(err,
                   "--stragglers: '%s' is not of the form 2%% or 2%%,SEED, "
                   "with at most %g%%",
                   text, SPREAD_MOST);
}

/* In (0, 1]. */
static double uniform_of(uint64_t bits)
{
    return (double)((bits >> 11) + 1) * 0x1p-53;
}

/* A normal variate of two uniform ones (Box, Muller 1958). */
double straggler_factor(const struct stragglers *s, uint32_t rank)
{
    uint64_t seed = random_at(s->seed, UINT64_MAX - 1);
    double radius =
        sqrt(-2 * log(uniform_of(random_at(seed, 2 * (uint64_t)rank))));
    double angle = TAU * uniform_of(random_at(seed, 2 * (uint64_t)rank + 1));

    return exp(s->spread * radius * cos(angle));
}

double stragglers_of(const struct stragglers *s, uint32_t rank,
                     const struct rank_set *members)
{
    return members->count ? stragglers_slowest(s, members)
                          : straggler_factor(s, rank);
}

double stragglers_slowest(const struct stragglers *s,
                          const struct rank_set *ranks)
{
    double most = 0;

    for (uint32_t r = 0; rank_set_next(ranks, r, &r); r++)
        most = fmax(most, straggler_factor(s, r));
    return most > 0 ? most : 1;
}
