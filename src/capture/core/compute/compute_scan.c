/* SPDX-License-Identifier: Apache-2.0
 * Running sums, products and extremes: ScanUtils.cuh, CUB's DeviceScan. */
#include <math.h>
#include <string.h>

#include "capture/core/compute/compute_name.h"
#include "capture/core/compute/compute_operation.h"
#include "capture/core/compute/compute_reduce.h"
#include "capture/core/memory/values.h"

/* Elements that are written of a tensor that is the same all over. */
#define SCAN_CONSTANT (UINT64_C(16) << 20)

/* One running sum or product: COUNT elements, STEP apart. */
static void scan_row(const struct compute *c, uint64_t out, uint64_t in,
                     uint64_t count, uint64_t step)
{
    const enum number_type *types = c->types;
    bool is_product = c->form == FORM_PRODUCT, known = true;
    long double total = is_product, x;

    for (uint64_t i = 0; i < count; i++) {
        uint64_t at = i * step;

        known &= compute_load(types[1], in + at * number_bytes(types[1]), &x);
        total = is_product ? number_product(types[0], total, x)
                           : number_sum(types[0], total, x);
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
    if (!compute_load(c->types[1], in, &x))
        return count <= COMPUTE_UNKNOWN;
    return count <= (number_is_float(c->types[1]) ? COMPUTE_INTEGERS
                                                  : COMPUTE_REDUCED);
}

/* INNER sequences of COUNT elements side by side, OUTER times. */
struct lines {
    uint64_t outer, count, inner;
};

static uint64_t lines_total(const struct lines *l)
{
    return l->outer * l->count * l->inner;
}

/* The running sums or products of a sequence of X, for all lines. */
static void lines_store(const struct compute *c, char *to,
                        const struct lines *l, long double x)
{
    uint32_t bytes = number_bytes(c->types[0]);
    bool is_product = c->form == FORM_PRODUCT;

    for (uint64_t o = 0; o < l->outer; o++) {
        long double total = is_product;

        for (uint64_t k = 0; k < l->count; k++) {
            total = is_product ? number_product(c->types[0], total, x)
                               : number_product(c->types[0], k + 1, x);
            for (uint64_t i = 0; i < l->inner; i++, to += bytes)
                number_store(c->types[0], to, total);
        }
    }
}

/* Of a tensor that is the same all over: a mask of samples of sound, whose
 * running sum has its length. */
static bool scan_constant(const struct compute *c, uint64_t out, uint64_t in,
                          const struct lines *l)
{
    uint64_t total = lines_total(l);
    uint32_t unit = number_bytes(c->types[1]);
    uint32_t bytes = number_bytes(c->types[0]);
    unsigned char value[16];
    unsigned char mark = values_constant(in, total * unit, unit, value);

    if (!mark || !bytes)
        return false;
    long double x = number_load(c->types[1], value);
    bool is_product = c->form == FORM_PRODUCT;
    if (x == 0 || (is_product && x == 1)) {
        number_store(c->types[0], value, x);
        values_fill_as(out, value, bytes, total, mark);
        return true;
    }
    char *to = total <= SCAN_CONSTANT
                   ? values_write_as(out, total * bytes, mark)
                   : NULL;
    if (to)
        lines_store(c, to, l, x);
    return to;
}

static void lines_scan(const struct compute *c, uint64_t out, uint64_t in,
                       const struct lines *l)
{
    uint64_t total = lines_total(l);
    uint32_t bytes = number_bytes(c->types[0]);

    if (total > COMPUTE_UNKNOWN && scan_constant(c, out, in, l))
        return;
    if (!scan_fits(c, out, in, total)) {
        compute_forget(c->types[0], out, total * bytes);
        return;
    }
    for (uint64_t o = 0; o < l->outer; o++)
        for (uint64_t i = 0; i < l->inner; i++) {
            uint64_t first = o * l->count * l->inner + i;

            scan_row(c, out + first * bytes,
                     in + first * number_bytes(c->types[1]), l->count,
                     l->inner);
        }
}

/* (in, out, tile state, first tile, operation, initial value, count) */
static void run_scan(const struct compute *c,
                     const struct kernel_launch *launch)
{
    const struct lines lines = {1, compute_u32(launch, 6), 1};

    lines_scan(c, compute_u64(launch, 1), compute_u64(launch, 0), &lines);
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
    if (!scan_fits(c, out, in, count)) {
        compute_forget(NUMBER_I64, out, 8 * count);
        return;
    }
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
    const struct lines lines = {compute_u32(launch, 2), compute_u32(launch, 3),
                                1};

    lines_scan(c, compute_u64(launch, 0), compute_u64(launch, 1), &lines);
}

/* (out, in, outer rows, inner rows, elements, ...): along what lies between */
static void run_scan_columns(const struct compute *c,
                             const struct kernel_launch *launch)
{
    const struct lines lines = {compute_u32(launch, 2), compute_u32(launch, 4),
                                compute_u32(launch, 3)};

    lines_scan(c, compute_u64(launch, 0), compute_u64(launch, 1), &lines);
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
static void scan_extremes(const struct compute *c, const uint64_t *data,
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

static void extremes_run(const struct compute *c,
                         const struct kernel_launch *launch,
                         const struct lines *l)
{
    const uint64_t data[] = {compute_u64(launch, 0), compute_u64(launch, 1),
                             compute_u64(launch, 2)};
    uint64_t total = lines_total(l);

    if (!values_window(data[2]) || !scan_fits(c, data[1], data[0], total)) {
        compute_forget(c->types[0], data[1], total * number_bytes(c->types[0]));
        compute_forget(NUMBER_I64, data[2], total * 8);
        return;
    }
    for (uint64_t o = 0; o < l->outer; o++)
        for (uint64_t i = 0; i < l->inner; i++)
            scan_extremes(c, data, o * l->count * l->inner + i, l->count,
                          l->inner);
}

/* (in, out, places out, rows, columns, ...) */
static void run_extremes_rows(const struct compute *c,
                              const struct kernel_launch *launch)
{
    const struct lines lines = {compute_u32(launch, 3), compute_u32(launch, 4),
                                1};

    extremes_run(c, launch, &lines);
}

/* (in, out, places out, outer rows, inner rows, elements, ...) */
static void run_extremes_columns(const struct compute *c,
                                 const struct kernel_launch *launch)
{
    const struct lines lines = {compute_u32(launch, 3), compute_u32(launch, 5),
                                compute_u32(launch, 4)};

    extremes_run(c, launch, &lines);
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
