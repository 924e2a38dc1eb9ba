/* SPDX-License-Identifier: Apache-2.0
 * The timeline of a step for the page of --html. */
#ifndef MEMSIM_MEMSIM_REPORT_PAGE_TIME_PAGE_H
#define MEMSIM_MEMSIM_REPORT_PAGE_TIME_PAGE_H

#include <cjson/cJSON.h>

#include "memsim/result/result.h"

/* Adds "step_timeline" to each rank of ROOT, RESULT's report, whose typical
 * step was kept. */
void time_page_add(cJSON *root, const struct result *result);

#endif
