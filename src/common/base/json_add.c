/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/json_add.h"

#include <inttypes.h>
#include <stdlib.h>

void json_add_bytes(cJSON *object, const char *name, uint64_t bytes)
{
    char digits[24];

    snprintf(digits, sizeof digits, "%" PRIu64, bytes);
    cJSON_AddRawToObject(object, name, digits);
}

void json_append_bytes(cJSON *array, uint64_t bytes)
{
    char digits[24];

    snprintf(digits, sizeof digits, "%" PRIu64, bytes);
    cJSON_AddItemToArray(array, cJSON_CreateRaw(digits));
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

void json_print(cJSON *root, FILE *out)
{
    char *text = cJSON_Print(root);

    if (text)
        fprintf(out, "%s\n", text);
    free(text);
    cJSON_Delete(root);
}

void json_print_named(int schema, const char *key, cJSON *value, FILE *out)
{
    cJSON *root = cJSON_CreateObject();

    cJSON_AddNumberToObject(root, "schema", schema);
    cJSON_AddItemToObject(root, key, value);
    json_print(root, out);
}
