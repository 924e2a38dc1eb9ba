/* SPDX-License-Identifier: Apache-2.0
 * Ways to write a result down. */
#ifndef MEMSIM_MEMSIM_REPORT_REPORT_H
#define MEMSIM_MEMSIM_REPORT_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "common/base/err.h"
#include "memsim/result/result.h"

struct report_style {
    bool color;
    bool timeline;       /* moments.h as well */
    bool verbose;        /* all that is known, not what matters */
    int columns;         /* of the terminal; 0: not known */
    unsigned depth, top; /* of the tree of modules; 0: as tree.h says */

    /* What comes before the summary's notes; NULL: nothing. */
    void (*more)(const void *report, const struct report_style *style,
                 FILE *out);
    const void *more_of; /* its report */
};

/* A format of one kind of report, which its declaration names. `write` is
 * called once with the report. */
struct report_ops {
    void (*write)(const void *report, const struct report_style *style,
                  FILE *out);
    bool gzip_by_name; /* a file whose name ends in .gz is compressed */
};

/* Of a struct result. */
extern const struct report_ops report_summary;  /* for people, 80 columns */
extern const struct report_ops report_json;     /* for programs */
extern const struct report_ops report_html;     /* see report_html_check */
extern const struct report_ops report_perfetto; /* for ui.perfetto.dev */

/* Writes REPORT, which is of the kind that OPS writes, to the file PATH: see
 * file_write. Returns 0 or -1. */
int report_write(const struct report_ops *ops, const void *report,
                 const char *path, struct err *err);

#endif
