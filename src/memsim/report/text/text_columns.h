/* SPDX-License-Identifier: Apache-2.0
 * Text of any characters in so many columns of a terminal. Control characters
 * are written as numbers. */
#ifndef MEMSIM_MEMSIM_REPORT_TEXT_TEXT_COLUMNS_H
#define MEMSIM_MEMSIM_REPORT_TEXT_TEXT_COLUMNS_H

#include <stdio.h>

#define TEXT_COLUMNS 80 /* that a report may be wide */

/* Writes as much of TEXT as fits in COLUMNS; its end tells more than its
 * beginning. */
void text_write_end(FILE *out, const char *text, int columns);

/* Writes FIRST and the words of TEXT in lines of at most TEXT_COLUMNS, later
 * ones indented as far as FIRST is long, or 7 columns. */
void text_write_wrapped(FILE *out, const char *first, const char *text);

#endif
