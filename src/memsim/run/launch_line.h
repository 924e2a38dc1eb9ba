/* SPDX-License-Identifier: Apache-2.0
 * Reads from a launcher's command line how many ranks it would start, and of
 * which command: torchrun, accelerate launch, deepspeed, mpirun, srun. */
#ifndef MEMSIM_MEMSIM_RUN_LAUNCH_LINE_H
#define MEMSIM_MEMSIM_RUN_LAUNCH_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

/* What of a launcher a rank sees beside torchrun's variables. */
enum launch_environment {
    LAUNCH_TORCHRUN, /* only RANK and so on */
    LAUNCH_SLURM,    /* SLURM_PROCID and so on, too */
    LAUNCH_OPENMPI,  /* OMPI_COMM_WORLD_RANK and so on, too */
    LAUNCH_DEEPSPEED,
    LAUNCH_ACCELERATE, /* the rank's command is the launcher's itself */
    LAUNCH_ENVIRONMENTS,
};

/* A word of a rank's command, which ends with its LOCAL_RANK instead of "{}".
 */
#define LAUNCH_LOCAL_RANK "--local_rank={}"

#define LAUNCH_LINE_ROOM 4 /* words that may be put before COMMAND */

struct launch_line {
    uint32_t nodes, local; /* 0: not given; local: ranks of a node */
    uint32_t tasks;        /* ranks of all nodes; 0: not given */
    int environment;
    bool remote;    /* srun or mpirun, which may be missing here: memsim takes
                       its place on one node, too */
    char **command; /* of a rank: in COMMAND's array, which is changed. Words
                       that are not COMMAND's are never freed. */
};

/* Returns 1 with *LINE filled if COMMAND, behind LAUNCH_LINE_ROOM free words,
 * is a launcher's; 0 if it is not; -1 with ERR set if it names a file that
 * cannot be used. */
int launch_line_read(struct launch_line *line, char **command, struct err *err);

#endif
