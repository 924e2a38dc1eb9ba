/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MEMSIM_MEMSIM_REPORT_JSON_REPLAY_JSON_H
#define MEMSIM_MEMSIM_REPORT_JSON_REPLAY_JSON_H

#include <cjson/cJSON.h>

#include "memsim/report/text/replay_report.h"

/* R as JSON, to be given to cJSON_Delete. */
cJSON *replay_json_make(const struct replay_report *r);

#endif
