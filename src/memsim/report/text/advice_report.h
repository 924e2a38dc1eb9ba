/* SPDX-License-Identifier: Apache-2.0
 * Advice as reports tell it. */
#ifndef MEMSIM_MEMSIM_REPORT_TEXT_ADVICE_REPORT_H
#define MEMSIM_MEMSIM_REPORT_TEXT_ADVICE_REPORT_H

#include <cjson/cJSON.h>
#include <stdio.h>

#include "memsim/result/result.h"

/* Whether there is any, or it was asked for and there is none. Unasked, only
 * what would have met a request that failed is looked for. */
bool advice_is_told(const struct result_device *device);

/* For people; DIM and PLAIN switch the ink. */
void advice_write(const struct result_device *device, const char *dim,
                  const char *plain, FILE *out);

/* Adds the array "advice" to the object of its DEVICE. */
void advice_json_add(cJSON *object, const struct result_device *device);

#endif
