/* SPDX-License-Identifier: Apache-2.0
 * What the functors of elementwise kernels do with one or two numbers. */
#ifndef MEMSIM_CAPTURE_CORE_COMPUTE_COMPUTE_OPERATION_H
#define MEMSIM_CAPTURE_CORE_COMPUTE_COMPUTE_OPERATION_H

#include "capture/core/base/number.h"

/* A sum and a product of numbers of TYPE: integers wrap, as on the GPU. A long
 * double holds each int64_t, but not each sum or product of two. */
static inline long double number_sum(enum number_type type, long double a,
                                     long double b)
{
    if (number_is_float(type))
        return a + b;
    return (int64_t)((uint64_t)(int64_t)a + (uint64_t)(int64_t)b);
}

static inline long double number_product(enum number_type type, long double a,
                                         long double b)
{
    if (number_is_float(type))
        return a * b;
    return (int64_t)((uint64_t)(int64_t)a * (uint64_t)(int64_t)b);
}

/* VARIANT is the enum that some functors start with; those of one operand
 * ignore B. */
typedef long double operation_function(long double a, long double b,
                                       int variant);

/* The operation that AUnaryFunctor, BUnaryFunctor and BinaryFunctor are given
 * as their last template argument, at FUNCTOR; NULL where it is none of these.
 */
operation_function *operation_find(const char *functor);

/* What RUN is for numbers of TYPE: of integers, products wrap; of floats,
 * quotients are rounded before they are truncated. */
operation_function *operation_of_type(operation_function *run,
                                      enum number_type type);

/* What a scatter or an index_reduce with the mangled NAME does with what it
 * finds; NULL where it only stores. A mean is added up here, and divided by
 * another kernel. */
operation_function *operation_reducer(const char *name);

/* Those that other functors stand for. */
operation_function operation_add;
operation_function operation_multiply;
operation_function operation_multiply_integers;
operation_function operation_maximum;
operation_function operation_equal;
operation_function operation_compare;
operation_function operation_and;
operation_function operation_logical_and;
operation_function operation_logical_or;
operation_function operation_minimum;
operation_function operation_copy;
operation_function operation_negate;
operation_function operation_absolute;
operation_function operation_floor;
operation_function operation_ceil;
operation_function operation_round;
operation_function operation_truncate;
operation_function operation_sign;
operation_function operation_is_negative;
operation_function operation_divide;
operation_function operation_divide_floor;
operation_function operation_scale_truncate;
operation_function operation_scale_truncate_double;
operation_function operation_square;
operation_function operation_cube;
operation_function operation_power;
operation_function operation_remainder;
operation_function operation_not;
operation_function operation_logical_not;

#endif
