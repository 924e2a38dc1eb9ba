/* SPDX-License-Identifier: Apache-2.0
 * The search for the largest batch that fits. Peaks grow about linearly with
 * the batch: a line through the last two gives the batch that fills the memory.
 * Without a capacity, or if the line is wrong, it doubles and bisects. Pure: it
 * returns the batch to try next, and the caller reports the result. */
#ifndef MEMSIM_MEMSIM_RUN_BATCH_SEARCH_H
#define MEMSIM_MEMSIM_RUN_BATCH_SEARCH_H

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
    uint64_t capacity_bytes; /* usable bytes; 0: not known. Set by the caller
                                after batch_search_init */
    struct batch_try *tries;
    size_t count, capacity;
};

/* Rounds FROM up and TO down to multiples of MULTIPLE. Returns 0, or -1 if
 * no number is left. */
int batch_search_init(struct batch_search *s, uint64_t from, uint64_t to,
                      uint64_t multiple);
void batch_search_fini(struct batch_search *s);

/* The batch to try next; 0: the search is over. */
uint64_t batch_search_next(const struct batch_search *s);

/* Reports the result of the batch that batch_search_next returned.
 * PEAK_USED_BYTES is only for a batch that fits; 0 if it is not known. */
void batch_search_tell(struct batch_search *s, bool fits,
                       uint64_t peak_allocated_bytes, uint64_t peak_used_bytes);

/* The result of that batch that the others let expect. Its peaks are those it
 * would have if it fits. */
struct batch_try batch_search_expected(const struct batch_search *s);

/* The largest that fits so far; 0: none. */
uint64_t batch_search_largest(const struct batch_search *s);

/* The smallest above the largest that does not fit; 0: none is known. */
uint64_t batch_search_limit(const struct batch_search *s);

/* Whether a larger batch needed less memory than a smaller one. Then batches
 * above the limit may fit, and a few more are tried. */
bool batch_search_is_uneven(const struct batch_search *s);

/* Whether batches of several sizes all had the same peak. */
bool batch_search_is_deaf(const struct batch_search *s);

#endif
