/* SPDX-License-Identifier: Apache-2.0
 * GPUs of one kind are not equally fast. Each rank of a job gets a GPU of its
 * own, drawn at random: its work takes exp(SPREAD * z) times as long as that of
 * the median GPU, z of the standard normal distribution. A rank that stands for
 * others takes the slowest of theirs, for which collectives wait. Pure: equal
 * seeds give equal GPUs, whatever ranks are run. */
#ifndef MEMSIM_PLAYBACK_STRAGGLERS_H
#define MEMSIM_PLAYBACK_STRAGGLERS_H

#include "common/base/rank_set.h"

struct stragglers {
    double spread; /* 0.02: one GPU in six is more than 2% slow; 0: none */
    uint64_t seed;
};

/* Reads "2%" or "2%,SEED". Returns 0, or -1 with ERR set. */
int stragglers_parse(const char *text, struct stragglers *s, struct err *err);

/* How many times as long RANK's GPU takes. */
double straggler_factor(const struct stragglers *s, uint32_t rank);

/* How many times as long a process takes that is RANK and stands for MEMBERS
 * (none: for itself). */
double stragglers_of(const struct stragglers *s, uint32_t rank,
                     const struct rank_set *members);

/* That of the slowest of RANKS; 1 where there are none. */
double stragglers_slowest(const struct stragglers *s,
                          const struct rank_set *ranks);

#endif
