/* SPDX-License-Identifier: Apache-2.0
 * gcd and lcm: GcdLcmKernel.cu. PyTorch compiles their kernels when they are
 * first used (CUDAJitLoops.cuh, jit_utils.cpp), all by the same names, so that
 * only the parameters in the source say what the arguments are. */
#include <stdlib.h>
#include <string.h>

#include "capture/core/compute/compute.h"
#include "capture/core/compute/compute_loop.h"
#include "capture/core/work/kernel.h"
#include "common/base/text_begins.h"

enum layout {
    LAYOUT_DENSE,   /* (int n, functor, array<char *, m>, ...) */
    LAYOUT_STRIDED, /* (int n, closure of OffsetCalculator, array, functor) */
};

static uint64_t greatest_divisor(long double a, long double b)
{
    uint64_t x = (uint64_t)llabs((int64_t)a), y = (uint64_t)llabs((int64_t)b);

    while (x) {
        uint64_t rest = y % x;

        y = x;
        x = rest;
    }
    return y;
}

static long double operation_gcd(long double a, long double b, int v)
{
    (void)v;
    return greatest_divisor(a, b);
}

/* Modulo 2^64, as the kernel's. */
static long double operation_lcm(long double a, long double b, int v)
{
    int64_t g = (int64_t)greatest_divisor(a, b);

    (void)v;
    return g ? llabs((int64_t)((uint64_t)((int64_t)a / g) *
                               (uint64_t)(int64_t)b))
             : 0;
}

/* OffsetCalculator of IN and OUT, whose strides count elements, as one of the
 * output's and the inputs' bytes. */
static void offsets_join(const struct loop *l, const char *in, const char *out,
                         char *joined)
{
    const uint32_t strides = 4 + 12 * OFFSETS_DIMS;

    memcpy(joined, in, strides);
    for (uint32_t i = 0; i < OFFSETS_DIMS; i++) {
        uint32_t stride[3];

        memcpy(stride, out + strides + 4 * i, 4);
        memcpy(stride + 1, in + strides + 8 * i, 8);
        for (int j = 0; j < 3; j++)
            stride[j] *= number_bytes(l->types[j]);
        memcpy(joined + strides + sizeof stride * i, stride, sizeof stride);
    }
}

/* (int count, {out, a, b}, calculator of the inputs, of the output, types of
 * the inputs, of the output, ...); vectorized only the first two. */
static void run_divisor(const struct compute *c,
                        const struct kernel_launch *launch)
{
    char offsets[OFFSETS_BYTES(3)];
    struct loop l = {
        .compute = c, .count = compute_u32(launch, 0), .inputs = 2};

    memcpy(l.types, c->types, sizeof l.types);
    memcpy(l.data, launch->arguments[1], 3 * sizeof *l.data);
    if (c->is_cast) {
        const unsigned char *types = launch->arguments[4];

        l.types[0] = *(const unsigned char *)launch->arguments[5];
        l.types[1] = types[0];
        l.types[2] = types[1];
    }
    if (c->layout == LAYOUT_STRIDED) {
        if (!compute_offsets_valid(launch->arguments[2]))
            return;
        offsets_join(&l, launch->arguments[2], launch->arguments[3], offsets);
        l.offsets = offsets;
    }
    loop_run(&l, launch);
}

static uint32_t divisor_reach(const struct compute *c,
                              const struct kernel_launch *launch, int i)
{
    (void)launch;
    switch (i) {
    case 2:
        return c->layout == LAYOUT_STRIDED ? OFFSETS_BYTES(2) : 0;
    case 3:
        return c->layout == LAYOUT_STRIDED ? OFFSETS_BYTES(1) : 0;
    case 4:
        return c->is_cast ? 2 : 0;
    default:
        return c->is_cast;
    }
}

/* "..., int64_t scalar_val": the last parameter has the numbers' type. */
static enum number_type scalar_type(const char *parameters)
{
    static const struct spelling {
        const char *text;
        enum number_type type;
    } spellings[] = {
        {"int64_t scalar_val", NUMBER_I64}, {"int scalar_val", NUMBER_I32},
        {"int16_t scalar_val", NUMBER_I16}, {"short scalar_val", NUMBER_I16},
        {"uint8_t scalar_val", NUMBER_U8},  {"int8_t scalar_val", NUMBER_I8},
    };

    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++)
        if (strstr(parameters, spellings[i].text))
            return spellings[i].type;
    return NUMBER_NONE;
}

bool compute_divisor_parse(const char *name, struct compute *c)
{
    const char *parameters = kernel_declared(name);

    if ((!text_begins(name, "gcd_") && !text_begins(name, "lcm_")) ||
        !parameters)
        return false;
    c->operation = *name == 'g' ? operation_gcd : operation_lcm;
    c->form = FORM_BINARY;
    c->layout = strstr(parameters, " OffsetCalculator<2>") ? LAYOUT_STRIDED
                                                           : LAYOUT_DENSE;
    c->is_cast = strstr(parameters, "LoadWithCast");
    c->types[0] = c->types[1] = c->types[2] = scalar_type(parameters);
    c->count = 3;
    c->run = run_divisor;
    c->reach = divisor_reach;
    return c->types[0] != NUMBER_NONE;
}
