/* SPDX-License-Identifier: Apache-2.0
 * How every command starts a job: by itself, or, of several ranks, as the ranks
 * that have to be run. */
#ifndef MEMSIM_MEMSIM_RUN_JOB_START_H
#define MEMSIM_MEMSIM_RUN_JOB_START_H

#include "memsim/run/job.h"

#define TRIAL_SECONDS 1000000000

/* The rows of an option table whose STRUCTURE has struct launch_options as
 * MEMBER. */
/* clang-format off */
#define LAUNCH_ROWS(structure, member)                                         \
    {"nnodes", 0, OPTION_COUNT, "N", offsetof(structure, member.nodes),        \
     .minimum = 1, .maximum = RUN_RANKS_MAX, .group = "Ranks",                 \
     .help = "run COMMAND as the ranks of N nodes, as torchrun does"},         \
    {"nproc-per-node", 0, OPTION_COUNT, "N",                                   \
     offsetof(structure, member.local),                                        \
     .minimum = 1, .maximum = SESSION_DEVICES,                                 \
     .help = "ranks of a node (default 1)"},                                   \
    {"ranks", 0, OPTION_STRING, "auto|all|LIST",                               \
     offsetof(structure, member.ranks),                                        \
     .help = "ranks that are processes, as in 0,8-11; each stands for\n"       \
             "those up to the next (default auto: the first, the\n"            \
             "last, and those that differ: stages, experts)"},                 \
    {"rank-environment", 0, OPTION_CHOICE, "torchrun|slurm|openmpi",           \
     offsetof(structure, member.environment),                                  \
     .help = "variables that tell a rank its place, beside torchrun's"}

/* The same for `member', a number of seconds. */
#define TRIAL_ROWS(structure, member)                                          \
    {"trial-timeout", 0, OPTION_COUNT, "SECONDS",                              \
     offsetof(structure, member), .minimum = 1, .maximum = TRIAL_SECONDS,      \
     .help = "end a run of COMMAND after SECONDS: it hangs, and is\n"          \
             "shown apart (default: never)"}
/* clang-format on */

/* Runs JOB, whose launch was found, and again while it shows that other ranks
 * have to be run; JOB's `note' gets the reason. Returns what job_run does. */
int job_start(struct job *job, struct rundir *dir, struct err *err);

#endif
