/* SPDX-License-Identifier: Apache-2.0
 * memsim replay of what has times alone, no memory: what `memsim import` wrote,
 * and recordings whose job is changed. */
#ifndef MEMSIM_MEMSIM_STUDY_REPLAY_PROFILE_H
#define MEMSIM_MEMSIM_STUDY_REPLAY_PROFILE_H

#include <stdbool.h>
#include <stddef.h>

#include "memsim/result/result.h"
#include "memsim/run/run.h"
#include "memsim/study/options.h"

struct replay_profile {
    const struct run *run;  /* traces, one of each rank, in their order */
    const char *gpu;        /* NULL: the profile's */
    bool models;            /* prices in place of what was measured */
    bool without_profiler;  /* the host without the profiler's time */
    uint32_t data_parallel; /* see simulation_options */
    const char *average;    /* likewise */
    bool shards;            /* of a profile of one GPU: FSDP, not DDP */
    bool contends;          /* likewise */
    const struct study_options *options;
    char *const *command;
    char *const *invocation; /* NULL: not known */
    const char *why; /* the recording has no memory; NULL: it is a profile */
};

/* What came of a replay. Zeroed: nothing so far. */
struct replayed {
    struct result result;
    size_t ranks;   /* that were replayed together */
    bool simulated; /* the times that were replayed are memsim's own */
    bool models;    /* they are those of the cost models */
    char *changed;  /* what was changed in the recording; NULL: nothing */
};

void replayed_fini(struct replayed *r);

/* Is the trace PATH an imported profile? */
bool replay_is_profile(const char *path);

/* Is it one that memsim made? */
bool replay_is_simulated(const char *path);

/* Times the ranks of P. Returns 0, or -1 with ERR set; *R is to be given to
 * replayed_fini in both cases. */
int replay_profile(const struct replay_profile *p, struct replayed *r,
                   struct err *err);

/* Says more in a result of what was done to a recording. */
typedef void replay_note(struct result *result, const void *what);

/* Traces that were made of a recording. */
struct replay_made {
    const char *path;  /* their directory */
    char *changed;     /* as the report says it; a heap text */
    replay_note *note; /* called with WHAT */
    const void *what;
};

/* The same for what was MADE of P's traces; *R gets the text. */
int replay_profile_changed(const struct replay_profile *p,
                           const struct replay_made *made, struct replayed *r,
                           struct err *err);

#endif
