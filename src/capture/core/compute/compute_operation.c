/* SPDX-License-Identifier: Apache-2.0
 * aten/src/ATen/native/cuda/Binary*Kernel*.cu, CompareKernels.cu,
 * CompareEQKernel.cu, MaxMinElementwiseKernel.cu and the like. */
#include "capture/core/compute/compute_operation.h"

#include <math.h>
#include <string.h>

#include "capture/core/compute/compute_math.h"

long double operation_add(long double a, long double b, int v)
{
    (void)v;
    return a + b;
}

static long double operation_subtract(long double a, long double b, int v)
{
    (void)v;
    return a - b;
}

long double operation_multiply(long double a, long double b, int v)
{
    (void)v;
    return a * b;
}

long double operation_multiply_integers(long double a, long double b, int v)
{
    (void)v;
    return number_product(NUMBER_I64, a, b);
}

long double operation_divide(long double a, long double b, int v)
{
    (void)v;
    return a / b;
}

long double operation_divide_floor(long double a, long double b, int v)
{
    (void)v;
    return b ? number_floor(a / b) : 0;
}

/* BinaryDivTruncKernel.cu: of a divisor whose reciprocal is B, as float and as
 * double. */
long double operation_scale_truncate(long double a, long double b, int v)
{
    (void)v;
    return number_truncate((float)(a * b));
}

long double operation_scale_truncate_double(long double a, long double b, int v)
{
    (void)v;
    return number_truncate((double)(a * b));
}

static long double operation_divide_truncate(long double a, long double b,
                                             int v)
{
    (void)v;
    return b ? number_truncate(a / b) : 0;
}

/* BinaryDivTruncKernel.cu rounds a quotient before it truncates it: 550 / 0.1f
 * is 5500 as a float, and a little less without. */
static long double truncated_float(long double a, long double b, int v)
{
    (void)v;
    return b ? number_truncate((float)(a / b)) : 0;
}

static long double truncated_double(long double a, long double b, int v)
{
    (void)v;
    return b ? number_truncate((double)(a / b)) : 0;
}

/* C's: the result has the dividend's sign. */
static long double operation_remainder_truncate(long double a, long double b,
                                                int v)
{
    (void)v;
    return b ? a - number_truncate(a / b) * b : 0;
}

/* Python's: the result has the divisor's sign. */
long double operation_remainder(long double a, long double b, int v)
{
    long double r = b ? a - number_truncate(a / b) * b : 0;

    (void)v;
    return r && (r < 0) != (b < 0) ? r + b : r;
}

/* CompareEQKernel.cu: EqOpType{EQ, NE}. */
long double operation_equal(long double a, long double b, int v)
{
    return (a == b) == !v;
}

/* CompareKernels.cu: OpType{GE, GT, LE, LT}. */
long double operation_compare(long double a, long double b, int v)
{
    switch (v) {
    case 0:
        return a >= b;
    case 1:
        return a > b;
    case 2:
        return a <= b;
    default:
        return a < b;
    }
}

long double operation_and(long double a, long double b, int v)
{
    (void)v;
    return (int64_t)a & (int64_t)b;
}

static long double operation_or(long double a, long double b, int v)
{
    (void)v;
    return (int64_t)a | (int64_t)b;
}

static long double operation_xor(long double a, long double b, int v)
{
    (void)v;
    return (int64_t)a ^ (int64_t)b;
}

static long double operation_shift_left(long double a, long double b, int v)
{
    (void)v;
    return b >= 0 && b < 64 ? (int64_t)((uint64_t)(int64_t)a << (int)b) : 0;
}

static long double operation_shift_right(long double a, long double b, int v)
{
    (void)v;
    return (int64_t)a >> (b >= 0 && b < 64 ? (int)b : 63);
}

long double operation_logical_and(long double a, long double b, int v)
{
    (void)v;
    return a && b;
}

long double operation_logical_or(long double a, long double b, int v)
{
    (void)v;
    return a || b;
}

static long double operation_logical_xor(long double a, long double b, int v)
{
    (void)v;
    return !a != !b;
}

long double operation_maximum(long double a, long double b, int v)
{
    (void)v;
    return a > b || isnan(a) ? a : b;
}

long double operation_minimum(long double a, long double b, int v)
{
    (void)v;
    return a < b || isnan(a) ? a : b;
}

long double operation_copy(long double a, long double b, int v)
{
    (void)b, (void)v;
    return a;
}

long double operation_negate(long double a, long double b, int v)
{
    (void)b, (void)v;
    return -a;
}

long double operation_absolute(long double a, long double b, int v)
{
    (void)b, (void)v;
    return __builtin_fabsl(a);
}

long double operation_not(long double a, long double b, int v)
{
    (void)b, (void)v;
    return ~(int64_t)a;
}

long double operation_floor(long double a, long double b, int v)
{
    (void)b, (void)v;
    return __builtin_copysignl(number_floor(a), a);
}

long double operation_ceil(long double a, long double b, int v)
{
    (void)b, (void)v;
    return __builtin_copysignl(-number_floor(-a), a);
}

/* To the nearest, of two to the even one. */
long double operation_round(long double a, long double b, int v)
{
    long double down = number_floor(a), rest = a - down;

    (void)b, (void)v;
    if (rest == 0.5L)
        down = 2 * number_floor((down + 1) / 2);
    else if (rest > 0.5L)
        down++;
    return __builtin_copysignl(down, a);
}

long double operation_truncate(long double a, long double b, int v)
{
    (void)b, (void)v;
    return __builtin_copysignl(number_truncate(a), a);
}

long double operation_sign(long double a, long double b, int v)
{
    (void)b, (void)v;
    return (a > 0) - (a < 0);
}

long double operation_is_negative(long double a, long double b, int v)
{
    (void)b, (void)v;
    return signbit(a) != 0;
}

/* The step function; B where it has its step. */
static long double operation_heaviside(long double a, long double b, int v)
{
    (void)v;
    return a == 0 ? b : a > 0;
}

long double operation_square(long double a, long double b, int v)
{
    (void)b, (void)v;
    return a * a;
}

long double operation_cube(long double a, long double b, int v)
{
    (void)b, (void)v;
    return a * a * a;
}

/* Of integers, as Pow.h: modulo 2^64, and 0 for negative exponents unless the
 * base is 1 or -1. */
long double operation_power(long double a, long double b, int v)
{
    uint64_t base = (uint64_t)(int64_t)a, result = 1;
    int64_t exponent = (int64_t)b;

    (void)v;
    if (exponent < 0)
        return a == 1 ? 1 : a == -1 ? exponent % 2 ? -1 : 1 : 0;
    for (; exponent; exponent >>= 1, base *= base)
        if (exponent & 1)
            result *= base;
    return (int64_t)result;
}

static long double square_integer(long double a, long double b, int v)
{
    (void)b, (void)v;
    return number_product(NUMBER_I64, a, a);
}

static long double cube_integer(long double a, long double b, int v)
{
    (void)b, (void)v;
    return number_product(NUMBER_I64, number_product(NUMBER_I64, a, a), a);
}

operation_function *operation_of_type(operation_function *run,
                                      enum number_type type)
{
    if (number_is_float(type) && run == operation_divide_truncate)
        return type == NUMBER_F64 ? truncated_double : truncated_float;
    if (type == NUMBER_NONE || number_is_float(type))
        return run;
    if (run == operation_square)
        return square_integer;
    if (run == operation_cube)
        return cube_integer;
    return run == operation_multiply ? operation_multiply_integers : run;
}

long double operation_logical_not(long double a, long double b, int v)
{
    (void)b, (void)v;
    return !a;
}

/* What A-, B- and BinaryFunctor and ForeachFunctors.cuh are told to do. */
static const struct named_operation {
    const char *pattern;
    operation_function *run;
} binaries[] = {
    {"10MulFunctorI", operation_multiply},
    {"10DivFunctorI", operation_divide},
    {"21div_floor_kernel_cuda", operation_divide_floor},
    {"21div_trunc_kernel_cuda", operation_divide_truncate},
    {"21remainder_kernel_cuda", operation_remainder},
    {"16fmod_kernel_cuda", operation_remainder_truncate},
    {"16CompareEqFunctorI", operation_equal},
    {"17BitwiseAndFunctorI", operation_and},
    {"16BitwiseOrFunctorI", operation_or},
    {"17BitwiseXorFunctorI", operation_xor},
    {"18lshift_kernel_cuda", operation_shift_left},
    {"18rshift_kernel_cuda", operation_shift_right},
    {"23logical_and_kernel_cuda", operation_logical_and},
    {"22logical_or_kernel_cuda", operation_logical_or},
    {"23logical_xor_kernel_cuda", operation_logical_xor},
    {"19maximum_kernel_cuda", operation_maximum},
    {"19minimum_kernel_cuda", operation_minimum},
    {"16fmax_kernel_cuda", operation_maximum},
    {"16fmin_kernel_cuda", operation_minimum},
    {"21heaviside_kernel_cuda", operation_heaviside},
    {"17atan2_kernel_cuda", math_atan2},
    {"17hypot_kernel_cuda", math_hypot},
    {"20copysign_kernel_cuda", math_copysign},
    {"St4plusI", operation_add}, /* these of lists of tensors */
    {"St5minusI", operation_subtract},
    {"St10multipliesI", operation_multiply},
    {"St7dividesI", operation_divide},
};

operation_function *operation_find(const char *functor)
{
    for (size_t i = 0; i < sizeof binaries / sizeof *binaries; i++)
        if (strstr(functor, binaries[i].pattern))
            return binaries[i].run;
    return NULL;
}

operation_function *operation_reducer(const char *name)
{
    static const struct reducer {
        const char *pattern;
        operation_function *run;
    } reducers[] = {
        {"9ReduceAddE", operation_add},
        {"10ReduceMeanE", operation_add},
        {"13ReduceMaximumE", operation_maximum},
        {"13ReduceMinimumE", operation_minimum},
        {"14ReduceMultiplyE", operation_multiply},
    };

    for (size_t i = 0; i < sizeof reducers / sizeof *reducers; i++)
        if (strstr(name, reducers[i].pattern))
            return reducers[i].run;
    return NULL;
}
