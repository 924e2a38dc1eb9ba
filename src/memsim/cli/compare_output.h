/* SPDX-License-Identifier: Apache-2.0
 * What `memsim compare' and `memsim sweep' have in common: the options that say
 * where the comparison goes, and the writing. */
#ifndef MEMSIM_MEMSIM_CLI_COMPARE_OUTPUT_H
#define MEMSIM_MEMSIM_CLI_COMPARE_OUTPUT_H

#include "memsim/cli/output.h"
#include "memsim/report/text/compare_report.h"

struct compare_output {
    const char *csv, *chart, *html, *price;
    double tokens;
    struct output_options common; /* of it: json, markdown, quiet, color */
};

/* clang-format off */
#define COMPARE_OUTPUT_ROWS(structure, member)                                 \
    {"json", 0, OPTION_STRING, "FILE",                                         \
     offsetof(structure, member.common.json), .group = "Output",               \
     .help = "write the table as JSON; - is standard output"},                 \
    {"chart", 0, OPTION_STRING, "FILE", offsetof(structure, member.chart),     \
     .help = "write a chart as SVG; - is standard output"},                    \
    {"html", 0, OPTION_STRING, "FILE", offsetof(structure, member.html),       \
     .help = "write a page with chart and table; - is standard output"},       \
    {"csv", 0, OPTION_STRING, "FILE", offsetof(structure, member.csv),         \
     .help = "write the table as CSV; - is standard output"},                  \
    {"markdown", 0, OPTION_STRING, "FILE",                                     \
     offsetof(structure, member.common.markdown),                              \
     .help = "write the table as Markdown; - is standard output"},             \
    {"tokens", 0, OPTION_NUMBER, "N", offsetof(structure, member.tokens),      \
     .help = "add the hours of GPUs that N tokens take: 1e9"},                 \
    {"price", 0, OPTION_STRING, "PRICE", offsetof(structure, member.price),    \
     .help = "with --tokens: add what they cost. Of an hour of one\n"          \
             "GPU: 2.99; of a node of 8: 98.5/8; or a file like\n"             \
             "{\"h100\": 2.99, \"l4\": 0.71}"},                                \
    {"quiet", 'q', OPTION_FLAG, NULL,                                          \
     offsetof(structure, member.common.quiet), .help = "print no table"},      \
    {"color", 0, OPTION_CHOICE, "auto|always|never",                           \
     offsetof(structure, member.common.color),                                 \
     .help = "use colours; auto (default): on a terminal, unless\n"            \
             "NO_COLOR is set"}
/* clang-format on */

/* Refuses an output that is INPUT, or a run's file in it, and two outputs that
 * are one file. INPUT may be NULL. Returns 0 or -1. */
int compare_output_check(const struct compare_output *o, const char *input,
                         struct err *err);

/* Reads what N tokens are to cost into REPORT. Returns 0, or -1 with ERR set;
 * *PRICES is to be given to prices_fini in both cases, after the report. */
int compare_output_terms(const struct compare_output *o,
                         struct compare_report *report, struct prices *prices,
                         struct err *err);

/* Writes the table, and the files that O names. Returns 0 or -1. */
int compare_output_write(const struct compare_output *o,
                         const struct compare_report *report, struct err *err);

#endif
