/* SPDX-License-Identifier: Apache-2.0
 * The places where a policy decided, for people. */
#ifndef MEMSIM_MEMSIM_REPORT_TEXT_GUESS_TEXT_H
#define MEMSIM_MEMSIM_REPORT_TEXT_GUESS_TEXT_H

#include <stdio.h>

#include "memsim/result/result.h"

/* Writes a line for each place of R, those of several modules together, the
 * first that were most often; --json has all of them. */
void guess_text_write(const struct result *r, FILE *out);

#endif
