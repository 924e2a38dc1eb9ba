/* SPDX-License-Identifier: Apache-2.0
 * A launch of a reduction (Reduce.cuh). compute_reduce.c reads and runs it. */
#ifndef MEMSIM_CAPTURE_CORE_COMPUTE_COMPUTE_REDUCE_H
#define MEMSIM_CAPTURE_CORE_COMPUTE_COMPUTE_REDUCE_H

#include "capture/core/compute/compute.h"

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

/* What a reduction of FORM makes of two numbers. */
long double reduce_combine(const struct compute *c, int form, long double a,
                           long double b);

/* Stores what an output at OFFSET is, and the PLACE that it is at. */
void reduce_store(const struct compute *c, const struct reduction *r,
                  uint64_t offset, long double value, uint64_t place,
                  bool known);

/* Carries R out where its input is the same number all over, of any size. */
bool reduce_constant(const struct compute *c, const struct reduction *r);

#endif
