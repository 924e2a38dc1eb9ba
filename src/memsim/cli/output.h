/* SPDX-License-Identifier: Apache-2.0
 * What `memsim run` and `memsim report` have in common: the options that say
 * what to write, and the writing. Prints: a part of the command line. */
#ifndef MEMSIM_MEMSIM_OUTPUT_H
#define MEMSIM_MEMSIM_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "common/base/options.h"
#include "memsim/report/report.h"
#include "memsim/report/result.h"
#include "memsim/run/rundir.h"

struct output_options {
    const char *json, *html, *perfetto, *snapshot;
    const char *cluster; /* NULL: nothing to price collectives on */
    const char *fit, *scale, *host_speed; /* of times; NULL: the defaults */
    const char *kineto;
    const char *fail_slower, *base; /* of the step; NULL: not asked for */
    bool quiet, advice, timeline;
    uint32_t depth, top; /* 0: not given */
    int color;           /* index in "auto|always|never" */
};

/* The rows of an option table whose STRUCTURE has these options as MEMBER. */
/* clang-format off */
#define OUTPUT_ROWS(structure, member)                                         \
    OUTPUT_SUMMARY_ROWS(structure, member),                                    \
    {"html", 0, OPTION_STRING, "FILE", offsetof(structure, member.html),       \
     .help = "write a page there that a browser shows, without\n"              \
             "any network"},                                                   \
    {"perfetto", 0, OPTION_STRING, "FILE",                                     \
     offsetof(structure, member.perfetto),                                     \
     .help = "write a trace there that ui.perfetto.dev shows;\n"               \
             "compressed where its name ends in .gz"},                         \
    {"snapshot", 0, OPTION_STRING, "FILE",                                     \
     offsetof(structure, member.snapshot),                                     \
     .help = "write PyTorch's allocator's calls there as a memory\n"           \
             "snapshot that its memory_viz page opens"},                       \
    {"cluster", 0, OPTION_STRING, "NAME|FILE.json",                            \
     offsetof(structure, member.cluster),                                      \
     .help = "what NCCL's collectives would take there\n"                      \
             "(`memsim clusters' lists them)"},                                \
    {"fit", 0, OPTION_STRING, "FIT.json", offsetof(structure, member.fit),     \
     .help = "operators' times: a fit that `memsim fit' wrote, in\n"           \
             "place of the GPU's own"},                                        \
    {"scale", 0, OPTION_STRING, "FAMILY=X[,FAMILY=X]...",                      \
     offsetof(structure, member.scale),                                        \
     .help = "what if these took X times as long: gemm=0.8"},                  \
    {"host-speed", 0, OPTION_STRING, "X",                                      \
     offsetof(structure, member.host_speed),                                   \
     .help = "the host's speed over this machine's (default 1);\n"             \
             "0: the host takes no time"},                                     \
    {"kineto", 0, OPTION_STRING, "FILE", offsetof(structure, member.kineto),   \
     .help = "write the predicted timeline there, as PyTorch's\n"              \
             "profiler writes it; ui.perfetto.dev shows it"},                  \
    {"fail-slower", 0, OPTION_STRING, "PERCENT",                               \
     offsetof(structure, member.fail_slower),                                  \
     .help = "exit with 121 if a step takes longer by more than\n"             \
             "this than in --base"},                                           \
    {"base", 0, OPTION_STRING, "FILE.json", offsetof(structure, member.base),  \
     .help = "an earlier run's --json, for --fail-slower"},                    \
    {"timeline", 0, OPTION_FLAG, NULL, offsetof(structure, member.timeline),   \
     .help = "memory over time in the summary, by category, by\n"              \
             "phase, and what each module held at most"},                     \
    {"advice", 0, OPTION_FLAG, NULL, offsetof(structure, member.advice),       \
     .help = "tell what would take less memory: checkpointing, a\n"            \
             "bf16 optimizer, settings of the allocator"}

/* Those that a report on no single run has as well. */
#define OUTPUT_SUMMARY_ROWS(structure, member)                                 \
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

/* The writers of the files that can be asked for. */
struct output_writers {
    const struct report_ops *json, *html, *perfetto;
};

/* Can this memsim write what OPTIONS ask for, and is there such a cluster?
 * Returns 0 or -1. */
int output_check(const struct output_options *options, struct err *err);

/* Refuses an output of OPTIONS that is INPUT, a file, or a run's file in INPUT,
 * a directory; NULL: no input. Returns 0 or -1. */
int output_check_input(const struct output_options *options, const char *input,
                       struct err *err);

/* Where the summary of a command goes whose data is on stdout. */
FILE *output_summary_stream(const struct output_options *options);

/* Returns 0, or -1 where not all of the summary reached OUT. */
int output_summary_check(FILE *out, struct err *err);

/* Writes REPORT, of the kind that WRITERS write, to the files that OPTIONS
 * name. Returns 0 or -1. */
int output_files(const struct output_options *options,
                 const struct output_writers *writers, const void *report,
                 struct err *err);

/* Does --color ask for colours on OUT? */
bool output_color(const struct output_options *options, FILE *out);

/* Prices what the COUNT traces PATHS tell of, for RESULT; what cannot be read
 * becomes a note. Returns 0 or -1. */
int output_price(const struct output_options *options, char *const *paths,
                 size_t count, struct result *result, struct err *err);

/* The result of the run in DIR, whose command was COMMAND, with what its traces
 * tell; to be given to result_fini. */
void output_result(struct result *result, const struct rundir *dir,
                   char *const *command);

/* Where advice comes from, besides the run itself; zeroed: nowhere. */
struct output_sources {
    const struct rundir *unlimited; /* see advice_run; may be NULL */
    uint64_t largest_batch;         /* that is known to fit; 0: not known */
    const char *batch_command;      /* that finds it; may be NULL */
};

/* Reports the run in DIR, whose command was COMMAND: the summary to OUT,
 * the rest where OPTIONS say. *TOLD: nothing failed on the way. Returns the
 * exit status of the run, CMD_RUN_FAILED where something could not be told.
 * SOURCES serve the advice. */
int output_run(const struct rundir *dir, const struct output_sources *sources,
               char *const *command, const struct output_options *options,
               FILE *out, bool *told);

#endif
