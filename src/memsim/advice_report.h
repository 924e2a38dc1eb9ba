/* SPDX-License-Identifier: Apache-2.0
 * Advice as reports tell it. */
#ifndef MEMSIM_MEMSIM_ADVICE_REPORT_H
#define MEMSIM_MEMSIM_ADVICE_REPORT_H

#include <cjson/cJSON.h>
#include <stdio.h>

#include "memsim/result.h"

/* For people; DIM and PLAIN switch the ink. */
void advice_write(const struct result_device *device, const char *dim,
                  const char *plain, FILE *out);

/* Adds the array "advice" to the object of its DEVICE. */
void advice_json_add(cJSON *object, const struct result_device *device);

#endif
