/* SPDX-License-Identifier: Apache-2.0
 * memsim replay of what has times alone, no memory: what `memsim import` wrote,
 * and recordings whose job is changed. A part of the command line: it prints.
 */
#ifndef MEMSIM_MEMSIM_CLI_REPLAY_PROFILE_H
#define MEMSIM_MEMSIM_CLI_REPLAY_PROFILE_H

#include <stdbool.h>
#include <stddef.h>

#include "memsim/cli/output.h"
#include "memsim/run/run.h"

struct replay_profile {
    const struct run *run; /* traces, one of each rank, in their order */
    const char *gpu; /* NULL: the profile's */
    bool models;     /* prices in place of what was measured */
    bool without_profiler; /* the host without the profiler's time */
    uint32_t data_parallel; /* see simulation_options */
    const char *average;    /* likewise */
    const struct output_options *output;
    char *const *command;
    char *const *invocation; /* NULL: not known */
    const char *why; /* the recording has no memory; NULL: it is a profile */
    const char *changed; /* what was changed in the recording; NULL: nothing */
};

/* Is the trace PATH an imported profile? */
bool replay_is_profile(const char *path);

/* Is it one that memsim made? */
bool replay_is_simulated(const char *path);

/* Times the ranks of P in *RESULT, which is to be given to result_fini in both
 * cases. Returns 0, or -1 with ERR set. */
int replay_profile_read(const struct replay_profile *p, struct result *result,
                        struct err *err);

/* Prints RESULT, and writes the files that are asked for. Returns memsim's exit
 * status, ERR set where it failed. */
int replay_profile_show(const struct replay_profile *p,
                        const struct result *result, struct err *err);

/* Both. Returns memsim's exit status, ERR set where it failed. */
int replay_profile(const struct replay_profile *p, struct err *err);

/* Says more in a result of what was done to a recording. */
typedef void replay_note(struct result *result, const void *what);

/* The same for the traces in the directory PATH, which are those of P after
 * CHANGED, as the report says it; NOTE is called with WHAT. */
int replay_profile_changed(const struct replay_profile *p, const char *path,
                           const char *changed, replay_note *note,
                           const void *what, struct err *err);

#endif
