/* SPDX-License-Identifier: Apache-2.0
 * The functors of elementwise kernels by their names: BinaryInternal.h,
 * Loops.cuh, CompareKernels.cu, Copy.cu, TensorCompare.cu, Indexing.cu and
 * FillKernel.cu of aten/src/ATen/native/cuda. */
#include <string.h>

#include "capture/core/compute/compute.h"
#include "capture/core/compute/compute_loop.h"
#include "capture/core/compute/compute_math.h"
#include "capture/core/compute/compute_name.h"
#include "capture/core/compute/compute_operation.h"

/* A lambda: its types are its arguments', and the output's is theirs. */
static const struct named_lambda {
    const char *pattern;
    enum form form;
    operation_function *run;
    bool to_bool;
} lambdas[] = {
    {"23direct_copy_kernel_cuda", FORM_UNARY, operation_copy, false},
    {"23bitwise_not_kernel_cuda", FORM_UNARY, operation_not, false},
    {"23logical_not_kernel_cuda", FORM_UNARY, operation_logical_not, true},
    {"15neg_kernel_cuda", FORM_UNARY, operation_negate, false},
    {"17floor_kernel_cuda", FORM_UNARY, operation_floor, false},
    {"16ceil_kernel_cuda", FORM_UNARY, operation_ceil, false},
    {"17round_kernel_cuda", FORM_UNARY, operation_round, false},
    {"17trunc_kernel_cuda", FORM_UNARY, operation_truncate, false},
    {"16sign_kernel_cuda", FORM_UNARY, operation_sign, false},
    {"19signbit_kernel_cuda", FORM_UNARY, operation_is_negative, true},
    {"15exp_kernel_cuda", FORM_UNARY, math_exp, false},
    {"17expm1_kernel_cuda", FORM_UNARY, math_expm1, false},
    {"15log_kernel_cuda", FORM_UNARY, math_log, false},
    {"16log2_kernel_cuda", FORM_UNARY, math_log2, false},
    {"17log10_kernel_cuda", FORM_UNARY, math_log10, false},
    {"17log1p_kernel_cuda", FORM_UNARY, math_log1p, false},
    {"16sqrt_kernel_cuda", FORM_UNARY, math_sqrt, false},
    {"17rsqrt_kernel_cuda", FORM_UNARY, math_rsqrt, false},
    {"22reciprocal_kernel_cuda", FORM_UNARY, math_reciprocal, false},
    {"15sin_kernel_cuda", FORM_UNARY, math_sin, false},
    {"15cos_kernel_cuda", FORM_UNARY, math_cos, false},
    {"15tan_kernel_cuda", FORM_UNARY, math_tan, false},
    {"16asin_kernel_cuda", FORM_UNARY, math_asin, false},
    {"16acos_kernel_cuda", FORM_UNARY, math_acos, false},
    {"16atan_kernel_cuda", FORM_UNARY, math_atan, false},
    {"16sinh_kernel_cuda", FORM_UNARY, math_sinh, false},
    {"16cosh_kernel_cuda", FORM_UNARY, math_cosh, false},
    {"16tanh_kernel_cuda", FORM_UNARY, math_tanh, false},
    {"19sigmoid_kernel_cuda", FORM_UNARY, math_sigmoid, false},
    {"15erf_kernel_cuda", FORM_UNARY, math_erf, false},
    {"16frac_kernel_cuda", FORM_UNARY, math_fraction, false},
    {"21div_floor_kernel_cuda", FORM_HELD_B, operation_divide_floor, false},
    {"21div_trunc_kernel_cuda", FORM_HELD_B, operation_scale_truncate, false},
    {"19addcmul_cuda_kernel", FORM_ADD_OF, operation_multiply, false},
    {"19addcdiv_cuda_kernel", FORM_ADD_OF, operation_divide, false},
    {"28launch_masked_scatter_kernel", FORM_TAKE, NULL, false},
    {"24pow_tensor_tensor_kernel", FORM_BINARY, operation_power, false},
    {"17clamp_kernel_impl", FORM_BETWEEN, NULL, false},
    {"17where_kernel_impl", FORM_WHERE, NULL, false},
    {"18masked_fill_kernel", FORM_MASK, NULL, false},
    {"19launch_clamp_scalar", FORM_CLAMP, NULL, false},
};

/* Whether a functor is a lambda that takes halves, not opmath_t. */
static bool takes_halves(const char *functor)
{
    const char *lambda = name_after(functor, "EUl");

    return lambda && (*lambda == 'S' || *lambda == 'N');
}

/* {A,B,}{Unary,Binary}Functor<arg1_t, arg2_t, return_t, func_t>. */
static bool wrapper_parse(const char *name, struct compute *c,
                          const char *pattern, enum form form)
{
    const char *text = name_after(name, pattern);
    enum number_type types[3];

    if (!text || !name_types(&text, types, 3))
        return false;
    c->form = form;
    c->operation = operation_find(text);
    c->types[0] = types[2];
    c->types[1] = types[form == FORM_A];
    c->types[2] = types[1];
    c->scalar = number_opmath(types[form == FORM_B]);
    /* CompareEqFunctor<half> takes halves, too. */
    if (c->operation == operation_equal || takes_halves(text))
        c->scalar = types[form == FORM_B];
    c->count = form == FORM_BINARY ? 3 : 2;
    return c->operation;
}

static bool same_parse(const char *name, struct compute *c, const char *pattern,
                       enum form form, int count)
{
    const char *text = name_after(name, pattern);

    if (!text || !name_types(&text, c->types, 1))
        return false;
    c->form = form;
    c->count = count;
    c->scalar = number_opmath(c->types[0]);
    for (int i = 1; i < count; i++)
        c->types[i] = c->types[0];
    return true;
}

static bool compare_parse(const char *name, struct compute *c)
{
    if (same_parse(name, c, "21compare_scalar_kernelI", FORM_B, 2))
        c->scalar = c->types[0];
    else if (!same_parse(name, c, "14CompareFunctorI", FORM_BINARY, 3))
        return false;
    c->types[0] = NUMBER_BOOL;
    c->operation = operation_compare;
    c->layout = c->form == FORM_B ? HOLDER_POINTER : HOLDER_PLAIN;
    return true;
}

/* What the lambda holds; of addcmul's an at::acc_type, of masked_scatter's an
 * address. */
static enum number_type lambda_scalar(const struct compute *c)
{
    enum number_type type = c->types[1];

    if (c->form == FORM_TAKE ||
        (c->form == FORM_ADD_OF && !number_is_float(type)))
        return NUMBER_I64;
    return c->form == FORM_CLAMP || c->form == FORM_ADD_OF ||
                   c->form == FORM_HELD_B
               ? number_opmath(type)
               : type;
}

static enum holder lambda_holder(const struct compute *c)
{
    bool captures = c->form != FORM_UNARY && c->form != FORM_BETWEEN &&
                    c->form != FORM_WHERE;

    return captures ? HOLDER_POINTER : HOLDER_PLAIN;
}

static bool lambda_parse(const char *name, struct compute *c)
{
    for (size_t i = 0; i < sizeof lambdas / sizeof *lambdas; i++) {
        const struct named_lambda *l = &lambdas[i];
        const char *text = name_after(name, l->pattern);
        int inputs = text ? name_lambda(text, c->types + 1, INPUTS) : -1;

        if (inputs < 1)
            continue;
        c->form = l->form;
        c->operation = l->run;
        c->count = 1 + inputs;
        c->types[0] = l->to_bool              ? NUMBER_BOOL
                      : l->form == FORM_WHERE ? c->types[2]
                                              : c->types[1];
        if (c->operation == operation_power && number_is_float(c->types[1]))
            c->operation = math_power;
        if (c->form == FORM_HELD_B && inputs != 1)
            return false;
        if (c->operation == operation_scale_truncate &&
            c->types[1] == NUMBER_F64)
            c->operation = operation_scale_truncate_double;
        if (c->operation == operation_not && c->types[1] == NUMBER_BOOL)
            c->operation = operation_logical_not;
        c->scalar = lambda_scalar(c);
        c->layout = lambda_holder(c);
        return true;
    }
    return false;
}

static operation_function *power_operation(enum number_type type)
{
    return number_is_float(type) ? math_power : operation_power;
}

/* The lambdas of pow_tensor_scalar_kernel_impl<base, exponent>: the square, the
 * cube, the power of -2, and of an exponent that it holds. */
static bool power_parse(const char *name, struct compute *c)
{
    static operation_function *const operations[] = {
        operation_square, operation_cube, math_inverse_square, NULL};
    const char *text = name_after(name, "29pow_tensor_scalar_kernel_implI");
    const char *lambda = text ? name_after(text, "EUl") : NULL;
    const char *end = lambda ? strchr(lambda, 'E') : NULL;
    enum number_type types[2];

    if (!end || !name_types(&text, types, 2))
        return false;
    uint32_t ordinal = end[1] == '_' ? 0 : 1 + (uint32_t)(end[1] - '0');
    if (ordinal > 3 || (ordinal && end[2] != '_'))
        return false;
    c->form = ordinal == 3 ? FORM_HELD_B : FORM_UNARY;
    c->layout = HOLDER_POINTER;
    c->count = 2;
    c->types[0] = c->types[1] = types[0];
    c->scalar = types[1];
    c->operation = ordinal == 3 ? power_operation(types[0])
                                : operations[ordinal];
    return true;
}

/* pow_scalar_tensor_impl<type>: of a base that the lambda holds. */
static bool power_of_parse(const char *name, struct compute *c)
{
    const char *text = name_after(name, "22pow_scalar_tensor_implI");

    if (!text || !name_types(&text, c->types, 1))
        return false;
    c->form = FORM_HELD_A;
    c->layout = HOLDER_POINTER;
    c->count = 2;
    c->types[1] = c->scalar = c->types[0];
    c->operation = power_operation(c->types[0]);
    return true;
}

/* Copy.cu: kernels that only change the type. */
static bool conversion_parse(const char *name, struct compute *c)
{
    const char *text = name_after(name, "27converting_copy_kernel_cudaI");
    enum number_type types[2]; /* from, to */

    c->form = FORM_UNARY;
    c->operation = operation_copy;
    c->count = 2;
    if (text && name_types(&text, types, 2)) {
        c->types[0] = types[1];
        c->types[1] = types[0];
        return true;
    }
    text = name_after(name, "25bfloat16_copy_kernel_cuda");
    c->types[0] = NUMBER_BF16;
    if (!text) {
        text = name_after(name, "24float16_copy_kernel_cuda");
        c->types[0] = NUMBER_F16;
    }
    return text && name_lambda(text, c->types + 1, 1) == 1;
}

static bool functor_parse(const char *name, struct compute *c)
{
    if (same_parse(name, c, "11FillFunctorI", FORM_FILL, 1)) {
        c->scalar = c->types[0];
        return true;
    }
    if (same_parse(name, c, "10AbsFunctorI", FORM_UNARY, 2)) {
        c->operation = operation_absolute;
        return true;
    }
    return wrapper_parse(name, c, "13AUnaryFunctorI", FORM_A) ||
           wrapper_parse(name, c, "13BUnaryFunctorI", FORM_B) ||
           wrapper_parse(name, c, "13BinaryFunctorI", FORM_BINARY) ||
           same_parse(name, c, "15CUDAFunctor_addI", FORM_ADD, 3) ||
           same_parse(name, c, "21CUDAFunctorOnSelf_addI", FORM_ADD_SELF, 2) ||
           same_parse(name, c, "22CUDAFunctorOnOther_addI", FORM_ADD_OTHER,
                      2) ||
           compare_parse(name, c) || lambda_parse(name, c) ||
           power_parse(name, c) || power_of_parse(name, c) ||
           conversion_parse(name, c);
}

bool loop_functor_parse(const char *name, struct compute *c)
{
    if (!functor_parse(name, c))
        return false;
    c->operation = operation_of_type(c->operation, c->types[0]);
    return true;
}
