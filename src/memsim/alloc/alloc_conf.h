/* SPDX-License-Identifier: Apache-2.0
 * What a user set in PYTORCH_CUDA_ALLOC_CONF, and which rules the PyTorch
 * version at hand follows. */
#ifndef MEMSIM_MEMSIM_ALLOC_ALLOC_CONF_H
#define MEMSIM_MEMSIM_ALLOC_ALLOC_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

enum { ALLOC_ROUNDUP_INTERVALS = 16 }; /* powers of two, 1 MiB to 32 GiB */

enum alloc_age { ALLOC_AGE_NONE, ALLOC_AGE_BLOCK, ALLOC_AGE_SEGMENT };

/* Behaviour that changed between releases: one row a release, in alloc_conf.c,
 * with the change that is behind each column. */
struct alloc_rules {
    unsigned major, minor;          /* from this release on */
    bool non_split_rounding_option; /* max_non_split_rounding_mb is known */
    bool large_segment_option;      /* large_segment_size_mb is known */
    bool fraction_option;           /* per_process_memory_fraction is known */
    bool rest_excludes_last; /* ">" of roundup_power2_divisions: above the last
                                interval named, not from it on */
    bool fraction_1_means_unlimited; /* otherwise it means all of the GPU */
    bool newest_capture_first;       /* of several underway, for a stream */
    bool own_pool_expands;           /* expandable segments in a MemPool with an
                                        allocator of its own */
    bool pool_is_fallback;           /* MemPool(use_on_oom=True) */
    bool fallback_is_last;           /* tried after the cache was released */
    bool fallback_expands;           /* their expandable segments count, too */
    bool pool_is_unsplit;            /* MemPool(no_split=True) */
    bool flush_spares_captures; /* empty_cache() while capturing: does only the
                                   freeable pools, instead of failing */
    bool scope_is_capture;      /* use of a private pool counts as a capture */
    enum alloc_age age;         /* of equal blocks, which is the older one */
    uint64_t min_max_split_bytes;
};

struct alloc_conf {
    uint64_t max_split_bytes; /* UINT64_MAX: no limit */
    uint64_t max_non_split_rounding_bytes;
    uint64_t large_segment_bytes;
    uint64_t roundup_divisions[ALLOC_ROUNDUP_INTERVALS];
    double gc_threshold;    /* 0: off */
    double memory_fraction; /* of the GPU */
    bool expandable_segments;
};

/* The rules of VERSION ("2.11.0+cu130"). A version newer than those held
 * against follows the last row, and *KNOWN (may be NULL) is then false. Returns
 * NULL and sets ERR where VERSION is no version or older than the first row. */
const struct alloc_rules *alloc_rules_find(const char *version, bool *known,
                                           struct err *err);

/* The rows' first and last versions, for messages: "2.5 to 2.15". */
const char *alloc_rules_range(void);

/* What an unset variable means. */
void alloc_conf_init(struct alloc_conf *conf);

/* Applies TEXT, in the variable's own syntax, to CONF as setting it at run
 * time would under RULES. Options that do not concern device memory (pinned_*
 * and the like) are passed over. Returns 0, or -1 with ERR set ("alloc-conf:N:
 * ...", N the position in TEXT); CONF is then unchanged. */
int alloc_conf_parse(struct alloc_conf *conf, const char *text,
                     const struct alloc_rules *rules, struct err *err);

/* What a request of BYTES (1 to 2^60) becomes: round_size. */
uint64_t alloc_conf_round(const struct alloc_conf *conf, uint64_t bytes);

#endif
