/* SPDX-License-Identifier: Apache-2.0
 * A command on cards that are not there: what `memsim run` does once, and
 * `memsim fit-batch` several times. */
#ifndef MEMSIM_MEMSIM_JOB_H
#define MEMSIM_MEMSIM_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/catalogue/gpu.h"
#include "common/base/options.h"
#include "memsim/run/rundir.h"

#define JOB_GPU             "h100-sxm-80gb"
#define JOB_TRACE_LIMIT     (UINT64_C(8) << 30)
#define JOB_TRACE_LIMIT_MIN (UINT64_C(2) << 20) /* the header, and a chunk */

/* The cards, and what is assumed of them. */
struct job_options {
    const char *gpu;
    uint32_t gpus;
    uint64_t memory_bytes; /* of each; 0: the card's own */
    int addresses;         /* enum vaspace_model */
    double fail_above_percent;
    double selected_fraction;
    double unknown_value;
    bool require_gpu, scratch, write_through;
};

/* clang-format off */
#define JOB_DEFAULTS {.gpu = JOB_GPU, .gpus = 1, .selected_fraction = 0.5,     \
                      .unknown_value = 1}

/* The rows of an option table whose STRUCTURE has these options as MEMBER. */
#define JOB_ROWS(structure, member)                                            \
    {"gpu", 0, OPTION_STRING, "NAME|FILE.json",                                \
     offsetof(structure, member.gpu),                                          \
     .help = "the card (default " JOB_GPU "; `memsim gpus' lists\n"            \
             "them), or a file that describes one"},                           \
    {"gpus", 0, OPTION_COUNT, "N", offsetof(structure, member.gpus),           \
     .minimum = 1, .maximum = SESSION_DEVICES,                                 \
     .help = "how many of them (default 1)"},                                  \
    {"memory", 0, OPTION_BYTES, "SIZE",                                        \
     offsetof(structure, member.memory_bytes),                                 \
     .help = "memory of each, in place of the card's own: 80GiB,\n"            \
             "80GB, 85899345920"},                                             \
    {"addresses", 0, OPTION_CHOICE, "linux|ascending",                         \
     offsetof(structure, member.addresses),                                    \
     .help = "where cudaMalloc's addresses lie (default linux)"},              \
    {"fail-above", 0, OPTION_PERCENT, "PCT",                                   \
     offsetof(structure, member.fail_above_percent),                           \
     .help = "exit with 121 if more of a card than this was used"},            \
    {"require-gpu", 0, OPTION_FLAG, NULL,                                      \
     offsetof(structure, member.require_gpu),                                  \
     .help = "exit with 125 if no GPU was used"},                              \
    {"selected-fraction", 0, OPTION_FRACTION, "F",                             \
     offsetof(structure, member.selected_fraction),                            \
     .help = "how much a mask selects that is computed on the GPU,\n"          \
             "which memsim cannot know (default 0.5)"},                        \
    {"unknown-value", 0, OPTION_NUMBER, "X",                                   \
     offsetof(structure, member.unknown_value),                                \
     .help = "the first floating number that the command reads and\n"          \
             "that memsim does not compute; those that follow fall\n"          \
             "slowly (default 1; 0: all are 0)"},                              \
    {"scratch", 0, OPTION_FLAG, NULL, offsetof(structure, member.scratch),     \
     .help = "keep the command's checkpoints as they are, and let it\n"        \
             "write and read copies (the default)"},                           \
    {"write-through", 0, OPTION_FLAG, NULL,                                    \
     offsetof(structure, member.write_through),                                \
     .help = "write over them"}
/* clang-format on */

struct job {
    struct job_options options;
    struct gpu gpu; /* as job_gpu finds it */
    char **command;
    const char *directory; /* NULL: a private one */
    bool force;            /* it may replace an earlier run there */
    uint64_t trace_limit_bytes;
    bool no_modules;
    bool kill_with_memsim; /* the command ends when memsim is killed */
    int output; /* where stdout and stderr go; -1: they are inherited */
};

/* Finds the card that OPTIONS ask for. Returns 0 or -1. */
int job_gpu(const struct job_options *options, struct gpu *gpu,
            struct err *err);

/* Can COMMAND be run? Returns 0, or memsim's exit status with ERR set; with 0,
 * ERR may hold a warning. */
int job_check(const char *command, struct err *err);

/* The files that memsim consists of, separated by colons, which the caller
 * frees; NULL with ERR set. */
char *job_programs(struct err *err);

/* Runs JOB and waits for its end. Returns 0 with *DIR to be closed or removed,
 * or memsim's exit status with ERR set and nothing left behind, unless the
 * command ran and its figures cannot be read: then a directory of the user's
 * keeps the traces. */
int job_run(const struct job *job, struct rundir *dir, struct err *err);

#endif
