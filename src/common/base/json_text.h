/* SPDX-License-Identifier: Apache-2.0
 * cJSON with errors that name a line. */
#ifndef MEMSIM_COMMON_BASE_JSON_TEXT_H
#define MEMSIM_COMMON_BASE_JSON_TEXT_H

#include <stddef.h>
#include <stdio.h>

struct cJSON;
struct err;

/* Reads a file of at most 64 MiB whole; the caller frees the text, which is
 * terminated beyond *LENGTH. Returns NULL on failure. */
char *json_text_read(const char *path, size_t *length, struct err *err);

/* The same of what is left of FILE; PATH stands for it in messages. */
char *json_text_read_stream(FILE *file, const char *path, size_t *length,
                            struct err *err);

/* Parses the LENGTH bytes of TEXT, which must be one JSON value and nothing
 * else; the caller deletes it with cJSON_Delete. ORIGIN stands for the file in
 * the message. Returns NULL on failure. */
struct cJSON *json_text_parse(const char *text, size_t length,
                              const char *origin, struct err *err);

/* The text that OBJECT has under KEY; "" where it has none. */
const char *json_text_of(const struct cJSON *object, const char *key);

/* The line of KEY among the outermost object's keys, the first being 1; 0
 * where it is not there, or written with escapes. */
unsigned json_text_key_line(const char *text, size_t length, const char *key);

#endif
