/* SPDX-License-Identifier: Apache-2.0
 * memsim as a launcher: a job of many nodes, of whose ranks a few are processes
 * here. Each gets the environment that torchrun gives it. */
#ifndef MEMSIM_MEMSIM_LAUNCH_H
#define MEMSIM_MEMSIM_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/rank_set.h"

/* The command that `memsim run' starts in place of the user's, which starts
 * the ranks: "memsim launch RANKS WORLD LOCAL ENVIRONMENT COMMAND ...". */
#define LAUNCH_COMMAND "launch"

enum launch_environment {
    LAUNCH_TORCHRUN, /* RANK and so on alone */
    LAUNCH_SLURM,    /* SLURM_PROCID and so on, too */
    LAUNCH_OPENMPI,  /* OMPI_COMM_WORLD_RANK and so on, too */
};

/* What the user asked for. */
struct launch_options {
    uint32_t nodes, local; /* ranks of a node; 0: not given */
    const char *ranks;     /* "auto", "all", a list; NULL: auto */
    int environment;
};

struct launch {
    uint32_t world, local; /* world 0: memsim is no launcher */
    struct rank_set ranks; /* that are processes */
    int environment;
    char **words;   /* the user's command */
    char **command; /* of a rank, in WORDS */
};

/* Finds what OPTIONS and COMMAND, which may be torchrun's, ask for. Returns 0
 * or -1 with ERR set; launch_fini in both cases. */
int launch_find(struct launch *launch, const struct launch_options *options,
                char **command, struct err *err);
void launch_fini(struct launch *launch);

/* Writes to DIRECTORY which ranks each process stands for: those up to the next
 * one that is a process. Returns 0 or -1. */
int launch_classes_write(const struct launch *launch, const char *directory,
                         struct err *err);

/* The command that starts the ranks: heap, for launch_command_free. */
char **launch_command(const struct launch *launch);
void launch_command_free(char **command);

/* Does that: ARGV is as launch_command's from "launch" on. Returns the status
 * of the first rank that failed, or 0. */
int launch_run(int argc, char **argv);

#endif
