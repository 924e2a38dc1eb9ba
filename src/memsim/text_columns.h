/* SPDX-License-Identifier: Apache-2.0
 * Text of any characters in so many columns of a terminal. */
#ifndef MEMSIM_MEMSIM_TEXT_COLUMNS_H
#define MEMSIM_MEMSIM_TEXT_COLUMNS_H

#include <stdio.h>

/* Writes as much of TEXT as fits in COLUMNS; its end tells more than its
 * beginning. Control characters are written as numbers. */
void text_write_end(FILE *out, const char *text, int columns);

#endif
