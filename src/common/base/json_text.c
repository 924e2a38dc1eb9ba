/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/json_text.h"
#include "common/base/err.h"
#include "common/base/units.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX_BYTES (64 * MIB)

char *json_text_read_stream(FILE *file, const char *path, size_t *length,
                            struct err *err)
{
    size_t size = 0, capacity = 1 << 14;
    char *text = malloc(capacity);

    while (text) {
        size += fread(text + size, 1, capacity - 1 - size, file);
        if (size < capacity - 1)
            break;
        if (capacity >= FILE_MAX_BYTES) {
            err_set(err, "%s: more than 64 MiB", path);
            goto free_text;
        }
        capacity *= 2;
        char *larger = realloc(text, capacity);
        if (!larger)
            free(text);
        text = larger;
    }
    if (!text) {
        err_set(err, "%s: the host has no memory left", path);
        return NULL;
    }
    if (ferror(file)) {
        err_set(err, "%s: %m", path);
        goto free_text;
    }
    text[size] = '\0';
    *length = size;
    return text;
free_text:
    free(text);
    return NULL;
}

char *json_text_read(const char *path, size_t *length, struct err *err)
{
    FILE *file = fopen(path, "re");

    if (!file) {
        err_set(err, "%s: %m", path);
        return NULL;
    }
    char *text = json_text_read_stream(file, path, length, err);
    fclose(file);
    return text;
}

static unsigned line_at(const char *text, const char *at)
{
    unsigned line = 1;

    for (; text < at; text++)
        line += *text == '\n';
    return line;
}

static const char *skip_space(const char *text, const char *end)
{
    while (text < end && *text && strchr(" \t\r\n", *text))
        text++;
    return text;
}

cJSON *json_text_parse(const char *text, size_t length, const char *origin,
                       struct err *err)
{
    const char *end = text;
    cJSON *root = cJSON_ParseWithLengthOpts(text, length, &end, 0);

    if (!root) {
        err_set(err, "%s:%u: no valid JSON here", origin, line_at(text, end));
        return NULL;
    }
    end = skip_space(end, text + length);
    if (end == text + length)
        return root;
    err_set(err, "%s:%u: something follows the end of the JSON text", origin,
            line_at(text, end));
    cJSON_Delete(root);
    return NULL;
}

/* The closing quote of the string that starts after AT, or END. */
static const char *string_end(const char *at, const char *end)
{
    while (at < end && *at != '"')
        at += *at == '\\' && at + 1 < end ? 2 : 1;
    return at;
}

const char *json_text_of(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

    return cJSON_IsString(item) ? item->valuestring : "";
}

unsigned json_text_key_line(const char *text, size_t length, const char *key)
{
    const char *end = text + length;
    size_t key_length = strlen(key);
    int depth = 0;

    for (const char *at = text; at < end; at++) {
        if (*at == '{' || *at == '[')
            depth++;
        else if (*at == '}' || *at == ']')
            depth--;
        if (*at != '"')
            continue;
        const char *close = string_end(at + 1, end);
        if (close >= end)
            break;
        const char *next = skip_space(close + 1, end);
        if (depth == 1 && (size_t)(close - at - 1) == key_length &&
            !memcmp(at + 1, key, key_length) && next < end && *next == ':')
            return line_at(text, at);
        at = close;
    }
    return 0;
}
