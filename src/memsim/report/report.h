/* SPDX-License-Identifier: Apache-2.0
 * Ways to write a result down. */
#ifndef MEMSIM_MEMSIM_REPORT_H
#define MEMSIM_MEMSIM_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "common/base/err.h"
#include "memsim/report/result.h"

struct report_style {
    bool color;
    bool timeline;       /* moments.h as well */
    unsigned depth, top; /* of the tree of modules; 0: as tree.h says */
};

/* A format. `write` is called once with all that there is to tell. */
struct report_ops {
    void (*write)(const struct result *result, const struct report_style *style,
                  FILE *out);
    bool gzip_by_name; /* a file whose name ends in .gz is compressed */
};

extern const struct report_ops report_summary;  /* for people, 80 columns */
extern const struct report_ops report_json;     /* for programs */
extern const struct report_ops report_html;     /* see report_html_check */
extern const struct report_ops report_perfetto; /* for ui.perfetto.dev */

#define REPORT_JSON_SCHEMA 1

/* Writes RESULT to the file PATH, which appears whole or not at all; "-" is
 * stdout. Returns 0 or -1. */
int report_write(const struct report_ops *ops, const struct result *result,
                 const char *path, struct err *err);

/* The same for what is no run's result: WRITE is called once with WHAT. */
int report_write_file(void (*write)(const void *what, FILE *out),
                      const void *what, const char *path, struct err *err);

#endif
