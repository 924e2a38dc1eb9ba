/* SPDX-License-Identifier: Apache-2.0 */
#include "commfit/bench_check.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Beyond the printed digits: times are averaged after bandwidths are taken. */
#define SLACK 2e-3

static double half_unit(const char *token)
{
    const char *point = strchr(token, '.');
    const char *exponent = strpbrk(token, "eE");
    int digits = 0;

    if (point)
        while (isdigit((unsigned char)point[1 + digits]))
            digits++;
    return 0.5 * pow(10, (exponent ? atoi(exponent + 1) : 0) - digits);
}

struct printed printed_parse(const char *token)
{
    char *end;
    double value = strtod(token, &end);

    if (end == token || *end || !isfinite(value) ||
        strpbrk(token, "xX")) /* no hexadecimal */
        return (struct printed){0, 0, false};
    return (struct printed){value, half_unit(token), true};
}

/* |A - B| within both margins. */
static bool is_near(double a, double a_half, double b, double b_half)
{
    return fabs(a - b) <= a_half + b_half + SLACK * fabs(b);
}

/* GB/s: bytes / us / 1e3. */
static double expected_algbw(const struct printed_row *row)
{
    return (double)row->bytes / row->us.value / 1e3;
}

/* ms or s for us, Gbit/s or MB/s or GiB/s for GB/s. */
static bool units_explain(double ratio)
{
    static const double factors[] = {1e3, 1e6, 8, 1.073741824, 8e3};

    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++)
        if (fabs(ratio / factors[i] - 1) < 0.01 ||
            fabs(ratio * factors[i] - 1) < 0.01)
            return true;
    return false;
}

bool printed_check(const struct printed_row *row, enum bench_reason *reason)
{
    *reason = BENCH_NOT_FINITE;
    if (!row->us.present)
        return false;
    *reason = BENCH_NO_TIME;
    if (!bench_is_time(row->us.value))
        return false;
    *reason = BENCH_EMPTY;
    if (!row->bytes)
        return false;
    if (!row->algbw.present)
        return true;
    double expected = expected_algbw(row);
    double margin = expected * row->us.half / row->us.value;
    if (is_near(row->algbw.value, row->algbw.half, expected, margin))
        return true;
    bool precise = row->algbw.value > 20 * row->algbw.half;
    *reason = precise && units_explain(row->algbw.value / expected)
                  ? BENCH_UNITS
                  : BENCH_ALGBW;
    return false;
}

bool printed_fits(const struct printed_row *row, enum fit_coll coll,
                  double ranks)
{
    double factor = fit_coll_factor(coll, ranks);

    if (!row->algbw.present || !row->busbw.present)
        return true;
    return is_near(row->busbw.value, row->busbw.half, factor * row->algbw.value,
                   factor * row->algbw.half);
}

/* P of 2 (P - 1) / P or (P - 1) / P = FACTOR. */
static double ranks_of(double factor, double passes)
{
    double rest = 1 - factor / passes;

    return rest > 0 ? 1 / rest : INFINITY;
}

bool printed_ranks(const struct printed_row *row, enum fit_coll coll,
                   double *low, double *high)
{
    double passes = 2 * fit_coll_factor(coll, 2); /* 2 of all-reduce, else 1 */
    double a = row->algbw.value, b = row->busbw.value;

    if (fit_coll_factor(coll, 2) == fit_coll_factor(coll, 3) ||
        !row->algbw.present || !row->busbw.present || a <= row->algbw.half)
        return false;
    *low = fmax(
        *low, ranks_of((b - row->busbw.half) / (a + row->algbw.half), passes));
    *high = fmin(
        *high, ranks_of((b + row->busbw.half) / (a - row->algbw.half), passes));
    return true;
}
