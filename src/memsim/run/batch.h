/* SPDX-License-Identifier: Apache-2.0
 * What `memsim fit-batch` finds out, and how it is told. */
#ifndef MEMSIM_MEMSIM_BATCH_H
#define MEMSIM_MEMSIM_BATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "memsim/run/batch_search.h"
#include "memsim/report/report.h"

enum batch_verdict {
    BATCH_FITS,
    BATCH_OOM,
    BATCH_CAUGHT, /* out of memory, and the command went on */
    BATCH_OVER_LIMIT,
    BATCH_FAILED, /* for another reason: nothing is known */
};

/* One run. The figures are those of its fullest card. */
struct batch_outcome {
    uint64_t batch;
    enum batch_verdict verdict;
    int status; /* the command's own */
    uint64_t peak_used_bytes, peak_reserved_bytes, peak_allocated_bytes;
    double seconds; /* that it took, then */
    bool cached;
};

/* All of them. */
struct batch_report {
    struct result result; /* first: a report_ops gets a pointer to it. Of it,
                             command (with its {}), gpu and exit_status */
    struct batch_search search;
    struct batch_outcome *outcomes;
    size_t outcome_count, outcome_capacity;
    int signal; /* that ended the search; 0: none did */
};

/* What RESULT comes to. */
struct batch_outcome batch_outcome_make(const struct result *result,
                                        uint64_t batch);

/* For people. */
const char *batch_verdict_text(enum batch_verdict verdict);

/* "fits", "oom", "caught-oom", "over-limit", "failed": as the JSON has it. */
const char *batch_verdict_name(enum batch_verdict verdict);

/* The name's verdict; -1: there is none of that name. */
int batch_verdict_find(const char *name);

/* COMMAND with BATCH in place of each {}. The caller frees it and each of its
 * strings, by batch_command_free. */
char **batch_command(char *const *command, uint64_t batch);
void batch_command_free(char **command);

/* Is there a {} in COMMAND? */
bool batch_command_has_place(char *const *command);

/* A line for each run, under a heading. */
void batch_write_heading(FILE *out);
void batch_write_outcome(const struct batch_outcome *outcome, FILE *out);

/* What it comes to, and what is to be known of it. */
void batch_write_conclusion(const struct batch_report *report, FILE *out);

extern const struct report_ops batch_report_json;

#endif
