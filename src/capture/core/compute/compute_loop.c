/* SPDX-License-Identifier: Apache-2.0
 * Elementwise kernels: aten/src/ATen/native/cuda/CUDALoops.cuh. */
#include <string.h>

#include "capture/core/compute/compute.h"
#include "capture/core/compute/compute_loop.h"
#include "capture/core/compute/compute_name.h"
#include "capture/core/compute/compute_operation.h"
#include "capture/core/diagnose/assumed.h"
#include "capture/core/memory/values.h"

uint64_t loop_last_offset(const struct loop *l, int tensor)
{
    uint64_t offsets[INPUTS + 1];

    if (!l->offsets)
        return (l->count - 1) * number_bytes(l->types[tensor]);
    compute_offsets(l->offsets, l->inputs + 1, l->count - 1, offsets);
    return offsets[tensor];
}

/* The most elements that are worth it: told from each input's first. */
static uint64_t loop_limit(const struct loop *l)
{
    bool floats = number_is_float(l->types[0]);
    long double x;

    if (l->compute->operation == operation_equal &&
        !number_is_float(l->types[1]))
        return COMPUTE_INTEGERS;
    for (int i = 1; i <= l->inputs; i++) {
        if (!compute_load(l->types[i], l->data[i], &x))
            return number_is_float(l->types[0]) ? COMPUTE_FLOATS
                                                : COMPUTE_UNKNOWN;
        floats |= number_is_float(l->types[i]);
    }
    return floats ? COMPUTE_CHECKED : COMPUTE_INTEGERS;
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
static double loop_probability(const struct loop *l)
{
    double below = (double)(l->s[0] < 0 ? 0 : l->s[0] > 1 ? 1 : l->s[0]);

    return l->variant < 2 ? 1 - below : below;
}

/* Writes a mask of which SHARE is true, evenly spread, and notes WHY. */
static bool flags_spread(const struct loop *l,
                         const struct kernel_launch *launch, double share,
                         const char *why)
{
    uint64_t chosen = 0;
    char *to = l->count <= VALUES_WRITE_BYTES
                   ? values_write_as(l->data[0], l->count, VALUES_ASSUMED)
                   : NULL;

    for (uint64_t i = 0; to && i < l->count; i++) {
        to[i] = (uint64_t)((double)(i + 1) * share + 0.01) >
                (uint64_t)((double)i * share + 0.01);
        chosen += (unsigned char)to[i];
    }
    if (to)
        compute_guess_note(l->compute, launch, l->count, chosen, why);
    return to;
}

/* A comparison of random numbers, as a dropout of edges makes: the mask has as
 * many true elements as is probable, evenly spread. */
static bool loop_draw(const struct loop *l, const struct kernel_launch *launch)
{
    uint64_t bytes = l->count * number_bytes(l->types[1]);

    if (l->compute->operation != operation_compare || l->inputs != 1 ||
        l->offsets || l->types[0] != NUMBER_BOOL || l->count < 2 ||
        !values_are_uniform(l->data[1], bytes))
        return false;
    return flags_spread(l, launch, loop_probability(l),
                        "a random mask selects as many elements as its "
                        "probability says");
}

/* A comparison that says itself what it selects (compute_few_compare.c). Where
 * the user says something of a line (--assume), that is asked later. */
static bool loop_filter(const struct loop *l,
                        const struct kernel_launch *launch)
{
    struct few few;

    if (assumed_any() || loop_last_offset(l, 0) + 1 != l->count ||
        l->count > VALUES_WRITE_BYTES || !few_of_comparison(l, &few))
        return false;
    return flags_spread(l, launch, (double)few.count / (double)l->count,
                        "a comparison selects as many elements as it usually "
                        "does: nearly all are not degenerate, few are equal");
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
    bool are_few = few_of_comparison(l, &few) || few_of_loop(l, &few);
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
            loop_element(l, index + i, certain);
}

static void elements_run(const struct loop *l, bool certain)
{
    uint64_t row = row_length(l);

    for (uint64_t i = 0; i < l->count; i += row) {
        if (row == 1)
            loop_element(l, i, certain);
        else
            row_run(l, i, row < l->count - i ? row : l->count - i, certain);
    }
}

void loop_run(const struct loop *l, const struct kernel_launch *launch)
{
    bool certain = loop_is_certain(l);

    for (int i = 0; i <= l->inputs; i++)
        if (!number_bytes(l->types[i]) || !values_window(l->data[i]))
            return;
    if (loop_draw(l, launch) || loop_filter(l, launch))
        return;
    loop_decide(l, launch);
    if (l->count > COMPUTE_UNKNOWN && loop_constant(l))
        return;
    if (l->count > COMPUTE_INTEGERS || l->count > loop_limit(l)) {
        loop_forget(l, certain);
        return;
    }
    struct few few;
    bool are_few = (few_is_noted(l) && few_of_loop(l, &few)) ||
                   few_of_comparison(l, &few);
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
    loop_functor_read(&l, launch->arguments[1]);
    if (l.inputs)
        loop_run(&l, launch);
    else
        fill_run(&l);
}

/* Whether something is known of each input: of its first element. */
static bool may_be_known(const struct compute *c,
                         const struct kernel_launch *launch)
{
    const uint64_t *data = launch->arguments[2];
    int i = 1;

    while (i < c->count && values_known(data[i], 1))
        i++;
    return i == c->count;
}

static void run_dense(const struct compute *c,
                      const struct kernel_launch *launch)
{
    uint64_t count = compute_u32(launch, 0);

    /* Most launches of a training step end here. */
    if (count > COMPUTE_FLOATS && c->bytes && !may_be_known(c, launch) &&
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
            l.types[i] =
                (unsigned char)functor[loop_functor_bytes(c) + (uint32_t)i];
    loop_functor_read(&l, functor);
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
        return c->form == FORM_OTHER ? 0 : loop_functor_bytes(c);
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
    return at + 8u * (uint32_t)c->count + loop_functor_bytes(c) +
           (c->is_cast ? (uint32_t)c->count : 0);
}

bool compute_loop_parse(const char *name, struct compute *c)
{
    if (!loop_functor_parse(name, c))
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
