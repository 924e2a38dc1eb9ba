/* SPDX-License-Identifier: Apache-2.0
 * What the library can be asked: options, and the JSON of the answer. */
#ifndef MEMSIM_MEMSIM_LIBRARY_QUESTIONS_H
#define MEMSIM_MEMSIM_LIBRARY_QUESTIONS_H

#include <stdio.h>

#include "common/base/err.h"

/* A command of memsim's that is asked as a function. */
struct library_question;

extern const struct library_question library_report, library_replay,
    library_diff;

/* Writes the JSON to OUT that QUESTION with OPTIONS, of which NULL ends the
 * list, has about OPERANDS: one, or two of a comparison. Returns 0, or -1 with
 * ERR set. */
int library_ask(const struct library_question *question,
                const char *const *operands, const char *const *options,
                FILE *out, struct err *err);

#endif
