/* SPDX-License-Identifier: Apache-2.0
 * Records of a trace kept in memory, for a second pass without reading the
 * trace again. A program's steps repeat the same records: each is kept once,
 * without its time, and each repetition takes about 4 bytes. */
#ifndef MEMSIM_COMMON_TRACE_TRACE_KEPT_H
#define MEMSIM_COMMON_TRACE_TRACE_KEPT_H

#include <stdbool.h>

#include "common/trace/trace_read.h"

struct trace_kept;

/* Keeps at most MOST_BYTES. */
struct trace_kept *trace_kept_create(size_t most_bytes);
void trace_kept_destroy(struct trace_kept *k); /* NULL is fine */

/* Adds ITEM, whose ordinal and time are not below those of the last. If the
 * records exceed the limit, all are dropped and no more are added. */
void trace_kept_add(struct trace_kept *k, const struct trace_item *item);

/* Whether all records that were added are still kept. */
bool trace_kept_is_whole(const struct trace_kept *k);

/* The memory that it uses, in bytes. */
size_t trace_kept_bytes(const struct trace_kept *k);

/* Iterates over the records in order. Each is as it was added, and is valid
 * until the next call. The cursor starts zeroed. False at the end. */
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
