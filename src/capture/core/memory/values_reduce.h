/* SPDX-License-Identifier: Apache-2.0
 * Reductions of numbers, some of which are known: what several ranks hold
 * becomes a sum. */
#ifndef MEMSIM_CAPTURE_CORE_MEMORY_VALUES_REDUCE_H
#define MEMSIM_CAPTURE_CORE_MEMORY_VALUES_REDUCE_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/core/base/core.h"

enum reduce_kind { REDUCE_SUM, REDUCE_PROD, REDUCE_MAX, REDUCE_MIN };

struct reduction {
    enum reduce_kind kind;
    int type;      /* enum number_type; NUMBER_NONE: nothing is known */
    uint32_t bytes; /* of an element */
    double scale;  /* each number is multiplied by it first */
    uint64_t count;
};

/* Numbers and their marks (values.h) of what stands for WEIGHT ranks. */
struct reduce_side {
    void *data;
    unsigned char *marks;
    uint64_t weight;
};

/* INTO becomes the reduction of its own ranks. */
CORE_API void memsim_reduce_first(const struct reduction *r,
                                  const struct reduce_side *into);

/* ... and of FROM's. What is not known of one is not known of the result. */
CORE_API void memsim_reduce_next(const struct reduction *r,
                                 const struct reduce_side *into,
                                 const struct reduce_side *from);

/* Divides INTO, for averages. */
CORE_API void memsim_reduce_divide(const struct reduction *r,
                                   const struct reduce_side *into,
                                   uint64_t by);

/* The number of TYPE at FROM, in the host's memory. */
CORE_API double memsim_reduce_number(int type, const void *from);

#endif
