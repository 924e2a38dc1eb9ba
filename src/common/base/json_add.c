/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/json_add.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/base/text_clean.h"

void json_add_uint(cJSON *object, const char *name, uint64_t number)
{
    char digits[24];

    snprintf(digits, sizeof digits, "%" PRIu64, number);
    cJSON_AddRawToObject(object, name, digits);
}

void json_add_bytes(cJSON *object, const char *name, uint64_t bytes)
{
    json_add_uint(object, name, bytes);
}

void json_append_uint(cJSON *array, uint64_t number)
{
    char digits[24];

    snprintf(digits, sizeof digits, "%" PRIu64, number);
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

void json_add_rows(cJSON *object, const char *name, const char *what,
                   const struct json_rows *rows,
                   const struct json_column *columns)
{
    cJSON *array = cJSON_AddArrayToObject(object, name);

    for (size_t i = 0; i < rows->count; i++) {
        const char *row = (const char *)rows->rows + i * rows->size;
        cJSON *item = json_add_object(array);
        cJSON_AddStringToObject(item, what, *(char *const *)row);
        for (const struct json_column *c = columns; c->name; c++)
            cJSON_AddNumberToObject(item, c->name,
                                    *(const double *)(row + c->at));
    }
}

void json_print(cJSON *root, FILE *out)
{
    char *text = cJSON_Print(root);

    if (text) {
        text_make_utf8(text);
        fprintf(out, "%s\n", text);
    }
    free(text);
    cJSON_Delete(root);
}
