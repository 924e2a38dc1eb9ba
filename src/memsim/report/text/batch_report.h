/* SPDX-License-Identifier: Apache-2.0
 * What `memsim fit-batch` found out, as text and as JSON. */
#ifndef MEMSIM_MEMSIM_REPORT_TEXT_BATCH_REPORT_H
#define MEMSIM_MEMSIM_REPORT_TEXT_BATCH_REPORT_H

#include <stdio.h>

#include "memsim/report/report.h"
#include "memsim/run/batch.h"
#include "memsim/run/batch_search.h"

/* All of them. */
struct batch_report {
    struct result result; /* of it: command (with its {}), gpu and
                             exit_status */
    struct batch_search search;
    struct batch_outcome *outcomes;
    size_t outcome_count, outcome_capacity;
    size_t unneeded_runs; /* made ahead, for a search that went elsewhere */
    int signal; /* that ended the search; 0: none did */
    uint32_t limit_s; /* of a run; 0: there is none */
};

/* What RESULT comes to; its times where it has them. */
struct batch_outcome batch_outcome_make(const struct result *result,
                                        uint64_t batch);

/* That of the batch that fits with most work a second; NULL: no step is
 * known. */
const struct batch_outcome *batch_best(const struct batch_report *report);

/* A line for each run, under a heading. */
void batch_write_heading(FILE *out);
void batch_write_outcome(const struct batch_outcome *outcome, FILE *out);

/* What it comes to, and what is to be known of it. */
void batch_write_conclusion(const struct batch_report *report, FILE *out);

/* Writes a struct batch_report. */
extern const struct report_ops batch_report_json;

#endif
