/* SPDX-License-Identifier: Apache-2.0
 * Functions of floating numbers, for elementwise kernels: exact to the last
 * bits of long double, whose 64 the result is then rounded from. They use the
 * processor's x87 instructions: nothing here links to libm. Those of one
 * operand ignore B. */
#ifndef MEMSIM_CAPTURE_CORE_COMPUTE_COMPUTE_MATH_H
#define MEMSIM_CAPTURE_CORE_COMPUTE_COMPUTE_MATH_H

#include "capture/core/compute/compute_operation.h"

operation_function math_exp;
operation_function math_expm1;
operation_function math_log;
operation_function math_log2;
operation_function math_log10;
operation_function math_log1p;
operation_function math_sqrt;
operation_function math_rsqrt;
operation_function math_reciprocal;
operation_function math_inverse_square;
operation_function math_sin;
operation_function math_cos;
operation_function math_tan;
operation_function math_asin;
operation_function math_acos;
operation_function math_atan;
operation_function math_atan2;
operation_function math_sinh;
operation_function math_cosh;
operation_function math_tanh;
operation_function math_sigmoid;
operation_function math_erf;
operation_function math_fraction;
operation_function math_hypot;
operation_function math_copysign;
operation_function math_power; /* A to the power of B */

#endif
