/* SPDX-License-Identifier: Apache-2.0
 * The blocks of a GPU over the run, for the page of --html. */
#ifndef MEMSIM_MEMSIM_REPORT_PAGE_HISTORY_PAGE_H
#define MEMSIM_MEMSIM_REPORT_PAGE_HISTORY_PAGE_H

#include <cjson/cJSON.h>

#include "memsim/attribution/attribute.h"

/* Adds "history" to DEVICE, a GPU of the report; nothing if ATTRIBUTION, which
 * may be NULL, does not have it. */
void history_page_add(cJSON *device, const struct attribution *attribution);

#endif
