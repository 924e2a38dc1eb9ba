/* SPDX-License-Identifier: Apache-2.0
 * What a file or directory is that a command was given, by its content: one
 * command's output is another one's input, and people mix them up. */
#ifndef MEMSIM_MEMSIM_STUDY_INPUT_KIND_H
#define MEMSIM_MEMSIM_STUDY_INPUT_KIND_H

#include "common/base/err.h"

enum input_kind {
    INPUT_OTHER = 0,
    INPUT_RUN = 1 << 0,      /* directory of `memsim run -o' */
    INPUT_PROFILE = 1 << 1,  /* directory of `memsim import' */
    INPUT_TRACE = 1 << 2,    /* a process's, of either */
    INPUT_SNAPSHOT = 1 << 3, /* PyTorch's memory snapshot */
    INPUT_PROFILER = 1 << 4, /* a profiler's trace */
    INPUT_REPORT = 1 << 5,   /* file of --json */
    INPUT_SCRIPT = 1 << 6,   /* of Python, by its name */
};

/* INPUT_OTHER: none of these, or it cannot be read. */
enum input_kind input_kind_find(const char *path);

/* Refuses PATH where it is of a kind that is not in ACCEPTED (bits), and names
 * the command that takes it. What is none of the kinds passes. Returns 0 or
 * -1. */
int input_kind_check(const char *path, unsigned accepted, struct err *err);

#endif
