/* SPDX-License-Identifier: Apache-2.0
 * Several runs side by side: a row for each, with its peaks, its step time and
 * the smallest GPU that has room for it. */
#ifndef MEMSIM_MEMSIM_REPORT_TEXT_COMPARE_REPORT_H
#define MEMSIM_MEMSIM_REPORT_TEXT_COMPARE_REPORT_H

#include <stdio.h>

#include "memsim/report/report.h"
#include "memsim/report/text/compare_figures.h"

/* A run. What it is called is a cell for each of the columns of `titles`. */
struct compare_row {
    char **cells;
    const struct result *result; /* borrowed; NULL: it was not run */
    const char *why;             /* then: why; borrowed */
    double efficiency;           /* see scaling_find; 0: not known */
};

/* Delays of calls, of `memsim sweep delay=...'. */
struct compare_delays {
    size_t axis;  /* the title that they are */
    uint64_t *ns; /* by row */
};

struct compare_report {
    char **titles; /* of the columns that name a run */
    size_t title_count;
    struct compare_row *rows;
    size_t row_count;
    struct compare_terms terms;
    const struct compare_delays *delays; /* NULL: none; see knee.h */
    const size_t *nodes; /* the title that is a number of nodes; NULL: none */
};

/* In as many columns as it takes, a bar for used in each row. */
void compare_report_text(const struct compare_report *report,
                         const struct report_style *style, FILE *out);

/* For file_write; REPORT is a struct compare_report. Bytes and ns are numbers
 * in the CSV; what is not known is empty. */
void compare_report_markdown(const void *report, FILE *out);
void compare_report_csv(const void *report, FILE *out);
void compare_report_json(const void *report, FILE *out);
/* A page that needs nothing else: the chart, and the table below it. */
void compare_report_html(const void *report, FILE *out);

/* An SVG: a bar for the memory of each run, and one for its step's time; with
 * several numbers of nodes, the efficiency by them. */
void compare_report_chart(const void *report, FILE *out);

#endif
