/* SPDX-License-Identifier: Apache-2.0
 * memsim as a launcher of a job of many nodes. It starts a few of the job's
 * ranks as processes, each with the environment that torchrun would set. */
#ifndef MEMSIM_MEMSIM_RUN_LAUNCH_H
#define MEMSIM_MEMSIM_RUN_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/rank_set.h"
#include "memsim/run/launch_line.h"
#include "memsim/run/rank_axes.h"

/* The command that `memsim run' starts instead of the user's. It starts the
 * ranks: "memsim launch RANKS WORLD LOCAL ENVIRONMENT AXES COMMAND ...", AXES
 * being "-" where the user has chosen the ranks. */
#define LAUNCH_COMMAND "launch"

/* The user's options. */
struct launch_options {
    uint32_t nodes, local; /* ranks of a node; 0: not given */
    const char *ranks;     /* "auto", "all", a list; NULL: auto */
    int environment;       /* enum launch_environment */
};

struct launch {
    uint32_t world, local; /* world 0: memsim is no launcher */
    struct rank_set ranks; /* the ranks that are processes */
    bool chooses;          /* --ranks auto */
    struct rank_axes axes; /* along which ranks differ, as far as is known */
    int environment;
    char **words;   /* the user's command */
    char **command; /* of a rank, in WORDS */
};

/* Fills LAUNCH from OPTIONS and COMMAND, which may be a launcher's. Returns 0
 * or -1 with ERR set; call launch_fini in both cases. */
int launch_find(struct launch *launch, const struct launch_options *options,
                char **command, struct err *err);
void launch_fini(struct launch *launch);

/* Whether the run in DIRECTORY shows that other ranks have to be run
 * (rank_axes.h). If so, LAUNCH has these, and *TEXT, which the caller frees,
 * says why. */
bool launch_is_again(struct launch *launch, const char *directory, char **text);

/* Whether the run in DIRECTORY, of ranks that the user named, shows along which
 * axes they differ. LAUNCH then has these: a rank of a pipeline's stage stands
 * for its own stage (launch_classes_write). */
bool launch_learn(struct launch *launch, const char *directory);

/* The ranks are those of now, as if the user had named them. */
void launch_settle(struct launch *launch);

/* Writes to DIRECTORY which ranks each process represents. Returns 0 or -1. */
int launch_classes_write(const struct launch *launch, const char *directory,
                         struct err *err);

/* The command that starts the ranks; free it with launch_command_free. */
char **launch_command(const struct launch *launch);
void launch_command_free(char **command);

/* Starts the ranks. ARGV is launch_command's, from "launch" on. Returns the
 * exit status of the first rank that failed, or 0. */
int launch_run(int argc, char **argv);

#endif
