/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/json_add.h"

#include <inttypes.h>
#include <stdio.h>

void json_add_bytes(cJSON *object, const char *name, uint64_t bytes)
{
    char digits[24];

    snprintf(digits, sizeof digits, "%" PRIu64, bytes);
    cJSON_AddRawToObject(object, name, digits);
}

cJSON *json_add_object(cJSON *array)
{
    cJSON *object = cJSON_CreateObject();

    cJSON_AddItemToArray(array, object);
    return object;
}

void json_add_strings(cJSON *object, const char *name, char *const *texts,
                      size_t count)
{
    cJSON *array = cJSON_AddArrayToObject(object, name);

    for (size_t i = 0; i < count; i++)
        cJSON_AddItemToArray(array, cJSON_CreateString(texts[i]));
}
