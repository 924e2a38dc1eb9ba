/* SPDX-License-Identifier: Apache-2.0
 * arange, range, linspace and logspace: RangeFactories.cu. Models read the
 * latter back: timm's drop path rates decide which modules there are. */
#include "capture/core/compute/compute.h"
#include "capture/core/compute/compute_math.h"
#include "capture/core/compute/compute_name.h"
#include "capture/core/memory/values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What the lambda holds: {scalar start, end; int64_t steps; scalar step;
 * int64_t halfway}, each at a multiple of its size. */
struct closure {
    uint32_t end, steps, step, bytes;
};

static struct closure closure_of(enum number_type type)
{
    uint32_t scalar = number_bytes(type);
    uint32_t steps = (2 * scalar + 7) & ~7u;

    return (struct closure){scalar, steps, steps + 8, steps + 24};
}

/* X as a number of TYPE. */
static long double round_to_type(enum number_type type, long double x)
{
    char number[16];

    number_store(type, number, x);
    return number_load(type, number);
}

static bool is_half(enum number_type type)
{
    return type == NUMBER_F16 || type == NUMBER_BF16;
}

/* The type of the step at AT, which is about STEP. That of integers is a float,
 * that of 16-bit numbers one in newer versions (2.15); before, two bytes and
 * two of padding. */
static enum number_type step_type(enum number_type type, const char *at,
                                  long double step)
{
    long double wide = is_half(type) ? number_load(NUMBER_F32, at) : 0;

    if (!number_is_float(type))
        return NUMBER_F32;
    return is_half(type) && fabsl(wide - step) <= fabsl(step) / 128 ? NUMBER_F32
                                                                    : type;
}

/* FROM + STEP * I as the GPU computes it with a step of type BY: with one
 * rounding, but where that is of 16 bits: c10::Half rounds after each
 * operation. */
static long double move_from(enum number_type by, long double from,
                             long double step, uint64_t i)
{
    long double distance = step * (long double)i;

    return is_half(by) ? from + round_to_type(by, distance)
                       : round_to_type(by, from + distance);
}

/* (index_t n, closure, scalar_t *out) */
static void run_linspace(const struct compute *c,
                         const struct kernel_launch *launch)
{
    uint64_t count = compute_u32(launch, 0), out = compute_u64(launch, 2);
    const char *closure = launch->arguments[1];
    struct closure at = closure_of(c->scalar);
    uint32_t bytes = number_bytes(c->scalar);
    long double start = number_load(c->scalar, closure);
    long double end = number_load(c->scalar, closure + at.end);
    uint64_t steps = (uint64_t)number_load(NUMBER_I64, closure + at.steps);
    enum number_type by = step_type(c->scalar, closure + at.step,
                                    (end - start) / (long double)(steps - 1));
    long double step = number_load(by, closure + at.step);
    char *to = count > COMPUTE_INTEGERS || steps != count
                   ? NULL
                   : values_write(out, count * bytes, true);

    if (!to) {
        memsim_values_forget(out, count * bytes);
        return;
    }
    for (uint64_t i = 0; i < count; i++)
        number_store(c->scalar, to + i * bytes,
                     i < steps / 2 ? move_from(by, start, step, i)
                                   : move_from(by, end, -step, steps - i - 1));
}

static uint32_t linspace_reach(const struct compute *c,
                               const struct kernel_launch *launch, int i)
{
    (void)launch;
    (void)i;
    return closure_of(c->scalar).bytes;
}

/* logspace's lambda holds {scalar start, end; base; int64_t steps; step;
 * int64_t halfway}; base and step are floats for integers. */
static void run_logspace(const struct compute *c,
                         const struct kernel_launch *launch)
{
    uint64_t count = compute_u32(launch, 0), out = compute_u64(launch, 2);
    const char *closure = launch->arguments[1];
    uint32_t bytes = number_bytes(c->scalar);
    enum number_type base_type =
        number_is_float(c->scalar) ? c->scalar : NUMBER_F32;
    uint32_t unit = number_bytes(base_type);
    uint32_t base_at = (2 * bytes + unit - 1) / unit * unit;
    uint32_t steps_at = (base_at + unit + 7) & ~7u;
    long double start = number_load(c->scalar, closure);
    long double end = number_load(c->scalar, closure + bytes);
    long double base = number_load(base_type, closure + base_at);
    uint64_t steps = (uint64_t)number_load(NUMBER_I64, closure + steps_at);
    bool fits = count <= (number_is_float(c->scalar) ? COMPUTE_CHECKED
                                                     : COMPUTE_INTEGERS);

    if (!fits || steps != count || steps < 2 || base <= 0) {
        compute_forget(c->scalar, out, count * bytes);
        return;
    }
    for (uint64_t i = 0; i < count; i++)
        compute_store(
            c->scalar, out + i * bytes,
            round_to_type(base_type,
                          math_power(base,
                                     start + (end - start) * (long double)i /
                                                 (long double)(steps - 1),
                                     0)),
            true);
}

static uint32_t logspace_reach(const struct compute *c,
                               const struct kernel_launch *launch, int i)
{
    return linspace_reach(c, launch, i) + 8;
}

/* The second lambda of linspace_cuda_out is that of floating types: double,
 * float, two complex ones, Half, BFloat16, in the order of the dispatch. The
 * first is that of integers. */
bool compute_linspace_parse(const char *name, struct compute *c)
{
    static const enum number_type order[] = {NUMBER_F64,  NUMBER_F32,
                                             NUMBER_NONE, NUMBER_NONE,
                                             NUMBER_F16,  NUMBER_BF16};
    const char *text = name_after(name, "17linspace_cuda_out");
    const char *log = name_after(name, "17logspace_cuda_out");
    unsigned long ordinal;

    c->run = log ? run_logspace : run_linspace;
    c->reach = log ? logspace_reach : linspace_reach;
    text = log ? log : text;
    const char *type = text ? name_after(text, "NKUlvE0_clEvENKUlvE") : NULL;
    if (!text)
        return false;
    c->scalar = name_dispatched(text);
    if (!type)
        return c->scalar != NUMBER_NONE && !number_is_float(c->scalar);
    ordinal = *type == '_' ? 0 : 1 + strtoul(type, NULL, 10);
    c->scalar =
        ordinal < sizeof order / sizeof *order ? order[ordinal] : NUMBER_NONE;
    return c->scalar != NUMBER_NONE;
}

/* RangeFactories.cu: (index_t n, closure{start, step}, scalar_t *out), with
 * both in at::acc_type: int64_t of integers, double of double, else float. */
static void run_arange(const struct compute *c,
                       const struct kernel_launch *launch)
{
    uint64_t count = compute_u32(launch, 0);
    const char *closure = launch->arguments[1];
    uint64_t out = compute_u64(launch, 2);
    uint32_t bytes = number_bytes(c->types[0]);
    long double start = number_load(c->scalar, closure);
    long double step =
        number_load(c->scalar, closure + number_bytes(c->scalar));

    char *to = count > COMPUTE_INTEGERS
                   ? NULL
                   : values_write(out, count * bytes, true);

    if (!to) {
        memsim_values_forget(out, count * bytes);
        return;
    }
    if (c->types[0] == NUMBER_I64) { /* most of them */
        int64_t *numbers = (int64_t *)to;

        for (uint64_t i = 0; i < count; i++)
            numbers[i] = (int64_t)start + (int64_t)step * (int64_t)i;
        return;
    }
    for (uint64_t i = 0; i < count; i++)
        number_store(c->types[0], to + i * bytes,
                     start + step * (long double)i);
}

static uint32_t arange_reach(const struct compute *c,
                             const struct kernel_launch *launch, int i)
{
    (void)launch;
    (void)i;
    return 2 * number_bytes(c->scalar);
}

bool compute_arange_parse(const char *name, struct compute *c)
{
    const char *text = name_after(name, "15arange_cuda_out");

    if (!text)
        text = name_after(name, "14range_cuda_out");
    c->types[0] = text ? name_dispatched(text) : NUMBER_NONE;
    if (text && strstr(text, "NKUlvE6_"))
        c->types[0] = NUMBER_F16;
    else if (text && strstr(text, "NKUlvE7_"))
        c->types[0] = NUMBER_BF16;
    if (c->types[0] == NUMBER_NONE)
        return false;
    c->scalar = number_is_float(c->types[0]) ? number_opmath(c->types[0])
                                             : NUMBER_I64;
    c->run = run_arange;
    c->reach = arange_reach;
    return true;
}
