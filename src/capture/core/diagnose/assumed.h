/* SPDX-License-Identifier: Apache-2.0
 * What the user says of values that memsim does not compute (--assume), and
 * loops that wait for such values. */
#ifndef MEMSIM_CAPTURE_CORE_DIAGNOSE_ASSUMED_H
#define MEMSIM_CAPTURE_CORE_DIAGNOSE_ASSUMED_H

#include <stdbool.h>
#include <stdint.h>

/* What --assume says of the line of Python that this thread is at, or of a line
 * that called it: the innermost one. False where it says nothing. It may wait
 * for the interpreter's lock. */
bool assumed_here(double *value);

/* The same for a flag that is read: 1 or 0. A number between them is the share
 * of the line's reads that are true, and the false ones come last: 0.9 is a
 * loop of nine rounds. */
bool assumed_flag_here(double *value);

/* Whether it says anything of any line. */
bool assumed_any(void);

/* The share of an unknown mask's elements that counts as true here: that of
 * --assume, else of --selected-fraction. */
double assumed_fraction(void);

/* The script reads a FLAG that follows from unknown values. Returns what it
 * gets: each ASSUMED_READS-th time in a row that one line reads the same, the
 * other answer, so that a loop which waits for that ends. */
bool assumed_flag(bool flag);

#define ASSUMED_READS 10000u

#endif
