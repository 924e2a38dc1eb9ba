/* SPDX-License-Identifier: Apache-2.0
 * An allocator's memory at one moment: used blocks, cached blocks, and why the
 * cached ones cannot serve a request. */
#ifndef MEMSIM_MEMSIM_REPLAY_FRAGMENTS_H
#define MEMSIM_MEMSIM_REPLAY_FRAGMENTS_H

#include "memsim/alloc/alloc.h"

/* One pool and stream. */
struct fragments_group {
    struct alloc_pool_id pool;
    bool small;
    uint64_t stream;
    uint64_t allocated_bytes;
    uint64_t waiting_bytes; /* freed, but a stream still uses them */
    uint64_t cached_bytes;
    uint64_t largest_cached_bytes; /* of one block */
    uint64_t segments, blocks;
};

/* Why a cached block cannot serve the request. */
enum fragments_reason {
    FRAGMENTS_OTHER_POOL,
    FRAGMENTS_OTHER_STREAM,
    FRAGMENTS_REMAINDER, /* too small: the rest of a segment in use */
    FRAGMENTS_TOO_SMALL, /* too small: a whole segment */
    FRAGMENTS_OVERSIZE,  /* max_split_size_mb forbids the use */
    FRAGMENTS_WAITING,   /* waits for a stream */
    FRAGMENTS_REASONS
};

struct fragments_sum {
    uint64_t bytes, largest_bytes, blocks;
};

struct fragments_segment {
    uint64_t address, bytes, stream;
    struct alloc_pool_id pool;
    bool small, expandable;
    uint64_t allocated_bytes, largest_cached_bytes, blocks;
    char map[33]; /* '#' used, '.' cached, '+' both, each 1/32 */
};

struct fragments_request {
    uint64_t bytes; /* 0: none */
    uint64_t stream;
    struct alloc_pool_id pool;
};

struct fragments { /* zeroed: empty */
    struct fragments_request request;
    struct fragments_sum reasons[FRAGMENTS_REASONS];
    struct fragments_group *groups; /* by pool, size, stream */
    size_t group_count, group_capacity;
    struct fragments_segment *segments; /* by address */
    size_t segment_count, segment_capacity;
};

/* Fills F from A with the settings CONF, for REQUEST. */
void fragments_collect(struct fragments *f, const struct alloc *a,
                       const struct alloc_conf *conf,
                       const struct fragments_request *request);
void fragments_fini(struct fragments *f);

/* "split_remainder", "other_stream", ...: the name in the JSON. */
const char *fragments_reason_name(enum fragments_reason reason);

/* "remainders of segments in use", ...: the text for reports. */
const char *fragments_reason_text(enum fragments_reason reason);

#endif
