/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/compute/compute_math.h"

#include <math.h>
#include <stdbool.h>

#include "capture/core/base/number.h"

#define LOG2_E  1.44269504088896340735992468100189214L
#define LN_2    0.693147180559945309417232121458176568L
#define LOG10_2 0.301029995663981195213738894724493027L

/* FACTOR times the binary logarithm of X. */
static long double logarithm_of(long double x, long double factor)
{
    long double result;

    __asm__("fyl2x" : "=t"(result) : "0"(x), "u"(factor) : "st(1)");
    return result;
}

/* 2 to the power of X, less 1; X from -1 to 1. */
static long double two_power_less_one(long double x)
{
    long double result;

    __asm__("f2xm1" : "=t"(result) : "0"(x));
    return result;
}

/* 2 to the power of X. */
static long double two_power(long double x)
{
    long double whole, result;

    if (isnan(x) || x > 17000)
        return x + INFINITY;
    if (x < -17000)
        return 0;
    whole = number_floor(x + 0.5L);
    __asm__("fscale"
            : "=t"(result)
            : "0"(two_power_less_one(x - whole) + 1), "u"(whole));
    return result;
}

long double math_exp(long double a, long double b, int v)
{
    (void)b, (void)v;
    return two_power(a * LOG2_E);
}

long double math_expm1(long double a, long double b, int v)
{
    bool is_small = a > -0.5L && a < 0.5L;

    return is_small ? two_power_less_one(a * LOG2_E) : math_exp(a, b, v) - 1;
}

long double math_log(long double a, long double b, int v)
{
    (void)b, (void)v;
    return logarithm_of(a, LN_2);
}

long double math_log2(long double a, long double b, int v)
{
    (void)b, (void)v;
    return logarithm_of(a, 1);
}

long double math_log10(long double a, long double b, int v)
{
    (void)b, (void)v;
    return logarithm_of(a, LOG10_2);
}

long double math_log1p(long double a, long double b, int v)
{
    long double result;

    if (!(a > -0.25L && a < 0.25L))
        return math_log(1 + a, b, v);
    __asm__("fyl2xp1" : "=t"(result) : "0"(a), "u"(LN_2) : "st(1)");
    return result;
}

long double math_sqrt(long double a, long double b, int v)
{
    long double result;

    (void)b, (void)v;
    __asm__("fsqrt" : "=t"(result) : "0"(a));
    return result;
}

long double math_rsqrt(long double a, long double b, int v)
{
    return 1 / math_sqrt(a, b, v);
}

long double math_reciprocal(long double a, long double b, int v)
{
    (void)b, (void)v;
    return 1 / a;
}

long double math_inverse_square(long double a, long double b, int v)
{
    (void)b, (void)v;
    return 1 / (a * a);
}

long double math_sin(long double a, long double b, int v)
{
    long double result;

    (void)b, (void)v;
    __asm__("fsin" : "=t"(result) : "0"(a));
    return result;
}

long double math_cos(long double a, long double b, int v)
{
    long double result;

    (void)b, (void)v;
    __asm__("fcos" : "=t"(result) : "0"(a));
    return result;
}

long double math_tan(long double a, long double b, int v)
{
    return math_sin(a, b, v) / math_cos(a, b, v);
}

/* The angle of the point (B, A). */
long double math_atan2(long double a, long double b, int v)
{
    long double result;

    (void)v;
    __asm__("fpatan" : "=t"(result) : "0"(b), "u"(a) : "st(1)");
    return result;
}

long double math_atan(long double a, long double b, int v)
{
    (void)b;
    return math_atan2(a, 1, v);
}

/* The other side of a right triangle with the sides A and 1. */
static long double other_side(long double a)
{
    return math_sqrt((1 - a) * (1 + a), 0, 0);
}

long double math_asin(long double a, long double b, int v)
{
    (void)b;
    return math_atan2(a, other_side(a), v);
}

long double math_acos(long double a, long double b, int v)
{
    (void)b;
    return math_atan2(other_side(a), a, v);
}

long double math_sinh(long double a, long double b, int v)
{
    long double rise = math_expm1(__builtin_fabsl(a), b, v);
    long double half = isinf(rise) ? rise : (rise + rise / (rise + 1)) / 2;

    return __builtin_copysignl(half, a);
}

long double math_cosh(long double a, long double b, int v)
{
    long double up = math_exp(__builtin_fabsl(a), b, v);

    return (up + 1 / up) / 2;
}

long double math_tanh(long double a, long double b, int v)
{
    long double rise = math_expm1(2 * __builtin_fabsl(a), b, v);

    return __builtin_copysignl(isinf(rise) ? 1 : rise / (rise + 2), a);
}

long double math_sigmoid(long double a, long double b, int v)
{
    return 1 / (1 + math_exp(-a, b, v));
}

/* 2 / sqrt(pi) exp(-x^2) (x + 2 x^3 / 3 + 4 x^5 / 15 + ...): no term has
 * another sign. */
long double math_erf(long double a, long double b, int v)
{
    long double x = __builtin_fabsl(a), term = x, sum = x;

    if (isnan(a) || x > 7)
        return isnan(a) ? a : __builtin_copysignl(1, a);
    for (int n = 1; term > sum * 0x1p-66L; n++) {
        term *= 2 * x * x / (2 * n + 1);
        sum += term;
    }
    sum *= 1.12837916709551257389615890312154517L * math_exp(-x * x, b, v);
    return __builtin_copysignl(sum, a);
}

long double math_fraction(long double a, long double b, int v)
{
    (void)b, (void)v;
    return a - number_truncate(a);
}

long double math_hypot(long double a, long double b, int v)
{
    return math_sqrt(a * a + b * b, 0, v);
}

long double math_copysign(long double a, long double b, int v)
{
    (void)v;
    return __builtin_copysignl(a, b);
}

/* Of a base above 0. */
static long double power_of_positive(long double base, long double exponent)
{
    if (isinf(base) || isinf(exponent)) {
        bool grows = (base > 1) == (exponent > 0);

        return grows ? INFINITY : 0;
    }
    return two_power(logarithm_of(base, exponent));
}

static bool is_odd(long double x)
{
    return x == number_truncate(x) && x / 2 != number_truncate(x / 2);
}

long double math_power(long double a, long double b, int v)
{
    bool is_negative = signbit(a) && is_odd(b);
    long double result;

    (void)v;
    if (b == 0 || a == 1)
        return 1;
    if (isnan(a) || isnan(b))
        return a + b;
    if (a < 0 && !isinf(a) && !isinf(b) && b != number_truncate(b))
        return NAN;
    if (a == 0)
        result = b > 0 ? 0 : INFINITY;
    else if (a == -1 && isinf(b))
        result = 1;
    else
        result = power_of_positive(__builtin_fabsl(a), b);
    return is_negative ? -result : result;
}
