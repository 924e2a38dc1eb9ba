/* SPDX-License-Identifier: Apache-2.0
 * Reductions: aten/src/ATen/native/cuda/Reduce.cuh. */
#include <math.h>
#include <string.h>

#include "capture/core/compute/compute_few.h"
#include "capture/core/compute/compute_name.h"
#include "capture/core/compute/compute_operation.h"
#include "capture/core/compute/compute_reduce.h"
#include "capture/core/memory/values.h"
#include "common/base/text_begins.h"

static uint32_t align_up(uint32_t at, uint32_t unit)
{
    return (at + unit - 1) / unit * unit;
}

/* What ops_t and arg_t take before the config. types[2] is arg_t's number; it
 * is a pair, with an int64_t where places are kept, of its own type where the
 * least and the greatest are. */
static uint32_t config_place(const struct compute *c)
{
    uint32_t bytes = number_bytes(c->types[2]);
    uint32_t ops = c->form == FORM_MEAN ? bytes : 1;

    switch ((enum layout)c->layout) {
    case LAYOUT_VALUE:
        return align_up(align_up(ops, bytes) + bytes, 4);
    case LAYOUT_BOTH:
        return align_up(bytes + 2 * bytes, 4);
    case LAYOUT_JITTED:
        return bytes;
    default:
        return 24;
    }
}

static bool reduction_read(const struct compute *c, const char *op,
                           struct reduction *r)
{
    uint32_t at = config_place(c);

    memcpy(&r->config, op + at, sizeof r->config);
    r->input_offsets = op + at + CONFIG_BYTES;
    r->output_offsets = r->input_offsets + OFFSETS_BYTES(1);
    at = align_up(at + CONFIG_BYTES + OFFSETS_BYTES(1) + OFFSETS_BYTES(2), 8);
    memcpy(&r->source, op + at, sizeof r->source);
    memcpy(r->destination, op + at + 8, sizeof r->destination);
    return r->config.inputs > 0 && r->config.outputs > 0 &&
           compute_offsets_valid(r->input_offsets) &&
           compute_offsets_valid(r->output_offsets) &&
           values_window(r->source) && values_window(r->destination[0]);
}

static uint32_t reduce_reach(const struct compute *c,
                             const struct kernel_launch *launch, int i)
{
    (void)launch;
    (void)i;
    return align_up(config_place(c) + CONFIG_BYTES + OFFSETS_BYTES(1) +
                        OFFSETS_BYTES(2),
                    8) +
           24;
}

long double reduce_combine(const struct compute *c, int form, long double a,
                           long double b)
{
    switch ((enum form)form) {
    case FORM_PRODUCT:
        return number_product(c->types[0], a, b);
    case FORM_ANY:
        return a || b;
    case FORM_ALL:
        return a && b;
    case FORM_MAX:
        return b > a || isnan(b) ? b : a;
    case FORM_MIN:
        return b < a || isnan(b) ? b : a;
    default:
        return number_sum(c->types[0], a, b);
    }
}

void reduce_store(const struct compute *c, const struct reduction *r,
                         uint64_t offset, long double value, uint64_t place,
                         bool known)
{
    uint64_t inputs = (uint64_t)r->config.inputs;

    if (c->layout == LAYOUT_INDEX) {
        bool is_token = !known && compute_is_vocabulary(inputs);

        if (is_token)
            compute_assume();
        compute_store(NUMBER_I64, r->destination[0] + offset,
                      (long double)(is_token
                                        ? compute_any_place(inputs, 0, 0, 0)
                                        : place),
                      known || is_token);
        return;
    }
    compute_store(c->types[0], r->destination[0] + offset, value, known);
    if (c->layout == LAYOUT_VALUE_INDEX)
        compute_store(NUMBER_I64,
                      r->destination[1] +
                          offset / number_bytes(c->types[0]) * 8,
                      (long double)place, known);
}

/* The other half of MinMaxOps. */
static void output_greatest(const struct compute *c, const struct reduction *r,
                            const uint64_t *offsets)
{
    long double value = 0, x;
    bool known = true;
    uint64_t inner;

    for (uint64_t i = 0; i < (uint64_t)r->config.inputs; i++) {
        compute_offsets(r->input_offsets, 1, i, &inner);
        known &= compute_load(c->types[1], r->source + offsets[1] + inner, &x);
        value = i ? reduce_combine(c, FORM_MAX, value, x) : x;
    }
    compute_store(c->types[0], r->destination[1] + offsets[0], value, known);
}

/* One element that is known answers for all that are not. */
static bool is_decisive(const struct compute *c, long double x)
{
    return (c->form == FORM_ANY && x) || (c->form == FORM_ALL && !x);
}

static void output_reduce(const struct compute *c, const struct reduction *r,
                          uint64_t output)
{
    uint64_t offsets[2], inner, place = 0;
    long double value = 0, x;
    bool known = true, decided = false;

    compute_offsets(r->output_offsets, 2, output, offsets);
    for (uint64_t i = 0; i < (uint64_t)r->config.inputs; i++) {
        compute_offsets(r->input_offsets, 1, i, &inner);
        if (!compute_load(c->types[1], r->source + offsets[1] + inner, &x)) {
            known = false;
            if (c->form == FORM_ALL)
                x = 1; /* checks find nothing wrong */
        } else {
            decided |= is_decisive(c, x);
        }
        long double next = i ? reduce_combine(c, c->form, value, x) : x;
        if (next != value)
            place = i;
        value = next;
    }
    if (c->form == FORM_ANY || c->form == FORM_ALL)
        value = value != 0;
    if (c->form == FORM_MEAN)
        value /= r->config.inputs;
    reduce_store(c, r, offsets[0], value, place, known || decided);
    if (c->layout == LAYOUT_BOTH)
        output_greatest(c, r, offsets);
}

/* Too many elements to look at: checks find nothing wrong, the rest is 0. */
static void outputs_forget(const struct compute *c, const struct reduction *r)
{
    uint64_t outputs = (uint64_t)r->config.outputs, offsets[2];

    if (outputs > COMPUTE_FLOATS) {
        compute_offsets(r->output_offsets, 2, outputs - 1, offsets);
        compute_forget(c->layout == LAYOUT_INDEX ? NUMBER_I64 : c->types[0],
                       r->destination[0], offsets[0] + 8);
        return;
    }
    for (uint64_t o = 0; o < outputs; o++) {
        compute_offsets(r->output_offsets, 2, o, offsets);
        reduce_store(c, r, offsets[0], c->form == FORM_ALL,
                     compute_any_place((uint64_t)r->config.inputs, 0, 0, 0),
                     false);
    }
}

/* What is not zero comes of what is not: of one output, a sum of ones. */
static void outputs_few(const struct compute *c, const struct reduction *r,
                        const struct kernel_launch *launch)
{
    uint64_t outputs = (uint64_t)r->config.outputs;
    struct few few;
    uint64_t elements = (uint64_t)r->config.inputs * outputs;
    bool has_value =
        c->layout == LAYOUT_VALUE || c->layout == LAYOUT_VALUE_INDEX;
    bool are_few = has_value && c->form != FORM_ALL && c->form != FORM_MIN &&
                   few_get(c->types[1], r->source, elements, &few);

    outputs_forget(c, r);
    if (!are_few)
        return;
    if (outputs > 1) {
        few_note(c->types[0], r->destination[0], outputs, few);
    } else if (c->form == FORM_SUM && !number_is_float(c->types[0])) {
        compute_guess_note(c, launch, elements, few.count,
                           "the sum of a mask is as many elements as it has at "
                           "most, by how it was made");
        compute_assume();
        compute_store(c->types[0], r->destination[0], few.count, true);
    }
}

/* The most elements that are worth it, told from the first one. */
static uint64_t reduction_limit(const struct compute *c,
                                const struct reduction *r)
{
    long double x;

    if (compute_load(c->types[1], r->source, &x))
        return number_is_float(c->types[1]) ? COMPUTE_INTEGERS
                                            : COMPUTE_REDUCED;
    return (c->layout == LAYOUT_VALUE || c->layout == LAYOUT_JITTED) &&
                   number_is_float(c->types[0])
               ? COMPUTE_FLOATS
               : COMPUTE_UNKNOWN;
}

static void run_reduce(const struct compute *c,
                       const struct kernel_launch *launch)
{
    struct reduction r;

    if (!reduction_read(c, launch->arguments[0], &r))
        return;
    uint64_t elements = (uint64_t)r.config.inputs * (uint64_t)r.config.outputs;
    if (elements > COMPUTE_UNKNOWN && reduce_constant(c, &r))
        return;
    if (elements > reduction_limit(c, &r)) {
        outputs_few(c, &r, launch);
        return;
    }
    for (uint64_t o = 0; o < (uint64_t)r.config.outputs; o++)
        output_reduce(c, &r, o);
}

static const struct operation {
    const char *pattern;
    enum form form;
    enum layout layout;
    bool is_lambda; /* arg_t is the lambda's first argument */
} operations[] = {
    {"11sum_functorI", FORM_SUM, LAYOUT_VALUE, true},
    {"12prod_functorI", FORM_PRODUCT, LAYOUT_VALUE, true},
    {"14or_kernel_cuda", FORM_ANY, LAYOUT_VALUE, true},
    {"15and_kernel_cuda", FORM_ALL, LAYOUT_VALUE, true},
    {"13MaxNanFunctorI", FORM_MAX, LAYOUT_VALUE, false},
    {"13MinNanFunctorI", FORM_MIN, LAYOUT_VALUE, false},
    {"9MinMaxOpsI", FORM_MIN, LAYOUT_BOTH, false},
    {"9ArgMaxOpsI", FORM_MAX, LAYOUT_INDEX, false},
    {"9ArgMinOpsI", FORM_MIN, LAYOUT_INDEX, false},
    {"6MaxOpsI", FORM_MAX, LAYOUT_VALUE_INDEX, false},
    {"6MinOpsI", FORM_MIN, LAYOUT_VALUE_INDEX, false},
};

/* ReduceOp<scalar_t, ops_t, index_t, out_scalar_t, vt0, ...>: the last types,
 * which a digit and the like cannot be taken for. */
static bool output_type(const char *name, struct compute *c)
{
    for (const char *at = name; (at = name_after(at, "Ej"));) {
        const char *text = at;
        enum number_type type;

        if (text_begins(text, "S") && number_bytes(c->types[1]) == 2 &&
            strchr(text, '_') && text_begins(strchr(text, '_') + 1, "Li4E")) {
            c->types[0] = c->types[1];
            return true;
        }
        if (name_types(&text, &type, 1) && text_begins(text, "Li4E")) {
            c->types[0] = type;
            return true;
        }
    }
    return false;
}

static bool mean_parse(const char *name, struct compute *c)
{
    /* MeanOps<scalar_t, acc_t, factor_t, out_t>: {factor_t factor} */
    const char *text = name_after(name, "7MeanOpsI");
    enum number_type types[4] = {c->types[1]};

    if (!text)
        return false;
    if (number_bytes(c->types[1]) == 2)
        types[1] = NUMBER_F32;
    else if (!name_types(&text, types, 3) || types[1] != types[2])
        return false;
    c->form = FORM_MEAN;
    c->types[2] = types[1];
    return true;
}

static bool operation_parse(const char *name, struct compute *c)
{
    enum number_type half =
        number_bytes(c->types[1]) == 2 ? c->types[1] : NUMBER_NONE;

    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        const struct operation *o = &operations[i];
        const char *text = name_after(name, o->pattern);
        enum number_type types[2];

        if (!text)
            continue;
        c->form = o->form;
        c->layout = o->layout;
        if (o->is_lambda ? name_lambda_after(text, types, 2, half) != 2
                         : !name_types_after(&text, types, 1, half))
            return false;
        c->types[2] = types[0];
        return true;
    }
    return mean_parse(name, c);
}

bool compute_reduce_parse(const char *name, struct compute *c)
{
    const char *text = name_after(name, "8ReduceOpI");

    c->run = run_reduce;
    c->reach = reduce_reach;
    return text && name_types(&text, c->types + 1, 1) &&
           operation_parse(name, c) && output_type(name, c);
}

/* The type of ReduceJitOp's number, whose kernel's name does not have it: the
 * first value is its 1, and the config has its size. */
static enum number_type jitted_type(const char *op)
{
    static const enum number_type types[] = {NUMBER_I64, NUMBER_I32, NUMBER_F64,
                                             NUMBER_F32};

    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        uint32_t bytes = number_bytes(types[i]);
        struct config config;

        memcpy(&config, op + bytes, sizeof config);
        if (number_load(types[i], op) == 1 &&
            config.element_bytes == (int32_t)bytes)
            return types[i];
    }
    return NUMBER_NONE;
}

static uint32_t jitted_reach(const struct compute *c,
                             const struct kernel_launch *launch, int i)
{
    struct compute widest = *c;

    widest.types[2] = NUMBER_I64;
    return reduce_reach(&widest, launch, i);
}

static void run_reduce_jitted(const struct compute *c,
                              const struct kernel_launch *launch)
{
    struct compute typed = *c;
    enum number_type type = jitted_type(launch->arguments[0]);

    if (type == NUMBER_NONE)
        return;
    typed.types[0] = typed.types[1] = typed.types[2] = type;
    run_reduce(&typed, launch);
}

/* ReduceSumProdKernel.cu has it compiled when it is first used. */
bool compute_reduce_jitted_parse(const char *name, struct compute *c)
{
    c->form = FORM_PRODUCT;
    c->layout = LAYOUT_JITTED;
    c->run = run_reduce_jitted;
    c->reach = jitted_reach;
    return !strcmp(name, "reduction_prod_kernel");
}
