/* SPDX-License-Identifier: Apache-2.0
 * Elementwise kernels: aten/src/ATen/native/cuda/CUDALoops.cuh, with the
 * functors of BinaryInternal.h, Loops.cuh, CompareKernels.cu, Copy.cu,
 * TensorCompare.cu, Indexing.cu and FillKernel.cu. */
#include <math.h>
#include <string.h>

#include "capture/core/compute/compute.h"
#include "capture/core/compute/compute_loop.h"
#include "capture/core/compute/compute_name.h"
#include "capture/core/compute/compute_operation.h"
#include "capture/core/memory/values.h"
#include "capture/core/torch/tag_operator.h"

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
    {"19addcmul_cuda_kernel", FORM_ADD_OF, operation_multiply, false},
    {"19addcdiv_cuda_kernel", FORM_ADD_OF, operation_divide, false},
    {"28launch_masked_scatter_kernel", FORM_TAKE, NULL, false},
    {"24pow_tensor_tensor_kernel", FORM_BINARY, operation_power, false},
    {"17clamp_kernel_impl", FORM_BETWEEN, NULL, false},
    {"17where_kernel_impl", FORM_WHERE, NULL, false},
    {"18masked_fill_kernel", FORM_MASK, NULL, false},
    {"19launch_clamp_scalar", FORM_CLAMP, NULL, false},
};

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
    /* CompareEqFunctor<half> takes halves, not opmath_t. */
    if (c->operation == operation_equal)
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
    return c->form == FORM_CLAMP || c->form == FORM_ADD_OF ? number_opmath(type)
                                                           : type;
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
            return false;
        if (c->operation == operation_not && c->types[1] == NUMBER_BOOL)
            c->operation = operation_logical_not;
        c->scalar = lambda_scalar(c);
        return true;
    }
    return false;
}

/* PowKernel.cu: the first lambda squares, the second cubes. */
static bool power_parse(const char *name, struct compute *c)
{
    const char *text = name_after(name, "29pow_tensor_scalar_kernel_impl");
    const char *lambda = text ? name_after(text, "EUl") : NULL;
    const char *end = lambda ? strchr(lambda, 'E') : NULL;

    if (!end || name_lambda(text, c->types + 1, 1) != 1)
        return false;
    c->form = FORM_UNARY;
    c->count = 2;
    c->types[0] = c->types[1];
    c->operation = end[1] == '_' ? operation_square : operation_cube;
    return end[1] == '_' || (end[1] == '0' && end[2] == '_');
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
           power_parse(name, c) || conversion_parse(name, c);
}

static long double scalar_at(const struct compute *c, const char *functor,
                             uint32_t index)
{
    return number_load(c->scalar, functor + index * number_bytes(c->scalar));
}

static bool functor_has_variant(const struct compute *c)
{
    return c->operation == operation_equal ||
           c->operation == operation_compare || c->form == FORM_CLAMP;
}

/* Reads what the functor holds: an enum first where its operation has
 * variants, then its numbers, aligned. */
static void functor_read(struct loop *l, const char *functor)
{
    const struct compute *c = l->compute;
    uint32_t bytes = number_bytes(c->scalar);
    bool has_variant = functor_has_variant(c);

    if (has_variant)
        memcpy(&l->variant, functor, sizeof l->variant);
    switch ((enum form)c->form) {
    case FORM_A:
    case FORM_B: /* after a functor: an int, or nothing, which takes a byte */
        functor += has_variant && bytes < 4 ? 4 : bytes;
        l->s[0] = scalar_at(c, functor, 0);
        break;
    case FORM_CLAMP:
        functor += bytes < 4 ? 4 : bytes;
        l->s[0] = scalar_at(c, functor, 0);
        l->s[1] = scalar_at(c, functor, 1);
        break;
    case FORM_ADD_SELF:
    case FORM_ADD_OTHER:
        l->s[1] = scalar_at(c, functor, 1);
        l->s[0] = scalar_at(c, functor, 0);
        break;
    case FORM_UNARY:
    case FORM_BINARY:
    case FORM_WHERE:
    case FORM_BETWEEN:
        break;
    default:
        l->s[0] = scalar_at(c, functor, 0);
    }
}

/* ClampLimits{Min, Max, MinMax} */
static long double clamp(const struct loop *l, long double x)
{
    if (l->variant != 1 && x < l->s[0])
        return l->s[0];
    if (l->variant == 0)
        return x;
    return operation_minimum(x, l->s[l->variant == 2], 0);
}

static long double sum_evaluate(const struct loop *l, const long double *x)
{
    switch ((enum form)l->compute->form) {
    case FORM_ADD:
        return x[0] + l->s[0] * x[1];
    case FORM_ADD_SELF:
        return x[0] + l->s[1] * l->s[0];
    case FORM_ADD_OTHER:
        return l->s[0] + l->s[1] * x[0];
    default:
        return x[0] + l->s[0] * l->compute->operation(x[1], x[2], 0);
    }
}

long double loop_evaluate(const struct loop *l, const long double *x)
{
    operation_function *op = l->compute->operation;

    switch ((enum form)l->compute->form) {
    case FORM_UNARY:
        return op(x[0], 0, 0);
    case FORM_BINARY:
        return op(x[0], x[1], l->variant);
    case FORM_A:
        return op(l->s[0], x[0], l->variant);
    case FORM_B:
        return op(x[0], l->s[0], l->variant);
    case FORM_WHERE:
        return x[0] ? x[1] : x[2];
    case FORM_MASK:
        return x[1] ? l->s[0] : x[0];
    case FORM_CLAMP:
        return clamp(l, x[0]);
    case FORM_BETWEEN:
        return operation_minimum(operation_maximum(x[0], x[1], 0), x[2], 0);
    case FORM_FILL:
        return l->s[0];
    case FORM_TAKE:
        return x[0]; /* taken */
    default:
        return sum_evaluate(l, x);
    }
}

/* An unknown number is taken to be finite: isnan() asks x != x, isinf() and
 * isfinite() compare with infinity. */
static bool is_finite_check(const struct loop *l)
{
    if (l->compute->operation != operation_equal ||
        !number_is_float(l->types[1]))
        return false;
    return l->compute->form == FORM_BINARY ? l->data[1] == l->data[2]
                                           : isinf(l->s[0]);
}

/* torch.distributions asks x % 1 == 0 of samples: an integer has no remainder,
 * known or not. */
static bool is_remainder_by_one(const struct loop *l)
{
    return l->compute->operation == operation_remainder &&
           l->compute->form == FORM_B && l->s[0] == 1 &&
           !number_is_float(l->types[1]);
}

/* PyTorch checks a flag of its own by torch.equal(flag, true): it is what the
 * script would read. */
static bool is_flag_check(const struct loop *l)
{
    return l->compute->operation == operation_equal && l->count == 1 &&
           l->types[1] == NUMBER_BOOL && operator_runs("aten::equal");
}

/* Whether one of two inputs is a number, or is broadcast: each of its elements
 * meets several of the other's. */
static bool is_broadcast(const struct loop *l)
{
    uint64_t offsets[INPUTS + 1];

    if (l->count == 1)
        return !operator_runs("aten::equal");
    if (!l->offsets)
        return false;
    compute_offsets(l->offsets, l->inputs + 1, l->count - 1, offsets);
    return offsets[1] / number_bytes(l->types[1]) + 1 < l->count ||
           offsets[2] / number_bytes(l->types[2]) + 1 < l->count;
}

/* What is not known equals no constant: the end of a text does not come, nor
 * does padding, and all that hangs on it is as large as it can be. */
static bool is_unequal(const struct loop *l, const bool *known)
{
    if (l->compute->operation != operation_equal)
        return false;
    if (l->compute->form != FORM_BINARY)
        return !known[0];
    return known[0] != known[1] && is_broadcast(l);
}

/* PyTorch asks one element for all() and any() by a copy to a flag. */
static bool is_all_of_one(const struct loop *l)
{
    return l->count == 1 && l->types[0] == NUMBER_BOOL &&
           l->compute->operation == operation_copy &&
           operator_runs("aten::all");
}

/* Whether one of two inputs is known to be VALUE, as a truth. */
static bool is_either(const long double *x, const bool *known, bool value)
{
    return (known[0] && (x[0] != 0) == value) ||
           (known[1] && (x[1] != 0) == value);
}

/* Whether what is known of the inputs X decides alone. */
static bool is_decided(const struct loop *l, const long double *x,
                       const bool *known)
{
    operation_function *op = l->compute->operation;

    switch ((enum form)l->compute->form) {
    case FORM_WHERE:
        return known[0] && known[x[0] ? 1 : 2];
    case FORM_MASK:
        return known[1] && x[1];
    case FORM_BINARY:
        if (op == operation_logical_and || op == operation_and)
            return is_either(x, known, false);
        return op == operation_logical_or && is_either(x, known, true);
    default:
        return false;
    }
}

/* A floating number that is not known is between 0 and 1 where it is compared,
 * as a probability, and as small as a loss. */
static void suppose(const struct loop *l, long double *x, const bool *known)
{
    for (int i = 0; i < l->inputs; i++)
        if (!known[i] && !x[i] && number_is_float(l->types[i + 1]))
            x[i] = 0.5L;
}

/* Whether one result is better than another, neither of them known: it is. An
 * early stopping or a search then goes on as long as it can. */
static bool is_better(const struct loop *l, const bool *known)
{
    return l->count == 1 && l->inputs == 2 && !known[0] && !known[1] &&
           l->compute->operation == operation_compare &&
           number_is_float(l->types[1]) && l->data[1] != l->data[2];
}

static bool is_taken_for_true(const struct loop *l, const bool *known)
{
    return is_all_of_one(l) || is_better(l, known);
}

static void inputs_load(const struct loop *l, const uint64_t *offsets,
                        long double *x, bool *known)
{
    for (int i = 0; i < l->inputs; i++)
        known[i] = compute_load(l->types[i + 1],
                                l->data[i + 1] + offsets[i + 1], &x[i]);
}

/* masked_scatter: what the mask x1 is true for is the next of a source. */
static void take(const struct loop *l, long double *x, bool *known)
{
    uint64_t at =
        (uint64_t)l->s[0] + (uint64_t)x[2] * number_bytes(l->types[0]);

    if (known[1] && x[1])
        known[0] = known[2] && compute_load(l->types[0], at, &x[0]);
    known[0] &= known[1];
    known[1] = known[2] = true;
    x[0] = known[0] ? x[0] : 0;
}

static void element(const struct loop *l, uint64_t index, bool certain)
{
    uint64_t offsets[INPUTS + 1];
    long double x[INPUTS] = {0}, value;
    bool known[INPUTS] = {true, true, true};

    if (l->offsets)
        compute_offsets(l->offsets, l->inputs + 1, index, offsets);
    else
        for (int i = 0; i <= l->inputs; i++)
            offsets[i] = index * number_bytes(l->types[i]);
    inputs_load(l, offsets, x, known);
    if (l->compute->form == FORM_TAKE)
        take(l, x, known);
    bool all_known =
        (known[0] && known[1] && known[2]) || is_decided(l, x, known);
    if (!all_known && l->compute->operation == operation_compare)
        suppose(l, x, known);
    value = loop_evaluate(l, x);
    if (!all_known && !certain && is_unequal(l, known)) {
        value = l->variant != 0;
        certain = true;
        compute_assume();
    } else if (!all_known && is_taken_for_true(l, known)) {
        value = 1;
    }
    compute_store(l->types[0], l->data[0] + offsets[0], value,
                  all_known || certain);
}

uint64_t loop_last_offset(const struct loop *l, int tensor)
{
    uint64_t offsets[INPUTS + 1];

    if (!l->offsets)
        return (l->count - 1) * number_bytes(l->types[tensor]);
    compute_offsets(l->offsets, l->inputs + 1, l->count - 1, offsets);
    return offsets[tensor];
}

/* The most elements that are worth it: told from each input's first. */
static uint64_t limit(const struct loop *l)
{
    bool floats = false;
    long double x;

    if (number_is_float(l->types[0]) &&
        (l->compute->operation != operation_copy ||
         number_is_float(l->types[1])))
        return COMPUTE_FLOATS;
    if (l->compute->operation == operation_equal &&
        !number_is_float(l->types[1]))
        return COMPUTE_INTEGERS;
    for (int i = 1; i <= l->inputs; i++) {
        if (!compute_load(l->types[i], l->data[i], &x))
            return number_is_float(l->types[0]) ? COMPUTE_FLOATS
                                                : COMPUTE_UNKNOWN;
        floats |= number_is_float(l->types[i]);
    }
    return floats || number_is_float(l->types[0]) ? COMPUTE_CHECKED
                                                  : COMPUTE_INTEGERS;
}

/* Comparison with a number of what nothing is known of. */
static bool is_unequal_all(const struct loop *l)
{
    const struct values_window *w = values_window(l->data[1]);
    uint64_t bytes = l->count * number_bytes(l->types[1]);

    return l->compute->operation == operation_equal &&
           l->compute->form != FORM_BINARY && !l->offsets && w &&
           !values_some(w, l->data[1] - w->base, bytes);
}

/* The share of uniform random numbers for which the comparison with s0 is true.
 */
static double probability(const struct loop *l)
{
    double below = (double)(l->s[0] < 0 ? 0 : l->s[0] > 1 ? 1 : l->s[0]);

    return l->variant < 2 ? 1 - below : below;
}

/* A comparison of random numbers, as a dropout of edges makes: the mask has as
 * many true elements as is probable, evenly spread. */
static bool loop_draw(const struct loop *l, const struct kernel_launch *launch)
{
    uint64_t bytes = l->count * number_bytes(l->types[1]), chosen = 0;

    if (l->compute->operation != operation_compare || l->inputs != 1 ||
        l->offsets || l->types[0] != NUMBER_BOOL || l->count < 2 ||
        !values_are_uniform(l->data[1], bytes))
        return false;
    char *to = l->count <= VALUES_WRITE_BYTES
                   ? values_write_as(l->data[0], l->count, VALUES_ASSUMED)
                   : NULL;
    double share = probability(l);
    for (uint64_t i = 0; to && i < l->count; i++) {
        to[i] = (uint64_t)((double)(i + 1) * share + 0.01) >
                (uint64_t)((double)i * share + 0.01);
        chosen += (unsigned char)to[i];
    }
    if (to)
        compute_guess_note(l->compute, launch, l->count, chosen,
                           "a random mask selects as many elements as its "
                           "probability says");
    return to;
}

static void unequal_fill(const struct loop *l)
{
    char *to = values_write_as(l->data[0], l->count, VALUES_ASSUMED);

    if (to)
        memset(to, l->variant != 0, l->count);
}

/* More elements than are looked at: nothing is known of the output, unless it
 * says that numbers are finite, or no constant. */
static void loop_forget(const struct loop *l, bool certain)
{
    const long double x[INPUTS] = {0};
    struct few few;
    bool are_few = few_of_loop(l, &few);
    bool is_flags = !l->offsets && l->types[0] == NUMBER_BOOL;
    unsigned char answer = loop_evaluate(l, x) != 0;

    if (certain && is_flags)
        memsim_values_fill(l->data[0], &answer, 1, l->count);
    else if (is_unequal_all(l) && is_flags && l->count <= VALUES_WRITE_BYTES)
        unequal_fill(l);
    else
        compute_forget(l->types[0], l->data[0],
                       loop_last_offset(l, 0) + number_bytes(l->types[0]));
    if (are_few)
        few_note(l->types[0], l->data[0], l->count, few);
}

/* A mask made a number of, as sum() does, is about to be counted: the policy
 * says what it selects. */
static void loop_decide(const struct loop *l,
                        const struct kernel_launch *launch)
{
    if (l->compute->operation != operation_copy || l->offsets || l->count < 2 ||
        l->types[1] != NUMBER_BOOL || l->types[0] == NUMBER_BOOL ||
        l->count > COMPUTE_INTEGERS || values_known(l->data[1], l->count))
        return;
    few_share_begin(l->types[1], l->data[1], l->count);
    compute_guess(l->compute, launch, compute_mask_decide(l->data[1], l->count),
                  COMPUTE_GUESS_MASK);
    few_share_end();
}

/* How many elements from the first on lie in one piece on both sides of what
 * only copies integers; 1 elsewhere. */
static uint64_t row_length(const struct loop *l)
{
    uint32_t unit = number_bytes(l->types[0]), dims, size;
    uint64_t offsets[2];

    if (l->compute->operation != operation_copy || l->inputs != 1 ||
        l->types[0] != l->types[1] || number_is_float(l->types[0]))
        return 1;
    if (!l->offsets)
        return l->count;
    memcpy(&dims, l->offsets, sizeof dims);
    memcpy(&size, l->offsets + sizeof dims, sizeof size);
    if (!dims || size < 2)
        return 1;
    compute_offsets(l->offsets, 2, 1, offsets);
    return offsets[0] == unit && offsets[1] == unit ? size : 1;
}

/* COUNT elements from INDEX on, in one piece. */
static void row_run(const struct loop *l, uint64_t index, uint64_t count,
                    bool certain)
{
    uint64_t offsets[2] = {0}, bytes = count * number_bytes(l->types[0]);

    if (l->offsets)
        compute_offsets(l->offsets, 2, index, offsets);
    if (values_known(l->data[1] + offsets[1], bytes))
        memsim_values_copy(l->data[0] + offsets[0], l->data[1] + offsets[1],
                           bytes);
    else
        for (uint64_t i = 0; i < count; i++)
            element(l, index + i, certain);
}

static void elements_run(const struct loop *l, bool certain)
{
    uint64_t row = row_length(l);

    for (uint64_t i = 0; i < l->count; i += row) {
        if (row == 1)
            element(l, i, certain);
        else
            row_run(l, i, row < l->count - i ? row : l->count - i, certain);
    }
}

void loop_run(const struct loop *l, const struct kernel_launch *launch)
{
    bool certain =
        is_finite_check(l) || is_remainder_by_one(l) || is_flag_check(l);

    for (int i = 0; i <= l->inputs; i++)
        if (!number_bytes(l->types[i]) || !values_window(l->data[i]))
            return;
    if (loop_draw(l, launch))
        return;
    loop_decide(l, launch);
    if (l->count > COMPUTE_INTEGERS || l->count > limit(l)) {
        loop_forget(l, certain);
        return;
    }
    struct few few;
    bool are_few = few_is_noted(l) && few_of_loop(l, &few);
    elements_run(l, certain);
    if (are_few)
        few_note(l->types[0], l->data[0], l->count, few);
}

/* Without inputs, all elements are the same. */
static void fill_run(const struct loop *l)
{
    const long double none[INPUTS] = {0};
    uint32_t unit = number_bytes(l->types[0]);
    unsigned char value[16];

    if (!values_window(l->data[0]) || !unit || !l->count)
        return;
    number_store(l->types[0], value, loop_evaluate(l, none));
    memsim_values_fill(l->data[0], value, unit, l->count);
}

/* (n, functor, data, input calculator, output calculator, LoadWithCast{types,
 * sizes}, StoreWithCast{type, size}). */
static __attribute__((noinline)) void
dense_elements(const struct compute *c, const struct kernel_launch *launch,
               uint64_t count)
{
    struct loop l = {.compute = c, .count = count, .inputs = c->count - 1};
    memcpy(l.types, c->types, sizeof l.types);
    memcpy(l.data, launch->arguments[2], (size_t)c->count * sizeof *l.data);
    if (c->is_cast) {
        const unsigned char *types = launch->arguments[5];

        for (int i = 0; i < l.inputs; i++)
            l.types[i + 1] = types[i];
        l.types[0] = *(const unsigned char *)launch->arguments[6];
    }
    functor_read(&l, launch->arguments[1]);
    if (l.inputs)
        loop_run(&l, launch);
    else
        fill_run(&l);
}

static void run_dense(const struct compute *c,
                      const struct kernel_launch *launch)
{
    uint64_t count = compute_u32(launch, 0);

    /* Most launches of a training step end here. */
    if (count > COMPUTE_FLOATS && c->bytes &&
        !(c->form == FORM_BINARY && few_may_be(c, launch, count)))
        memsim_values_forget(*(const uint64_t *)launch->arguments[2],
                             count * c->bytes);
    else
        dense_elements(c, launch, count);
}

/* What is done in place by a functor that nothing here knows is not known any
 * more. Elsewhere the output is a new block, of which nothing is known yet. */
static void run_other(const struct compute *c,
                      const struct kernel_launch *launch)
{
    const uint64_t *data = launch->arguments[2];

    if (data[0] == data[1])
        memsim_values_forget(data[0], (uint64_t)compute_u32(launch, 0) *
                                          number_bytes(c->types[1]));
}

static uint32_t dense_reach(const struct compute *c,
                            const struct kernel_launch *launch, int i);

static bool other_parse(const char *name, struct compute *c)
{
    c->form = FORM_OTHER;
    c->reach = dense_reach;
    c->run = run_other;
    return name_lambda(name, c->types + 1, INPUTS) > 0 &&
           !strstr(name, "12LoadWithCastI") &&
           (strstr(name, "29vectorized_elementwise_kernelILi") ||
            strstr(name, "27unrolled_elementwise_kernelI"));
}

static uint32_t functor_alignment(const struct compute *c)
{
    uint32_t bytes = 1;

    if (c->form != FORM_UNARY && c->form != FORM_BINARY &&
        c->form != FORM_WHERE && c->form != FORM_BETWEEN)
        bytes = number_bytes(c->scalar);
    return functor_has_variant(c) && bytes < 4 ? 4 : bytes;
}

static uint32_t functor_size(const struct compute *c)
{
    uint32_t unit = functor_alignment(c);

    switch ((enum form)c->form) {
    case FORM_A:
    case FORM_B:
    case FORM_ADD_SELF:
    case FORM_ADD_OTHER:
        return 2 * unit;
    case FORM_CLAMP:
        return 3 * unit;
    default:
        return unit;
    }
}

/* (n, closure{OffsetCalculator, data, functor, types where cast}). */
static void run_strided(const struct compute *c,
                        const struct kernel_launch *launch)
{
    const char *closure = launch->arguments[1];
    uint32_t at = (OFFSETS_BYTES((uint32_t)c->count) + 7) & ~7u;
    struct loop l = {.compute = c,
                     .count = compute_u32(launch, 0),
                     .inputs = c->count - 1,
                     .offsets = closure};

    if (!compute_offsets_valid(closure))
        return;
    memcpy(l.types, c->types, sizeof l.types);
    memcpy(l.data, closure + at, (size_t)c->count * sizeof *l.data);
    const char *functor = closure + at + 8u * (uint32_t)c->count;
    if (c->is_cast)
        for (int i = 0; i <= l.inputs; i++)
            l.types[i] = (unsigned char)functor[functor_size(c) + (uint32_t)i];
    functor_read(&l, functor);
    loop_run(&l, launch);
}

/* Of (n, functor, data, -, -, types, type). */
static uint32_t dense_reach(const struct compute *c,
                            const struct kernel_launch *launch, int i)
{
    uint32_t words = c->form == FORM_OTHER ? 2 : (uint32_t)c->count;

    (void)launch;
    switch (i) {
    case 1:
        return c->form == FORM_OTHER ? 0 : functor_size(c);
    case 2:
        return 8 * words;
    case 5:
        return c->is_cast ? words - 1 : 0;
    default:
        return c->is_cast;
    }
}

static uint32_t strided_reach(const struct compute *c,
                              const struct kernel_launch *launch, int i)
{
    uint32_t at = (OFFSETS_BYTES((uint32_t)c->count) + 7) & ~7u;

    (void)launch;
    (void)i;
    return at + 8u * (uint32_t)c->count + functor_size(c) +
           (c->is_cast ? (uint32_t)c->count : 0);
}

bool compute_loop_parse(const char *name, struct compute *c)
{
    if (same_parse(name, c, "11FillFunctorI", FORM_FILL, 1))
        c->scalar = c->types[0];
    else if (!functor_parse(name, c))
        return other_parse(name, c);
    c->is_cast = strstr(name, "12LoadWithCastI");
    c->run = run_dense;
    c->reach = dense_reach;
    if (!c->is_cast && c->count > 1 && number_is_float(c->types[0]) &&
        number_is_float(c->types[1]))
        c->bytes = number_bytes(c->types[0]);
    if (strstr(name, "18elementwise_kernelILi")) {
        c->is_cast = strstr(name, "15gpu_kernel_implI");
        c->run = run_strided;
        c->reach = strided_reach;
        return c->is_cast || strstr(name, "22gpu_kernel_impl_nocastI");
    }
    return strstr(name, "rrayIPcL");
}

/* CUDALoops.cuh: (int n, functor, array<char *, m>, ...), of which the first
 * arrays are outputs. Batch normalization's running statistics are floats,
 * changed in place. */
static void run_outputs(const struct compute *c,
                        const struct kernel_launch *launch)
{
    const uint64_t *data = launch->arguments[2];

    for (int i = 0; i < c->count; i++)
        memsim_values_forget(data[i], (uint64_t)compute_u32(launch, 0) *
                                          number_bytes(NUMBER_F32));
}

static uint32_t outputs_reach(const struct compute *c,
                              const struct kernel_launch *launch, int i)
{
    (void)launch;
    (void)i;
    return (uint32_t)c->count * 8;
}

bool compute_outputs_parse(const char *name, struct compute *c)
{
    const char *text = name_after(name, "_for_multi_outputsILi");

    c->run = run_outputs;
    c->reach = outputs_reach;
    c->count = text && *text >= '1' && *text <= '8' ? *text - '0' : 0;
    return c->count;
}
