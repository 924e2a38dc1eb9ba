/* SPDX-License-Identifier: Apache-2.0
 * An operation's work as a line of text: memsim trace --work --each. */
#ifndef MEMSIM_MEMSIM_TIME_WORK_LINE_H
#define MEMSIM_MEMSIM_TIME_WORK_LINE_H

#include <stdio.h>

#include "runtime/cost/cost.h"
#include "kernels/work.h"

/* "exact", "rule", "guessed", "unknown" */
const char *work_source_name(enum work_source source);

/* Prints "family key=value ... text": what WORK holds, with the shape of its
 * family, its PRICE and TEXT. */
void work_line_print(const struct work *work, const struct cost_answer *price,
                     const char *text, FILE *out);

#endif
