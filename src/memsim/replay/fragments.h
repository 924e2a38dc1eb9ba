/* SPDX-License-Identifier: Apache-2.0
 * Where an allocator's memory is at one moment: used, cached, and why what is
 * cached cannot serve a request. */
#ifndef MEMSIM_MEMSIM_FRAGMENTS_H
#define MEMSIM_MEMSIM_FRAGMENTS_H

#include "memsim/alloc/alloc.h"

/* One pool and stream. */
struct fragments_group {
    struct alloc_pool_id pool;
    bool small;
    uint64_t stream;
    uint64_t allocated_bytes;
    uint64_t waiting_bytes; /* freed, but a stream still uses them */
    uint64_t cached_bytes;
    uint64_t largest_cached_bytes; /* in one piece */
    uint64_t segments, blocks;
};

/* Why a cached block cannot serve the request. */
enum fragments_reason {
    FRAGMENTS_OTHER_POOL,
    FRAGMENTS_OTHER_STREAM,
    FRAGMENTS_REMAINDER, /* of a segment in use, and too small */
    FRAGMENTS_TOO_SMALL, /* a whole segment */
    FRAGMENTS_OVERSIZE,  /* max_split_size_mb keeps them apart */
    FRAGMENTS_WAITING,   /* for a stream */
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

/* Looks at A under CONF, as a REQUEST sees it. */
void fragments_collect(struct fragments *f, const struct alloc *a,
                       const struct alloc_conf *conf,
                       const struct fragments_request *request);
void fragments_fini(struct fragments *f);

/* "split_remainder", "other_stream", ...: as the JSON has it. */
const char *fragments_reason_name(enum fragments_reason reason);

/* "remainders of segments in use", ...: for people. */
const char *fragments_reason_text(enum fragments_reason reason);

#endif
