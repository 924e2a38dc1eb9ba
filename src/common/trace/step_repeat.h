/* SPDX-License-Identifier: Apache-2.0
 * How many calls of outermost modules make what a program repeats: three where
 * a step calls a model three times, 64 where it generates 64 tokens. */
#ifndef MEMSIM_COMMON_TRACE_STEP_REPEAT_H
#define MEMSIM_COMMON_TRACE_STEP_REPEAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/trace/trace_read.h"

/* One mark for each call: of its module, of the kinds of its work in their
 * order, and of how often something was copied to the card since the call
 * before. Sizes, which change with the length of a text, are not in it. Zeroed:
 * no call. */
struct step_repeat {
    uint64_t *marks;
    size_t count, capacity;
    uint64_t copies; /* since the last call */
};

/* A call of MODULE begins. */
void step_repeat_begin(struct step_repeat *r, uint64_t module);
/* The next record; INSIDE: the call has not ended. */
void step_repeat_take(struct step_repeat *r, const struct trace_item *item,
                      bool inside);

/* How many calls are repeated, 1: nothing but single calls is. All calls from
 * *FIRST on are whole repetitions, of which the first ones may have had more to
 * do; those before it are a warm-up. */
size_t step_repeat_find(const struct step_repeat *r, size_t *first);

void step_repeat_fini(struct step_repeat *r);

#endif
