/* SPDX-License-Identifier: Apache-2.0
 * Collectives that do not match, in reports. */
#ifndef MEMSIM_MEMSIM_REPORT_TEXT_COLLATION_REPORT_H
#define MEMSIM_MEMSIM_REPORT_TEXT_COLLATION_REPORT_H

#include <cjson/cJSON.h>
#include <stdio.h>

#include "memsim/result/result.h"

/* For people; nothing where all match. */
void collation_text_write(const struct result *result, FILE *out);

/* Adds "collective_faults" where some do not match. */
void collation_json_add(cJSON *root, const struct result *result);

#endif
