/* SPDX-License-Identifier: Apache-2.0
 * A set of ranks as ranges: a job of 16,384 equal ranks is one range. Ranks
 * are in ascending order as they were added. As a text: "0-127,130" and, with
 * a stride, "0-120:8" (0, 8, 16, ..., 120). Zeroed, a set is empty. */
#ifndef MEMSIM_COMMON_BASE_RANK_SET_H
#define MEMSIM_COMMON_BASE_RANK_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/range.h"

struct rank_set {
    struct range *ranges;
    size_t range_count, range_capacity;
    uint32_t count; /* ranks */
};

/* Adds RANK, which must be above all ranks of SET. */
void rank_set_add(struct rank_set *set, uint32_t rank);

/* Adds the ranks of OTHER in any order; SET keeps each rank once. */
void rank_set_merge(struct rank_set *set, const struct rank_set *other);

bool rank_set_has(const struct rank_set *set, uint32_t rank);

/* The lowest rank of SET that is at least FROM. False where there is none:
 *     for (uint32_t r = 0; rank_set_next(set, r, &r); r++) */
bool rank_set_next(const struct rank_set *set, uint32_t from, uint32_t *rank);

/* The set as a text, which the caller frees. */
char *rank_set_text(const struct rank_set *set);

/* Reads "0-127,130" into *SET: ranks in any order, below LIMIT. Returns 0 with
 * *SET to be given to rank_set_fini, or -1 with ERR set, which begins with
 * ORIGIN (an option, a file), and nothing to free. */
int rank_set_parse(struct rank_set *set, const char *text, uint32_t limit,
                   const char *origin, struct err *err);

void rank_set_fini(struct rank_set *set);

#endif
