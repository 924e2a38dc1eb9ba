/* SPDX-License-Identifier: Apache-2.0
 * The shapes that a profiler's trace has: of each operator by its External id,
 * which its kernels have as well. */
#ifndef MEMSIM_SHAPES_SHAPES_H
#define MEMSIM_SHAPES_SHAPES_H

#include "common/base/map.h"
#include "common/profile/kineto_read.h"
#include "common/trace/trace.h"
#include "kernels/operator.h"

struct shapes_operator;

/* Zeroed, it is empty. */
struct shapes {
    struct shapes_operator *operators;
    size_t count, capacity;
    struct map by_id; /* index + 1 */
    char **texts;
    size_t text_count, text_capacity;
    struct map text_ids; /* index + 1 */
    struct map kernels;  /* struct work_kernel by the name's id + 1 */
};

/* Keeps E, an operator, where it has shapes. */
void shapes_add(struct shapes *s, const struct profile_event *e);

/* To be told each kernel, with its operator's External id (or KINETO_NONE),
 * before the first one is described. */
void shapes_note(struct shapes *s, int64_t external_id, const char *kernel);

/* Sets the rule and the words of LAUNCH, whose grid and block are set, of the
 * kernel NAME; kernels come in their order. Returns false where nothing is
 * known of it. */
bool shapes_describe(struct shapes *s, int64_t external_id, const char *name,
                     struct trace_launch *launch);

/* Keeps WORK, what memsim's own export says of a kernel: the rule and the words
 * of its launch. Returns its number. */
uint32_t shapes_keep(struct shapes *s, const char *work);

/* The same as shapes_describe, by the WORK of that number. */
bool shapes_told(struct shapes *s, uint32_t work, const char *name,
                 struct trace_launch *launch);

void shapes_fini(struct shapes *s);

#endif
