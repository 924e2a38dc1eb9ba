/* SPDX-License-Identifier: Apache-2.0
 * A diff put down for people, and for programs. */
#ifndef MEMSIM_MEMSIM_REPORT_TEXT_DIFF_REPORT_H
#define MEMSIM_MEMSIM_REPORT_TEXT_DIFF_REPORT_H

#include "memsim/report/report.h"
#include "memsim/report/text/time_diff.h"
#include "memsim/result/diff.h"

struct diff_report {
    const struct diff *diff;
    const char *before, *after; /* what the user called the runs */
    struct diff_limit limit;
    const struct time_diff *time;
    bool limits_time;     /* --fail-slower was given: */
    double slower_limit;  /* in per cent */
    struct diff_excess excess;
    bool past;    /* the limit; `excess` says how */
    bool slower;  /* past the limit of the time */
    char *words;  /* "the peak grew by 3.18 GiB (39.2%), ..." */
    char **notes; /* in what else the runs differ */
    size_t note_count;
};

/* Fills in what follows from the first seven members. */
void diff_report_init(struct diff_report *report);
void diff_report_fini(struct diff_report *report);

/* 80 columns. */
void diff_report_text(const struct diff_report *report,
                      const struct report_style *style, FILE *out);

/* For a pull request's comment; REPORT is a struct diff_report. */
void diff_report_markdown(const void *report, FILE *out);

/* One JSON object; REPORT is a struct diff_report. */
void diff_report_json(const void *report, FILE *out);

#endif
