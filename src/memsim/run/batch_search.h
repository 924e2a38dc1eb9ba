/* SPDX-License-Identifier: Apache-2.0
 * The search for the largest batch that fits. Peaks grow about linearly with
 * the batch: a line through the last two says which batch fills the memory.
 * Without a capacity, or where the line misleads, doubling and bisection. Pure:
 * it says which batch to try next, and is told how that went. */
#ifndef MEMSIM_MEMSIM_BATCH_SEARCH_H
#define MEMSIM_MEMSIM_BATCH_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct batch_try {
    uint64_t batch;
    bool fits;
    uint64_t peak_allocated_bytes, peak_used_bytes;
};

struct batch_search {
    uint64_t from, to, multiple; /* only multiples, from FROM up to TO */
    uint64_t capacity_bytes; /* that may be used; 0: not known. Set by the
                                caller, after batch_search_init */
    struct batch_try *tries;
    size_t count, capacity;
};

/* Rounds FROM up and TO down to multiples of MULTIPLE. Returns 0, or -1 where
 * no number is left. */
int batch_search_init(struct batch_search *s, uint64_t from, uint64_t to,
                      uint64_t multiple);
void batch_search_fini(struct batch_search *s);

/* The batch to try next; 0: the search is over. */
uint64_t batch_search_next(const struct batch_search *s);

/* How the batch that batch_search_next named went; PEAK_USED_BYTES of a batch
 * that fits only, 0 where it is not known. */
void batch_search_tell(struct batch_search *s, bool fits,
                       uint64_t peak_allocated_bytes, uint64_t peak_used_bytes);

/* The largest that fits so far; 0: none. */
uint64_t batch_search_largest(const struct batch_search *s);

/* The smallest above the largest that does not fit; 0: none is known. */
uint64_t batch_search_limit(const struct batch_search *s);

/* A larger batch once took less memory than a smaller one: what lies beyond
 * the limit may fit again. A few more are tried then. */
bool batch_search_is_uneven(const struct batch_search *s);

/* Batches of several sizes, and the same peak of all. */
bool batch_search_is_deaf(const struct batch_search *s);

#endif
