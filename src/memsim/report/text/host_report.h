/* SPDX-License-Identifier: Apache-2.0
 * The host's memory, for people and as JSON. */
#ifndef MEMSIM_MEMSIM_REPORT_TEXT_HOST_REPORT_H
#define MEMSIM_MEMSIM_REPORT_TEXT_HOST_REPORT_H

#include <cjson/cJSON.h>
#include <stdio.h>

#include "memsim/result/result.h"

/* The lines of the summary; none where nothing is known. */
void host_text_write(const struct result *result, FILE *out);

/* What goes over the limit, behind the verdict. */
void host_verdict(const struct result *result, char *out, size_t size);

/* The member "host". */
void host_json_add(cJSON *root, const struct result *result);

#endif
