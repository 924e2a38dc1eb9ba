/* SPDX-License-Identifier: Apache-2.0
 * The files that options name, as one table: what is checked of them, and the
 * writing. */
#ifndef MEMSIM_MEMSIM_CLI_OUTPUT_FILES_H
#define MEMSIM_MEMSIM_CLI_OUTPUT_FILES_H

#include "memsim/cli/output.h"

/* A file, or directory, that an option names. */
struct output_target {
    const char *option;
    const char *path;  /* NULL: not asked for */
    bool is_directory; /* which cannot be "-" */
};

/* Refuses two of LIST that are one file, or both standard output. Returns 0 or
 * -1. */
int output_targets_check(const struct output_target *list, size_t count,
                         struct err *err);

/* Refuses one of LIST that is INPUT, a file, or a run's file in INPUT, a
 * directory; NULL: no input. Returns 0 or -1. */
int output_targets_check_input(const struct output_target *list, size_t count,
                               const char *input, struct err *err);

/* Whether one of LIST is standard output. */
bool output_targets_use_stdout(const struct output_target *list, size_t count);

/* Those of OPTIONS; returns how many there are, asked for or not. */
#define OUTPUT_TARGETS 8
size_t output_targets(const struct output_options *options,
                      struct output_target list[OUTPUT_TARGETS]);

/* Whether OPTIONS name any. */
bool output_targets_any(const struct output_options *options);

/* The writers of one kind of report; NULL: it has no such file. */
struct output_writers {
    const struct report_ops *json, *html, *perfetto, *flame;
};

/* Writes REPORT, of the kind that WRITERS write, to the files that OPTIONS name
 * and that are written from the report alone. Returns 0 or -1. */
int output_files(const struct output_options *options,
                 const struct output_writers *writers, const void *report,
                 struct err *err);

#endif
