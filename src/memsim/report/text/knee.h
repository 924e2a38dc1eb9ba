/* SPDX-License-Identifier: Apache-2.0
 * How a step's time depends on the delay of its calls: hidden up to a knee,
 * then linear, with the number of calls that a step waits for as slope. */
#ifndef MEMSIM_MEMSIM_REPORT_TEXT_KNEE_H
#define MEMSIM_MEMSIM_REPORT_TEXT_KNEE_H

#include "memsim/report/text/compare_report.h"

struct knee_point {
    uint64_t delay_ns, step_ns;
};

struct knee {
    double hidden_ns; /* up to this the step takes as long; 0: not up to the
                         second point */
    bool all;         /* all delays that were tried are hidden */
    double start;     /* the slope at the start: calls that are never hidden */
    double slope;     /* ... and at the end: calls a step; 0: not known */
    double turn_ns;   /* where the two lines cross; 0: they do not */
};

/* Of COUNT points in ascending order of their delays, at least two. */
struct knee knee_find(const struct knee_point *points, size_t count);

/* The steps of REPORT's rows as bars, and their knee, for each group of rows
 * that differ in the delay alone. */
void knee_write(const struct compare_report *report, FILE *out);

struct cJSON;
void knee_json(struct cJSON *root, const struct compare_report *report);

#endif
