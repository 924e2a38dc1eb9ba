/* SPDX-License-Identifier: Apache-2.0
 * The ranks of a run: which ones ran, the traces of their processes, and the
 * ranks that each represents. No other file iterates over a run's ranks. */
#ifndef MEMSIM_MEMSIM_RUN_RANKS_H
#define MEMSIM_MEMSIM_RUN_RANKS_H

#include "common/base/rank_set.h"
#include "memsim/run/run.h"

/* An upper limit that is above the ranks of any cluster. */
#define RUN_RANKS_MAX (1u << 20)

struct run_rank {
    uint32_t rank;           /* the one that ran */
    struct rank_set members; /* the ranks it represents, itself included */
    const struct run_trace **traces; /* of its processes, by number; borrowed
                                        from the run */
    size_t trace_count;
};

struct run_ranks {
    struct run_rank *all; /* by rank */
    size_t count, capacity;
    uint32_t world; /* ranks of the whole job; at least the known ones */
};

/* Reads the ranks of RUN, which must outlive RANKS, from the first records of
 * its traces and from its file RUN_RANKS. The rank of a trace without one is
 * its process's number. Returns 0, or -1 with ERR set; call run_ranks_fini in
 * both cases. */
int run_ranks_read(struct run_ranks *ranks, const struct run *run,
                   struct err *err);
void run_ranks_fini(struct run_ranks *ranks);

/* The rank after BEFORE (NULL: the first); NULL: there is none. */
const struct run_rank *run_next_rank(const struct run_ranks *ranks,
                                     const struct run_rank *before);

/* The rank that represents RANK (it may be RANK); NULL: RANK is not known. */
const struct run_rank *run_rank_for(const struct run_ranks *ranks,
                                    uint32_t rank);

/* Reads only RUN_RANKS of DIRECTORY, without traces; no ranks if there is no
 * such file. Returns the same as run_ranks_read. */
int run_classes_read(struct run_ranks *classes, const char *directory,
                     struct err *err);

/* Adds RANK with MEMBERS (copied) to CLASSES, and writes them as RUN_RANKS of
 * DIRECTORY. The second returns 0, or -1 with ERR set. */
void run_classes_add(struct run_ranks *classes, uint32_t rank,
                     const struct rank_set *members);
int run_classes_write(const struct run_ranks *classes, const char *directory,
                      struct err *err);

#endif
