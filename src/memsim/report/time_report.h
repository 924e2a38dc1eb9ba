/* SPDX-License-Identifier: Apache-2.0
 * Predicted step times in reports. */
#ifndef MEMSIM_MEMSIM_TIME_REPORT_H
#define MEMSIM_MEMSIM_TIME_REPORT_H

#include <cjson/cJSON.h>
#include <stdio.h>

#include "memsim/report/result.h"
#include "memsim/time/timing.h"

/* The timing of the rank whose typical step takes longest; NULL: no rank has a
 * step. */
const struct timing *time_slowest(const struct result *result);

/* Adds "steps" to a rank; "time" to the report. */
void time_json_steps(cJSON *rank, const struct timing *timing);
void time_json_add(cJSON *root, const struct result *result);

/* For people; DIM and PLAIN switch colours, "" without. */
void time_text_write(const struct result *result, const char *dim,
                     const char *plain, FILE *out);

#endif
