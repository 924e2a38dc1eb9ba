/* SPDX-License-Identifier: Apache-2.0
 * What the peak of a step depends on, in words and as JSON. */
#ifndef MEMSIM_MEMSIM_REPORT_LAW_REPORT_H
#define MEMSIM_MEMSIM_REPORT_LAW_REPORT_H

#include <cjson/cJSON.h>
#include <stdio.h>

#include "memsim/report/result.h"

/* Nothing where D's peak has no law. LENGTH: of the longest sample that the job
 * will have (--input-max); 0: not given. */
void law_text_write(const struct result_device *d, uint64_t length, FILE *out);
void law_json_add(cJSON *device, const struct result_device *d,
                  uint64_t length);

/* Sets RESULT's exit status where a sample of its input_max does not fit. Adds
 * a note there, and where input_max cannot be answered. */
void law_judge(struct result *result);

/* Whether a sample of LENGTH tokens does not fit on D, by the law. */
bool law_is_short(const struct result_device *d, uint64_t length);

#endif
