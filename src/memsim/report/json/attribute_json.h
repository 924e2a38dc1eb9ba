/* SPDX-License-Identifier: Apache-2.0
 * Attribution in the JSON report. */
#ifndef MEMSIM_MEMSIM_REPORT_JSON_ATTRIBUTE_JSON_H
#define MEMSIM_MEMSIM_REPORT_JSON_ATTRIBUTE_JSON_H

#include <cjson/cJSON.h>

#include "memsim/attribution/attribute.h"

/* Adds to OBJECT, if SHAPE ("float32 8x1024") is not empty, its type and its
 * dimensions. */
void attribute_json_shape(cJSON *object, const char *shape);

/* Adds all of ATTRIBUTION to the object of its DEVICE. */
void attribute_json_add(cJSON *device, const struct attribution *attribution);

/* Of that only memory over time and the segments at the peak. */
void attribute_json_add_memory(cJSON *device,
                               const struct attribution *attribution);

/* Adds P to the end of ARRAY, which owns what is returned. */
cJSON *attribute_json_point(cJSON *array, const struct attribution_point *p);

#endif
