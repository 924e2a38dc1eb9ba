/* SPDX-License-Identifier: Apache-2.0
 * The readers behind bench_read, one a format. Each returns 0, or -1 where the
 * file cannot be read at all; whether it gave any rows is bench_read's to
 * judge. */
#ifndef MEMSIM_COMMFIT_READ_H
#define MEMSIM_COMMFIT_READ_H

#include "commfit/bench.h"

#define LINE_BYTES 65536 /* of a line; the rest of it is passed over */

struct lines {
    FILE *file;
    const char *path;   /* for messages */
    const char *source; /* its base name */
    uint64_t number;    /* of the line in TEXT; the first is 1 */
    size_t length;
    bool again; /* the next lines_next returns this line once more */
    char text[LINE_BYTES];
};

/* Reads the next line into TEXT, without its newline; NUL bytes become blanks.
 * Returns false at the end. */
bool lines_next(struct lines *lines);

int read_csv(struct bench *b, struct lines *lines, struct err *err);
int read_log(struct bench *b, struct lines *lines, struct err *err);
int read_json(struct bench *b, FILE *file, const char *path, const char *source,
              struct err *err);

/* Splits TEXT in place at blanks; returns the number of TOKENS, at most MAX. */
size_t split_blanks(char *text, char **tokens, size_t max);

#endif
