/* SPDX-License-Identifier: Apache-2.0
 * A command on simulated GPUs: `memsim run' runs it once, `memsim fit-batch'
 * several times. */
#ifndef MEMSIM_MEMSIM_RUN_JOB_H
#define MEMSIM_MEMSIM_RUN_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/catalogue/gpu.h"
#include "common/base/options.h"
#include "memsim/run/launch.h"
#include "memsim/run/real_cards.h"
#include "memsim/run/rundir.h"

#define JOB_GPU             "h100-sxm-80gb"
#define JOB_TRACE_LIMIT     (UINT64_C(8) << 30)
#define JOB_TRACE_LIMIT_MIN (UINT64_C(2) << 20) /* the header, and a chunk */

/* The GPUs, and the assumptions about them. */
struct job_options {
    const char *gpu;
    uint32_t gpus;
    uint64_t memory_bytes; /* of each; 0: the GPU's own */
    int addresses;         /* enum vaspace_model */
    double fail_above_percent;
    double selected_fraction;
    double unknown_value;
    const char *host_memory; /* SIZE, or "cgroup"; NULL: not given */
    const char *assume; /* FILE:LINE=X,...; NULL: not given */
    const char *step_mark; /* the function whose calls are steps; NULL: none */
    bool require_gpu, ignore_children, scratch, write_through;
};

/* clang-format off */
#define JOB_DEFAULTS {.gpu = JOB_GPU, .gpus = 1, .selected_fraction = 0.5,     \
                      .unknown_value = 1}

/* The rows of an option table whose STRUCTURE has these options as MEMBER. */
#define JOB_ROWS(structure, member)                                            \
    {"gpu", 0, OPTION_STRING, "NAME|FILE.json",                                \
     offsetof(structure, member.gpu), .group = "GPUs",                         \
     .help = "GPU to simulate: a name that `memsim gpus' lists, a\n"           \
             "short name (a100 is a100-sxm-80gb), or a file\n"                 \
             "(default " JOB_GPU ")"},                                  \
    {"gpus", 0, OPTION_COUNT, "N", offsetof(structure, member.gpus),           \
     .minimum = 1, .maximum = SESSION_DEVICES,                                 \
     .help = "number of GPUs (default 1)"},                                    \
    {"memory", 0, OPTION_BYTES, "SIZE",                                        \
     offsetof(structure, member.memory_bytes),                                 \
     .help = "memory of each GPU, in place of its own: 80GiB,\n"               \
             "80GB, 85899345920"},                                             \
    {"addresses", 0, OPTION_CHOICE, "linux|ascending",                         \
     offsetof(structure, member.addresses),                                    \
     .help = "where cudaMalloc places allocations (default linux)"},           \
    {"fail-above", 0, OPTION_PERCENT, "PCT",                                   \
     offsetof(structure, member.fail_above_percent), .group = "Limits",        \
     .help = "exit with 121 if the peak used of a GPU is above this\n"         \
             "percentage of its memory"},                                      \
    {"host-memory", 0, OPTION_STRING, "SIZE|cgroup",                           \
     offsetof(structure, member.host_memory),                                  \
     .help = "exit with 124 if a node needs more of the host's memory\n"       \
             "than this; cgroup: than memsim's own control group has"},        \
    {"require-gpu", 0, OPTION_FLAG, NULL,                                      \
     offsetof(structure, member.require_gpu),                                  \
     .help = "exit with 125 if COMMAND used no GPU"},                          \
    {"ignore-children", 0, OPTION_FLAG, NULL,                                  \
     offsetof(structure, member.ignore_children),                              \
     .help = "take the verdict from COMMAND's own exit status, also\n"         \
             "if a process that it started failed"},                           \
    {"step-mark", 0, OPTION_STRING, "FUNC",                                    \
     offsetof(structure, member.step_mark), .group = "Steps",                  \
     .help = "each call of this Python function is a step:\n"                  \
             "train_step, Trainer.step of the script, or\n"                    \
             "package.module.name"},                                           \
    {"selected-fraction", 0, OPTION_FRACTION, "F",                             \
     offsetof(structure, member.selected_fraction),                            \
     .group = "Values that memsim does not compute",                           \
     .help = "fraction of the elements that a mask computed on the\n"          \
             "GPU selects (default 0.5)"},                                     \
    {"unknown-value", 0, OPTION_NUMBER, "X",                                   \
     offsetof(structure, member.unknown_value),                                \
     .help = "first floating-point number that COMMAND reads from\n"           \
             "the GPU; each later one is slightly smaller\n"                   \
             "(default 1; with 0 all are 0)"},                                 \
    {"assume", 0, OPTION_STRING, "FILE:LINE=X[,...]",                          \
     offsetof(structure, member.assume),                                       \
     .help = "what a line of COMMAND's Python reads from the GPU, or\n"        \
             "which fraction a mask selects there"},                           \
    {"scratch", 0, OPTION_FLAG, NULL, offsetof(structure, member.scratch),     \
     .group = "Checkpoints",                                                   \
     .help = "do not change directories of checkpoints: COMMAND\n"             \
             "writes and reads copies (default)"},                             \
    {"write-through", 0, OPTION_FLAG, NULL,                                    \
     offsetof(structure, member.write_through),                                \
     .help = "change checkpoints, and let out what is not computed"}
/* clang-format on */

struct job {
    struct job_options options;
    struct gpu gpu; /* from job_gpu */
    char **command;
    uint64_t host_limit_bytes; /* from job_host_limit */
    struct launch launch;  /* world 0: COMMAND is started unchanged */
    const char *directory; /* NULL: a private one */
    bool force;            /* may replace an earlier run there */
    char *const *kept;     /* for RUN_OPTIONS, NULL-terminated; NULL: none */
    char *const *invocation; /* for RUN_INVOCATION, likewise */
    uint64_t trace_limit_bytes;
    uint32_t stop_after; /* steps after which a program ends; 0: its own end */
    bool no_modules, real_init, late_frees;
    const char *routing; /* from routing_parse; NULL: even */
    uint32_t seed;       /* of it */
    uint32_t scan_seconds; /* for which a data loader is read; 0: not */
    const struct real_cards *real; /* its GPUs are these; NULL: simulated */
    bool emulates; /* ... and its NCCL is memsim's: most ranks do not exist */
    uint64_t cap_bytes; /* ... of which each shows so much; 0: all */
    int stacks; /* enum session_stacks */
    bool kill_with_memsim; /* the command ends when memsim is killed */
    const void *clock_image; /* playback/image.h; NULL: this machine's clock */
    size_t clock_bytes;
    bool local_clock; /* each rank's clock is its own */
    const struct spawn_view *view; /* spawn.h; NULL: nobody watches */
    int output; /* descriptor for stdout and stderr; -1: they are inherited */
    uint32_t limit_s; /* after which the command is ended; 0: never */
    void (*note)(const char *text); /* told what the user should know; NULL */
};

/* Finds the GPU of OPTIONS; with REAL, that of the catalogue that these are, or
 * is next to them. Returns 0 or -1. */
int job_gpu_real(const struct job_options *options,
                 const struct real_cards *real, struct gpu *gpu,
                 struct err *err);

/* Finds the GPU of OPTIONS. Returns 0 or -1. */
int job_gpu(const struct job_options *options, struct gpu *gpu,
            struct err *err);

/* Reads --host-memory into *BYTES; 0: it was not given. Returns 0 or -1. */
int job_host_limit(const struct job_options *options, uint64_t *bytes,
                   struct err *err);

/* Checks that COMMAND can be run. Returns 0 (ERR may then have a warning), or
 * memsim's exit status with ERR set. */
int job_check(const char *command, struct err *err);

/* memsim's own files, separated by colons; the caller frees the text. NULL with
 * ERR set. */
char *job_programs(struct err *err);

/* Runs JOB and waits for its end. Returns 0 (the caller closes or removes *DIR)
 * or memsim's exit status with ERR set. After an error no files are left, with
 * one exception: if the command ran and its figures cannot be read, a directory
 * of the user's keeps the traces. */
int job_run(const struct job *job, struct rundir *dir, struct err *err);

#endif
