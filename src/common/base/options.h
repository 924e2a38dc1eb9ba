/* SPDX-License-Identifier: Apache-2.0
 * Command-line options from one table, which is the help too. */
#ifndef MEMSIM_COMMON_BASE_OPTIONS_H
#define MEMSIM_COMMON_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "common/base/err.h"

enum option_type {
    OPTION_FLAG,     /* bool, no argument */
    OPTION_STRING,   /* const char *, borrowed from argv */
    OPTION_BYTES,    /* uint64_t: 80GiB, 80GB, 85899345920; not 0 */
    OPTION_COUNT,    /* uint32_t, from minimum to maximum */
    OPTION_PERCENT,  /* double, above 0 and up to 100: 90, 92.5, 90% */
    OPTION_FRACTION, /* double, from 0 to 1 */
    OPTION_NUMBER,   /* double, finite, from 0 */
    OPTION_LIST,     /* const char *; a repeated one is added behind a ";" */
    OPTION_CHOICE,   /* int: the index in `argument`, "auto|always|never" */
};

struct option_row {
    const char *name; /* without the dashes; NULL ends a table */
    char letter;      /* of the short form, 0 where there is none */
    enum option_type type;
    const char *argument; /* as the help shows it */
    size_t offset;        /* of the value in the command's own struct */
    const char *help;     /* lines after the first are indented likewise */
    unsigned minimum, maximum;
    const char *group; /* the heading above this row; NULL: none */
    bool once; /* a second one is an error: the first would be lost */
};

struct options {
    const char *command;  /* "memsim run" */
    const char *operands; /* "-- COMMAND..." */
    const char *summary;  /* for the help: what it does, its exit status */
    const char *examples; /* lines at the end of the help; NULL: none */
    const struct option_row *rows;
    bool command_follows; /* the first operand ends the options */
    bool assignments_first; /* ... but for NAME=VALUE; their "--" stays */
    const char *wanted;   /* the error where there are too few or too many */
    int operands_min;
    int operands_max; /* 0: no limit */
};

struct operands {
    int count;
    char **values; /* NULL-terminated, a part of argv */
};

enum options_outcome { OPTIONS_OK = 0, OPTIONS_HELP = 1, OPTIONS_ERROR = -1 };

/* Reads ARGV[1..ARGC) into VALUES, which holds the defaults already; argv is
 * put in order so that its operands come last. "--" ends the options. --help
 * needs no row. ERR is set on OPTIONS_ERROR; an unknown option's message names
 * the nearest ones. */
enum options_outcome options_parse(const struct options *options, int argc,
                                   char **argv, void *values,
                                   struct operands *operands, struct err *err);

/* Prints the usage line, the summary, the table by group and the examples. */
void options_help(const struct options *options, FILE *out);

#endif
