/* SPDX-License-Identifier: Apache-2.0
 * Which collectives of a job's ranks are one: those with the same place among
 * the collectives of one communicator; sends and receives with the same place
 * among those of one pair of ranks. Pure.
 *
 * Profiles of several ranks begin and end at different places, and their clocks
 * differ: what belongs together is found by comm_align. */
#ifndef MEMSIM_MEMSIM_COLLECTIVES_COMM_JOIN_H
#define MEMSIM_MEMSIM_COLLECTIVES_COMM_JOIN_H

#include "memsim/collectives/comm_log.h"

/* A group of sends and receives exchanges with another one. */
struct comm_pair {
    uint32_t meet, other;               /* of the two groups */
    uint64_t bytes, whole, other_whole; /* between them; all of each one's */
};

/* Calls that are carried out together; or one group of sends and receives. */
struct comm_meet {
    uint32_t expected; /* calls; at least 2, of COMM_PAIR 1 */
    enum comm_kind kind;
    bool neighbour;    /* of COMM_PAIR: it has at most two peers */
    int64_t last_ns;   /* of imported ones: when the last one came */
    size_t pair_first; /* of COMM_PAIR: the exchanges, at least one */
    uint32_t pair_count;
};

enum comm_fault {
    COMM_MISSING,   /* OTHER's rank never calls it; COMM_NONE: it is not known
                       which rank */
    COMM_ORDER,     /* OTHER calls another collective at this place */
    COMM_SIZE,      /* other bytes */
    COMM_TYPE,      /* another element type */
    COMM_OPERATION, /* another reduction */
    COMM_ROOT,      /* another root */
    COMM_ENDLESS,   /* it waits for ever, though the calls match */
    COMM_ENDED,     /* likewise, for OTHER's process, which has ended */
    COMM_FAULTS,
};

/* Two calls that should be alike and are not. Indexes of logs and of their
 * calls; of COMM_MISSING there is no other call. */
struct comm_mismatch {
    enum comm_fault fault;
    uint32_t log, call, other, other_call; /* COMM_NONE: none */
    uint32_t rank, other_rank;             /* in the communicator */
    uint64_t sequence;                     /* on the communicator or pair */
};

#define COMM_MISMATCHES 64 /* that are kept */

struct comm_job {
    uint32_t **meets_of; /* by log and call: a meet, or COMM_NONE: alone */
    uint64_t **lasts_of; /* likewise, of imported ones: how long each lasts
                            after the last one has come */
    uint64_t *start_ns;  /* of a log: its first record after the earliest one */
    size_t log_count;
    struct comm_meet *meets;
    size_t meet_count, meet_capacity;
    struct comm_pair *pairs; /* by meet, then other: each exchange twice */
    size_t pair_count, pair_capacity;
    struct comm_mismatch mismatches[COMM_MISMATCHES];
    size_t mismatch_count; /* all of them */
};

/* Ranks of the world that others stand for. */
struct comm_classes {
    uint32_t *stands; /* by rank: the rank that ran for it; COMM_NONE: none */
    uint32_t world;   /* so many */
};

/* Joins COUNT LOGS, in the order of their ranks. CLASSES (NULL: every rank
 * stands for itself): a communicator that lacks some of its ranks is joined
 * with the one in which those run that stand for them. To be given to
 * comm_job_destroy. */
struct comm_job *comm_job_create(const struct comm_log *const *logs,
                                 size_t count,
                                 const struct comm_classes *classes);
void comm_job_destroy(struct comm_job *job); /* NULL is fine */

#endif
