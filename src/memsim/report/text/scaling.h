/* SPDX-License-Identifier: Apache-2.0
 * How well a job uses more nodes. */
#ifndef MEMSIM_MEMSIM_REPORT_TEXT_SCALING_H
#define MEMSIM_MEMSIM_REPORT_TEXT_SCALING_H

#include "memsim/report/text/compare_report.h"

/* Sets the efficiency of REPORT's rows, AXIS being the column with the number
 * of nodes: the tokens a second and GPU over those of the row with the fewest
 * nodes that is else the same. Where no tokens are known, that row's step time
 * over a row's, as for a job whose work grows with its ranks. */
void scaling_find(struct compare_report *report, size_t axis);

/* Whether rows A and B differ in nothing but AXIS; the values of ROW but for
 * AXIS, as "  NAME=VALUE". */
bool compare_rows_alike(const struct compare_report *report, size_t axis,
                        const struct compare_row *a,
                        const struct compare_row *b);
void compare_row_write_rest(const struct compare_report *report, size_t axis,
                            const struct compare_row *row, FILE *out);

/* The efficiencies as bars, by nodes; nothing where none is known. */
void scaling_write(const struct compare_report *report, size_t axis, FILE *out);

/* The same as a curve for each set of other values, in an SVG page at Y, and
 * how high that is; 0: there is nothing to draw. */
void scaling_chart(const struct compare_report *report, size_t axis, double y,
                   FILE *out);
double scaling_chart_height(const struct compare_report *report, size_t axis);

/* The number of nodes of ROW. */
unsigned long scaling_nodes(const struct compare_row *row, size_t axis);

#endif
