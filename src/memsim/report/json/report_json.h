/* SPDX-License-Identifier: Apache-2.0
 * The object of the JSON report, for writers that add to it or wrap it. */
#ifndef MEMSIM_MEMSIM_REPORT_JSON_REPORT_JSON_H
#define MEMSIM_MEMSIM_REPORT_JSON_REPORT_JSON_H

#include <cjson/cJSON.h>

#include "memsim/result/result.h"

/* Schema 1 of man/memsim.1; to be given to cJSON_Delete. */
cJSON *report_json_make(const struct result *result);

#endif
