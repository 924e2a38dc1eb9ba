/* SPDX-License-Identifier: Apache-2.0
 * What the files that join collectives share. */
#ifndef MEMSIM_MEMSIM_COLLECTIVES_COMM_JOIN_INTERNAL_H
#define MEMSIM_MEMSIM_COLLECTIVES_COMM_JOIN_INTERNAL_H

#include "memsim/collectives/comm_join.h"

/* A communicator with those that know it. */
struct joined {
    const struct comm *comm; /* the first one's */
    uint32_t members;        /* that have a trace */
    struct member {
        uint32_t log, comm;
    } *member;
    size_t member_capacity;
    uint32_t *meets; /* by sequence: of collectives */
    uint32_t *first; /* by sequence: the log that called first, ... */
    uint32_t *call;  /* ... and its call */
    uint32_t *came;  /* how many called */
    size_t meet_count, meet_capacity;
};

/* A send or a receive. */
struct half {
    uint32_t joined, source, target, log, call, rank;
    bool receive;
    uint64_t n, bytes; /* n: its place among those of the pair */
};

struct joining {
    const struct comm_log *const *logs;
    const struct comm_classes *classes; /* NULL: each rank stands for itself */
    struct comm_job *job;
    struct joined *joined;
    size_t joined_count, joined_capacity;
    uint32_t **joined_of; /* by log and communicator */
    struct half *halves;
    size_t half_count, half_capacity;
    uint64_t **shifts;  /* by log and communicator: the place of the first
                           collective among those of all members */
    int64_t *clocks;    /* of a log: to be added, for the clock of the first */
    bool *clock_known;
};

void mismatch_add(struct joining *j, struct comm_mismatch m);
uint32_t meet_add(struct comm_job *job, enum comm_kind kind, uint32_t expected);

/* comm_join_classes.c: one communicator of those that are alike but for the
 * ranks that have traces. */
void classes_merge(struct joining *j);

/* comm_join_profile.c: what belongs together in profiles, and their clocks;
 * then when each log begins, and how long each call lasts. */
void profiles_align(struct joining *j);
void starts_find(struct joining *j);
void lasts_find(struct joining *j);

/* Whether D has the communicator's RANK. */
bool joined_has_rank(const struct joining *j, const struct joined *d,
                     uint32_t rank);

/* comm_join_absent.c: of each communicator the first call that a rank would
 * have to make which ran, and never made the communicator. */
void absent_join(struct joining *j);

/* comm_join_pairs.c: sends and receives. */
void pairs_join(struct joining *j);

#endif
