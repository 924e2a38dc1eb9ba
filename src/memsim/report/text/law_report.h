/* SPDX-License-Identifier: Apache-2.0
 * What the peak of a step depends on, in words and as JSON. */
#ifndef MEMSIM_MEMSIM_REPORT_TEXT_LAW_REPORT_H
#define MEMSIM_MEMSIM_REPORT_TEXT_LAW_REPORT_H

#include <cjson/cJSON.h>
#include <stdio.h>

#include "memsim/result/result.h"

/* Reads --input-max, "4096" or "sample=64"; NULL: it was not given. Returns 0,
 * or -1 with ERR set. */
int law_wanted_parse(const char *text, struct result_wanted *wanted,
                     struct err *err);

/* n of the largest input, in the dimension of D's law; 0: not known. */
uint64_t law_wanted_size(const struct result_wanted *wanted,
                         const struct result_device *d);

/* Nothing where D's peak has no law. */
void law_text_write(const struct result_device *d,
                    const struct result_wanted *wanted, FILE *out);
void law_json_add(cJSON *device, const struct result_device *d,
                  const struct result_wanted *wanted);

/* RESULT's verdict where its largest input does not fit, or where what it needs
 * is not known. Adds a note there. */
void law_judge(struct result *result);

#endif
