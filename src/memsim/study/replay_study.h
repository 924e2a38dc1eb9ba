/* SPDX-License-Identifier: Apache-2.0
 * Questions about a recording: replays with other memory, other settings or a
 * change, or with other times where it has times alone. */
#ifndef MEMSIM_MEMSIM_STUDY_REPLAY_STUDY_H
#define MEMSIM_MEMSIM_STUDY_REPLAY_STUDY_H

#include "memsim/study/replay_memory.h"
#include "memsim/study/replay_profile.h"
#include "memsim/time/job_change.h"

struct replay_question {
    const char *gpu;
    const char *second;     /* "SIZE=PATH", for a change of a size */
    bool models, gpu_asked; /* GPU was given, not a cluster's taken */
    int without_profiler;
    const char *average;
    int shards; /* over the data-parallel ranks, of a profile of one GPU */
    uint32_t microbatches, node_ranks;
    const char *schedule;
    struct memory_question memory;
    char **command, **invocation; /* memsim's own command line; NULL: none */
};

/* Reads the changes of Q, and checks that what goes with them is there. Returns
 * 0 with *CHANGES set, or -1. */
int study_replay_check(const struct replay_question *q,
                       struct job_changes *changes, struct err *err);

/* Has RUN, with CHANGE (NULL: none) of the recording, times alone? */
bool study_replay_is_times(const struct run *run,
                           const struct job_change *change);

/* Q about RUN, which has times alone. */
struct replay_profile study_replay_profile(const struct replay_question *q,
                                           const struct run *run);

/* Replays P, by Q, with CHANGE (NULL: none). Returns 0, or -1 with ERR set; *R
 * is to be given to replayed_fini in both cases. */
int study_replay_times(const struct replay_question *q,
                       const struct replay_profile *p,
                       const struct job_change *change, struct replayed *r,
                       struct err *err);

/* Replays RUN on one GPU. Returns 0 with *M to be given to
 * replay_memory_close, or -1 with ERR set. */
int study_replay_memory(const struct replay_question *q, const struct run *run,
                        struct replay_memory *m, struct err *err);

#endif
