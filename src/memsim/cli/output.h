/* SPDX-License-Identifier: Apache-2.0
 * What `memsim run` and `memsim report` have in common: the options that say
 * what to write, and the writing. Prints: a part of the command line. */
#ifndef MEMSIM_MEMSIM_CLI_OUTPUT_H
#define MEMSIM_MEMSIM_CLI_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "common/base/options.h"
#include "memsim/report/report.h"
#include "memsim/result/result.h"
#include "memsim/run/run.h"
#include "memsim/run/rundir.h"
#include "memsim/study/option_rows.h"

struct output_options {
    struct study_options study; /* what is asked; see output_study */
    const char *json, *html, *perfetto, *snapshot;
    const char *markdown, *flame;
    bool quiet, timeline, verbose;
    uint32_t depth, top; /* 0: not given */
    int color;           /* index in "auto|always|never" */
};

/* The study of OPTIONS, with what their files need of it. */
struct study_options output_study(const struct output_options *options);

/* The rows of an option table whose STRUCTURE has these options as MEMBER. */
/* clang-format off */
#define OUTPUT_ROWS(structure, member)                                         \
    OUTPUT_JSON_ROW(structure, member),                                        \
    {"html", 0, OPTION_STRING, "FILE", offsetof(structure, member.html),       \
     .once = true, .help = "write an interactive page for a web browser; it needs\n"         \
             "no network"},                                                    \
    {"perfetto", 0, OPTION_STRING, "FILE",                                     \
     offsetof(structure, member.perfetto),                                     \
     .once = true, .help = "write the predicted timeline, memory and modules for\n"          \
             "ui.perfetto.dev; compressed if FILE ends in .gz"},               \
    {"snapshot", 0, OPTION_STRING, "FILE",                                     \
     offsetof(structure, member.snapshot),                                     \
     .once = true, .help = "write the allocator's calls as a memory snapshot for\n"          \
             "PyTorch's memory_viz page"},                                     \
    {"kineto", 0, OPTION_STRING, "FILE", offsetof(structure, member.study.kineto),   \
     .once = true, .help = "write the predicted timeline in the format of\n"                 \
             "PyTorch's profiler; ui.perfetto.dev shows it"},                  \
    {"chakra", 0, OPTION_STRING, "DIR", offsetof(structure, member.study.chakra),    \
     .once = true, .help = "write the predicted timeline as Chakra execution\n"              \
             "traces, DIR/chakra.RANK.et"},                                    \
    {"flame", 0, OPTION_STRING, "FILE", offsetof(structure, member.flame),     \
     .once = true, .help = "write the memory at the peak by Python stack (--stacks)\n"       \
             "as folded stacks, for speedscope.app or flamegraph.pl"},         \
    OUTPUT_SUMMARY_ROWS(structure, member),                                    \
    {"verbose", 'v', OPTION_FLAG, NULL, offsetof(structure, member.verbose),   \
     .help = "print all that is known: small rows, the critical path,\n"       \
             "what the prices rest on"},                                       \
    {"depends", 0, OPTION_STRING, "OPERATION",                                 \
     offsetof(structure, member.study.depends),                                      \
     .help = "list what operations of a step waited for, and what\n"           \
             "waited for them: part of a kernel's or module's name,\n"         \
             "or #NUMBER"},                                                    \
    {"timeline", 0, OPTION_FLAG, NULL, offsetof(structure, member.timeline),   \
     .help = "show memory over time: by category, by phase, and\n"             \
             "the peak of each module"},                                       \
    {"steps", 0, OPTION_COUNT, "N", offsetof(structure, member.study.steps),         \
     .minimum = 1, .maximum = UINT32_MAX,                                      \
     .help = "the job will run N steps: exit with 123 if memory grows\n"       \
             "and runs out before"},                                           \
    {"whole-job", 0, OPTION_FLAG, NULL,                                        \
     offsetof(structure, member.study.whole_job),                              \
     .help = "the job ends where the command does: judge what was\n"           \
             "run, also without steps"},                                       \
    {"input-max", 0, OPTION_STRING, "[DIM=]N",                                 \
     offsetof(structure, member.study.input_max),                                    \
     .help = "the longest sample has N tokens: say what it needs, by\n"        \
             "recorded steps with samples of different lengths; exit\n"       \
             "with 123 if it does not fit. DIM: token, value, sample,\n"      \
             "batch-token, batch-value"},                                      \
    {"worst-batch", 0, OPTION_FLAG, NULL,                                      \
     offsetof(structure, member.study.worst_batch),                                  \
     .help = "say what the largest batch of the data set needs, which\n"       \
             "the run reads; exit with 123 if it does not fit"},               \
    {"advice", 0, OPTION_FLAG, NULL, offsetof(structure, member.study.advice),       \
     .help = "list changes that save memory: activation\n"                     \
             "checkpointing, a bf16 optimizer, allocator settings"},           \
    STUDY_TIME_ROWS(structure, member.study)

/* Those that a report on no single run has as well. */
#define OUTPUT_JSON_ROW(structure, member)                                     \
    {"json", 0, OPTION_STRING, "FILE", offsetof(structure, member.json),       \
     .group = "Output files", .once = true,                                    \
     .help = "write all figures as JSON; - is stdout"}

#define OUTPUT_SUMMARY_ROWS(structure, member)                                 \
    {"depth", 0, OPTION_COUNT, "N", offsetof(structure, member.depth),         \
     .minimum = 1, .maximum = 100, .group = "Summary",                         \
     .help = "levels of modules to show; a list of layers is none\n"             \
             "(default 2; 3 with --verbose and in diff)"},                         \
    {"top", 0, OPTION_COUNT, "N", offsetof(structure, member.top),             \
     .minimum = 1, .maximum = 1000000,                                         \
     .help = "children to show of each module, the largest first\n"            \
             "(default 5)"},                                                   \
    {"quiet", 'q', OPTION_FLAG, NULL, offsetof(structure, member.quiet),       \
     .help = "print no summary"},                                              \
    {"color", 0, OPTION_CHOICE, "auto|always|never",                           \
     offsetof(structure, member.color),                                        \
     .help = "use colours; auto (default): on a terminal, unless\n"            \
             "NO_COLOR is set"}
/* clang-format on */

/* Can this memsim write what OPTIONS ask for, and is there such a cluster?
 * Returns 0 or -1. */
int output_check(const struct output_options *options, struct err *err);

struct cluster;

/* See study_cluster_assumed; of JOB, where it has several nodes; NULL: it has
 * not. */
struct job;
const char *output_cluster_of_job(const struct job *job,
                                  struct cluster *cluster);

/* The name of the GPU of --cluster, where the catalogue has it; else GPU. */
const char *output_cluster_gpu(const struct output_options *options,
                               const char *gpu);

/* Refuses an output of OPTIONS that is INPUT, a file, or a run's file in INPUT,
 * a directory; NULL: no input. Returns 0 or -1. */
int output_check_input(const struct output_options *options, const char *input,
                       struct err *err);

/* Where the summary of a command goes whose data is on stdout. */
FILE *output_summary_stream(const struct output_options *options);

/* Returns 0, or -1 where not all of the summary reached OUT. */
int output_summary_check(FILE *out, struct err *err);

/* Does --color ask for colours on OUT? */
bool output_color(const struct output_options *options, FILE *out);

struct study_sources;

/* Reports the run in DIR, whose command was COMMAND: the summary to OUT,
 * the rest where OPTIONS say. *TOLD: nothing failed on the way. Returns the
 * exit status of the run, CMD_RUN_FAILED where something could not be told.
 * SOURCES serve the advice. */
int output_run(const struct rundir *dir, const struct study_sources *sources,
               char *const *command, const struct output_options *options,
               FILE *out, bool *told);

#endif
