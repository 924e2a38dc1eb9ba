/* SPDX-License-Identifier: Apache-2.0
 * Standard input, output and error of our programs. */
#ifndef MEMSIM_COMMON_BASE_STANDARD_H
#define MEMSIM_COMMON_BASE_STANDARD_H

#include "common/base/err.h"

/* Keeps the numbers 0, 1 and 2 of descriptors that are closed from being given
 * to files that the program opens: what is printed would land in them. Reading
 * and writing such a number fails with EBADF; a program that is executed finds
 * it closed. Call it first in main. */
void standard_hold(void);

/* Writes out what was printed. Returns 0, or -1 where not all of it reached
 * standard output. */
int standard_finish(struct err *err);

#endif
