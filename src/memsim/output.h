/* SPDX-License-Identifier: Apache-2.0
 * What `memsim run` and `memsim report` have in common: the options that say
 * what to write, and the writing. Prints: a part of the command line. */
#ifndef MEMSIM_MEMSIM_OUTPUT_H
#define MEMSIM_MEMSIM_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "common/options.h"
#include "memsim/rundir.h"

struct output_options {
    const char *json;
    bool quiet;
    uint32_t depth, top; /* 0: not given */
    int color; /* index in "auto|always|never" */
};

/* The rows of an option table whose STRUCTURE has these options as MEMBER. */
/* clang-format off */
#define OUTPUT_ROWS(structure, member)                                         \
    {"json", 0, OPTION_STRING, "FILE", offsetof(structure, member.json),       \
     .help = "write all figures there as JSON; - is stdout"},                  \
    {"depth", 0, OPTION_COUNT, "N", offsetof(structure, member.depth),         \
     .minimum = 1, .maximum = 100,                                             \
     .help = "levels of modules in the summary (default 3)"},                  \
    {"top", 0, OPTION_COUNT, "N", offsetof(structure, member.top),             \
     .minimum = 1, .maximum = 1000000,                                         \
     .help = "the largest of each module's to show there\n"                    \
             "(default 5)"},                                                   \
    {"quiet", 'q', OPTION_FLAG, NULL, offsetof(structure, member.quiet),       \
     .help = "no summary"},                                                    \
    {"color", 0, OPTION_CHOICE, "auto|always|never",                           \
     offsetof(structure, member.color),                                        \
     .help = "colours in the summary; auto: on a terminal,\n"                  \
             "unless NO_COLOR is set"}
/* clang-format on */

/* Does --color ask for colours on OUT? */
bool output_color(const struct output_options *options, FILE *out);

/* Reports the run in DIR, whose command was COMMAND: the summary to OUT,
 * the rest where OPTIONS say. *TOLD: nothing failed on the way. Returns the
 * exit status of the run, CMD_RUN_FAILED where something could not be told. */
int output_run(const struct rundir *dir, char *const *command,
               const struct output_options *options, FILE *out, bool *told);

#endif
