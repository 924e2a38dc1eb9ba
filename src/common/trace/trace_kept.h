/* SPDX-License-Identifier: Apache-2.0
 * Records of a trace kept in memory, to be gone through again without reading
 * the trace a second time. Steps of a program repeat each other: each record is
 * kept once, without its time, and its repetitions are some 4 bytes each. */
#ifndef MEMSIM_COMMON_TRACE_KEPT_H
#define MEMSIM_COMMON_TRACE_KEPT_H

#include <stdbool.h>

#include "common/trace/trace_read.h"

struct trace_kept;

/* At most MOST_BYTES are kept. */
struct trace_kept *trace_kept_create(size_t most_bytes);
void trace_kept_destroy(struct trace_kept *k); /* NULL is fine */

/* Adds ITEM, whose ordinal and time are not below those of the last. Once the
 * records are too many, all are dropped, and more are not taken. */
void trace_kept_add(struct trace_kept *k, const struct trace_item *item);

/* Whether all records that were added are there. */
bool trace_kept_is_whole(const struct trace_kept *k);

/* What it takes. */
size_t trace_kept_bytes(const struct trace_kept *k);

/* Goes through the records in their order; each is as it was added, and is the
 * cursor's until the next. The cursor begins zeroed. False at the end. */
struct trace_kept_cursor {
    size_t block, at; /* of the next */
    uint64_t time_ns, ordinal;
    uint32_t thread;
    unsigned written; /* of FIELDS: those behind are 0 */
    uint64_t fields[TRACE_FIELDS_MAX];
};

bool trace_kept_next(const struct trace_kept *k, struct trace_kept_cursor *at,
                     struct trace_item *item);

#endif
