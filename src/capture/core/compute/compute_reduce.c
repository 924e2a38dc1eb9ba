/* SPDX-License-Identifier: Apache-2.0
 * Reductions (aten/src/ATen/native/cuda/Reduce.cuh), running sums
 * (ScanUtils.cuh, CUB's DeviceScan) and histograms (SummaryOps.cu). */
#include <math.h>
#include <string.h>

#include "capture/core/compute/compute_few.h"
#include "capture/core/compute/compute_name.h"
#include "capture/core/memory/values.h"

enum form {
    FORM_SUM,
    FORM_MEAN,
    FORM_ANY,
    FORM_ALL,
    FORM_MAX,
    FORM_MIN,
    FORM_PRODUCT,
};

/* What is written besides or instead of the value itself: its place; or, of
 * the least, the greatest too. */
enum layout {
    LAYOUT_VALUE,
    LAYOUT_VALUE_INDEX,
    LAYOUT_INDEX,
    LAYOUT_BOTH,
    LAYOUT_JITTED, /* ReduceJitOp: the first value comes before the config */
};

/* ReduceConfig: sixteen ints, of which these come first. */
#define CONFIG_BYTES 64u
struct config {
    int32_t element_bytes, inputs, outputs; /* inputs of each output */
};

/* ReduceOp: ops, ident, ReduceConfig, OffsetCalculator<1>, OffsetCalculator<2>,
 * const void *src, const char *dst[2], ... */
struct reduction {
    struct config config;
    const char *input_offsets, *output_offsets;
    uint64_t source, destination[2];
};

static uint32_t align(uint32_t at, uint32_t unit)
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
        return align(align(ops, bytes) + bytes, 4);
    case LAYOUT_BOTH:
        return align(bytes + 2 * bytes, 4);
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
    at = align(at + CONFIG_BYTES + OFFSETS_BYTES(1) + OFFSETS_BYTES(2), 8);
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
    return align(config_place(c) + CONFIG_BYTES + OFFSETS_BYTES(1) +
                     OFFSETS_BYTES(2),
                 8) +
           24;
}

/* Integers wrap, as they do on the GPU. */
static long double product(enum number_type type, long double a, long double b)
{
    if (number_is_float(type))
        return a * b;
    return (int64_t)((uint64_t)(int64_t)a * (uint64_t)(int64_t)b);
}

static long double combine(const struct compute *c, int form, long double a,
                           long double b)
{
    switch ((enum form)form) {
    case FORM_PRODUCT:
        return product(c->types[0], a, b);
    case FORM_ANY:
        return a || b;
    case FORM_ALL:
        return a && b;
    case FORM_MAX:
        return b > a || isnan(b) ? b : a;
    case FORM_MIN:
        return b < a || isnan(b) ? b : a;
    default:
        return a + b;
    }
}

static void output_store(const struct compute *c, const struct reduction *r,
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
        value = i ? combine(c, FORM_MAX, value, x) : x;
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
        long double next = i ? combine(c, c->form, value, x) : x;
        if (next != value)
            place = i;
        value = next;
    }
    if (c->form == FORM_ANY || c->form == FORM_ALL)
        value = value != 0;
    if (c->form == FORM_MEAN)
        value /= r->config.inputs;
    output_store(c, r, offsets[0], value, place, known || decided);
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
        output_store(c, r, offsets[0], c->form == FORM_ALL,
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
        return COMPUTE_INTEGERS;
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

        if (!strncmp(text, "S", 1) && number_bytes(c->types[1]) == 2 &&
            strchr(text, '_') && !strncmp(strchr(text, '_') + 1, "Li4E", 4)) {
            c->types[0] = c->types[1];
            return true;
        }
        if (name_types(&text, &type, 1) && !strncmp(text, "Li4E", 4)) {
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
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        const struct operation *o = &operations[i];
        const char *text = name_after(name, o->pattern);
        enum number_type types[2];

        if (!text)
            continue;
        c->form = o->form;
        c->layout = o->layout;
        if (o->is_lambda ? name_lambda(text, types, 2) != 2
                         : !name_types(&text, types, 1))
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

/* One running sum or product: COUNT elements, STEP apart. */
static void scan(const struct compute *c, uint64_t out, uint64_t in,
                 uint64_t count, uint64_t step)
{
    const enum number_type *types = c->types;
    bool is_product = c->form == FORM_PRODUCT, known = true;
    long double total = is_product, x;

    for (uint64_t i = 0; i < count; i++) {
        uint64_t at = i * step;

        known &= compute_load(types[1], in + at * number_bytes(types[1]), &x);
        total = is_product ? product(types[0], total, x) : total + x;
        compute_store(types[0], out + at * number_bytes(types[0]), total,
                      known);
    }
}

static bool scan_fits(const struct compute *c, uint64_t out, uint64_t in,
                      uint64_t count)
{
    long double x;

    if (!values_window(out) || !values_window(in))
        return false;
    if (count <= (compute_load(c->types[1], in, &x) ? COMPUTE_INTEGERS
                                                    : COMPUTE_UNKNOWN))
        return true;
    compute_forget(c->types[0], out, count * number_bytes(c->types[0]));
    return false;
}

/* (in, out, tile state, first tile, operation, initial value, count) */
static void run_scan(const struct compute *c,
                     const struct kernel_launch *launch)
{
    uint64_t in = compute_u64(launch, 0), out = compute_u64(launch, 1);
    uint64_t count = compute_u32(launch, 6);

    if (scan_fits(c, out, in, count))
        scan(c, out, in, count, 1);
}

static bool scan_operation(const char *name, struct compute *c)
{
    c->form = strstr(name, "4plusI") ? FORM_SUM : FORM_PRODUCT;
    return c->form == FORM_SUM || strstr(name, "10multipliesI");
}

bool compute_scan_parse(const char *name, struct compute *c)
{
    /* "...PKiPlNS0_13ScanTileState...8NullType": from, to, inclusive; or
     * "...PlS9_NS0_...", thrust's. */
    const char *text = name_after(name, "EPK");
    const char *same = name_after(name, "EPlS");

    c->run = run_scan;
    if (!scan_operation(name, c))
        return false;
    if (same) {
        c->types[0] = c->types[1] = NUMBER_I64;
        return strstr(same, "8NullTypeE");
    }
    return text && name_types(&text, c->types + 1, 1) && *text++ == 'P' &&
           name_types(&text, c->types, 1) && strstr(text, "8NullTypeE");
}

/* The same of a mask, for masked_scatter: how many are true before each. In is
 * an iterator: CUB's has its function first. */
static void run_scan_mask(const struct compute *c,
                          const struct kernel_launch *launch)
{
    uint64_t in, out = compute_u64(launch, 1);
    uint64_t count = compute_u32(launch, 6);
    long double sum = 0, x;
    bool known = true;

    memcpy(&in, (const char *)launch->arguments[0] + c->bytes, sizeof in);
    if (!scan_fits(c, out, in, count))
        return;
    for (uint64_t i = 0; i < count; i++) {
        compute_store(NUMBER_I64, out + 8 * i, sum, known);
        known &= compute_load(NUMBER_BOOL, in + i, &x);
        sum += x != 0;
    }
}

static uint32_t scan_mask_reach(const struct compute *c,
                                const struct kernel_launch *launch, int i)
{
    (void)launch;
    (void)i;
    return c->bytes + 8;
}

bool compute_scan_mask_parse(const char *name, struct compute *c)
{
    c->bytes = strstr(name, "22TransformInputIteratorI") ? 8 : 0;
    c->reach = scan_mask_reach;
    c->run = run_scan_mask;
    c->types[0] = NUMBER_I64;
    c->types[1] = NUMBER_BOOL;
    return strstr(name, "11CountMaskOpE");
}

/* (out, in, rows, columns, ...): along the rows */
static void run_scan_rows(const struct compute *c,
                          const struct kernel_launch *launch)
{
    uint64_t out = compute_u64(launch, 0), in = compute_u64(launch, 1);
    uint64_t rows = compute_u32(launch, 2), columns = compute_u32(launch, 3);
    uint64_t bytes = columns * number_bytes(c->types[0]);

    if (scan_fits(c, out, in, rows * columns))
        for (uint64_t i = 0; i < rows; i++)
            scan(c, out + i * bytes, in + i * bytes, columns, 1);
}

/* (out, in, outer rows, inner rows, elements, ...): along what lies between */
static void run_scan_columns(const struct compute *c,
                             const struct kernel_launch *launch)
{
    uint64_t out = compute_u64(launch, 0), in = compute_u64(launch, 1);
    uint64_t outer = compute_u32(launch, 2), inner = compute_u32(launch, 3);
    uint64_t count = compute_u32(launch, 4);
    uint64_t bytes = number_bytes(c->types[0]);

    if (!scan_fits(c, out, in, outer * inner * count))
        return;
    for (uint64_t o = 0; o < outer; o++)
        for (uint64_t i = 0; i < inner; i++) {
            uint64_t at = (o * count * inner + i) * bytes;

            scan(c, out + at, in + at, count, inner);
        }
}

static bool scan_dim_parse(const char *name, const char *pattern,
                           struct compute *c)
{
    const char *text = name_after(name, pattern);

    if (!text || !name_types(&text, c->types, 1) || !scan_operation(text, c))
        return false;
    c->types[1] = c->types[0];
    return true;
}

bool compute_scan_rows_parse(const char *name, struct compute *c)
{
    c->run = run_scan_rows;
    return scan_dim_parse(name, "32tensor_kernel_scan_innermost_dimI", c);
}

bool compute_scan_columns_parse(const char *name, struct compute *c)
{
    c->run = run_scan_columns;
    /* <T, operation> before 2.8, then <T, index type, operation>. */
    return scan_dim_parse(name, "28tensor_kernel_scan_outer_dimI", c) &&
           strstr(name, "jjjS");
}

/* One running maximum or minimum, of equals the last, and its place: COUNT
 * elements, STEP apart. */
static void extremes(const struct compute *c, const uint64_t *data,
                     uint64_t first, uint64_t count, uint64_t step)
{
    uint32_t bytes = number_bytes(c->types[0]);
    long double best = 0, x;
    uint64_t place = 0;
    bool known = true;

    for (uint64_t i = 0; i < count; i++) {
        uint64_t at = first + i * step;

        known &= compute_load(c->types[0], data[0] + at * bytes, &x);
        if (!i || isnan(x) || (c->form == FORM_MAX ? x >= best : x <= best)) {
            best = x;
            place = i;
        }
        compute_store(c->types[0], data[1] + at * bytes, best, known);
        compute_store(NUMBER_I64, data[2] + 8 * at, (long double)place, known);
    }
}

/* INNER sequences of COUNT elements side by side, OUTER times. */
static void extremes_run(const struct compute *c,
                         const struct kernel_launch *launch, uint64_t outer,
                         uint64_t inner, uint64_t count)
{
    const uint64_t data[] = {compute_u64(launch, 0), compute_u64(launch, 1),
                             compute_u64(launch, 2)};

    if (!values_window(data[2]) ||
        !scan_fits(c, data[1], data[0], outer * inner * count))
        return;
    for (uint64_t o = 0; o < outer; o++)
        for (uint64_t i = 0; i < inner; i++)
            extremes(c, data, o * count * inner + i, count, inner);
}

/* (in, out, places out, rows, columns, ...) */
static void run_extremes_rows(const struct compute *c,
                              const struct kernel_launch *launch)
{
    extremes_run(c, launch, compute_u32(launch, 3), 1, compute_u32(launch, 4));
}

/* (in, out, places out, outer rows, inner rows, elements, ...) */
static void run_extremes_columns(const struct compute *c,
                                 const struct kernel_launch *launch)
{
    extremes_run(c, launch, compute_u32(launch, 3), compute_u32(launch, 4),
                 compute_u32(launch, 5));
}

static bool extremes_parse(const char *text, struct compute *c)
{
    if (!text || !name_types(&text, c->types, 1))
        return false;
    c->types[1] = c->types[0];
    c->form = strstr(text, "13greater_equalI") ? FORM_MAX : FORM_MIN;
    return c->form == FORM_MAX || strstr(text, "10less_equalI");
}

bool compute_extremes_rows_parse(const char *name, struct compute *c)
{
    c->run = run_extremes_rows;
    return extremes_parse(name_after(name, "innermost_dim_with_indicesI"), c);
}

bool compute_extremes_columns_parse(const char *name, struct compute *c)
{
    c->run = run_extremes_columns;
    return extremes_parse(name_after(name, "outer_dim_with_indicesI"), c);
}

/* Of values that are not known each bin gets as many. */
static void histogram_guess(const struct compute *c,
                            const struct kernel_launch *launch, uint64_t out,
                            uint64_t bins, uint64_t count)
{
    if (bins > COMPUTE_INTEGERS)
        return;
    for (uint64_t i = 0; i < bins; i++)
        compute_store(c->types[0], out + i * number_bytes(c->types[0]),
                      count / bins + (i < count % bins), true);
    compute_guess_note(c, launch, count, bins,
                       "a histogram (bincount, histc) of values computed on "
                       "the GPU: taken to be even");
}

/* kernelHistogram1D (TensorInfo<output> a, p, TensorInfo<const input> b,
 * int64_t bins, lowest, highest, count, ...): both contiguous; counts are
 * added. */
static void run_histogram(const struct compute *c,
                          const struct kernel_launch *launch)
{
    uint64_t out = compute_u64(launch, 0), in = compute_u64(launch, 2);
    int64_t bins = (int64_t)compute_u64(launch, 3);
    long double low = number_load(c->scalar, launch->arguments[4]);
    long double high = number_load(c->scalar, launch->arguments[5]);
    uint64_t count = compute_u64(launch, 6);
    uint32_t bytes = number_bytes(c->types[0]);
    long double x, old;

    if (bins <= 0 || !(low < high) || !values_window(out) || !values_window(in))
        return;
    if (count > COMPUTE_INTEGERS ||
        !values_known(in, count * number_bytes(c->types[1]))) {
        histogram_guess(c, launch, out, (uint64_t)bins, count);
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        compute_load(c->types[1], in + i * number_bytes(c->types[1]), &x);
        if (x < low || x > high)
            continue;
        uint64_t bin = (uint64_t)((x - low) * bins / (high - low));
        if (bin == (uint64_t)bins)
            bin--;
        bool known = compute_load(c->types[0], out + bin * bytes, &old);
        compute_store(c->types[0], out + bin * bytes, old + 1, known);
    }
}

/* The lambda holds the TensorInfo<T, int64_t> of the weights, which are of the
 * output's type: T *data; int64_t sizes[25], strides[25]; int dims. */
#define WEIGHTS_STRIDE (8 + 8 * OFFSETS_DIMS)
#define WEIGHTS_BYTES  (WEIGHTS_STRIDE + 8)

static void weight_add(const struct compute *c, uint64_t out, uint64_t weight)
{
    long double x, old;
    bool known = compute_load(c->types[0], weight, &x);

    known &= compute_load(c->types[0], out, &old);
    compute_store(c->types[0], out, old + x, known);
}

/* bincount with weights: of integers, bins are one wide. */
static void run_histogram_weighted(const struct compute *c,
                                   const struct kernel_launch *launch)
{
    uint64_t out = compute_u64(launch, 0), in = compute_u64(launch, 2);
    uint64_t bins = compute_u64(launch, 3), count = compute_u64(launch, 6);
    int64_t low = (int64_t)number_load(c->scalar, launch->arguments[4]);
    const char *info = launch->arguments[7];
    uint32_t bytes = number_bytes(c->types[0]);
    uint64_t weights = compute_u64(launch, 7), stride;
    long double x;

    memcpy(&stride, info + WEIGHTS_STRIDE, sizeof stride);
    if (bins > VALUES_COPY_BYTES)
        return;
    if (count > COMPUTE_CHECKED || number_is_float(c->types[1]) ||
        !values_window(weights) || !values_window(in) ||
        !values_known(in, count * number_bytes(c->types[1]))) {
        compute_forget(c->types[0], out, bins * bytes);
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        compute_load(c->types[1], in + i * number_bytes(c->types[1]), &x);
        if (x >= low && x < low + (int64_t)bins)
            weight_add(c, out + (uint64_t)((int64_t)x - low) * bytes,
                       weights + i * stride * bytes);
    }
}

static uint32_t histogram_reach(const struct compute *c,
                                const struct kernel_launch *launch, int i)
{
    (void)launch;
    if (i == 7)
        return c->form ? WEIGHTS_BYTES : 0;
    return number_bytes(c->scalar);
}

bool compute_histogram_parse(const char *name, struct compute *c)
{
    const char *text = name_after(name, "17kernelHistogram1DI");

    c->run = run_histogram;
    c->reach = histogram_reach;
    /* <output_t, input_t, int64_t, ...>; the second lambda counts, the first
     * adds weights. */
    if (!text || !name_types(&text, c->types, 2) || *text != 'l')
        return false;
    c->form = !strstr(text, "EUllE0_");
    if (c->form)
        c->run = run_histogram_weighted;
    c->scalar =
        number_is_float(c->types[1]) ? number_opmath(c->types[1]) : NUMBER_I64;
    return true;
}
