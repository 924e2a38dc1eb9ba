/* SPDX-License-Identifier: Apache-2.0
 * What the JSON writers add to objects and arrays of cJSON's. */
#ifndef MEMSIM_COMMON_BASE_JSON_ADD_H
#define MEMSIM_COMMON_BASE_JSON_ADD_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cjson/cJSON.h>

/* A whole number, digit by digit: cJSON prints a large double in the shortest
 * form that is nearly equal, 9.00719925474099e+15. */
void json_add_uint(cJSON *object, const char *name, uint64_t number);

/* The same, of a number of bytes. */
void json_add_bytes(cJSON *object, const char *name, uint64_t bytes);

/* So at the end of ARRAY. */
void json_append_uint(cJSON *array, uint64_t number);

/* An empty object at the end of ARRAY, which owns it. */
cJSON *json_add_object(cJSON *array);

/* An array of COUNT texts. */
void json_add_strings(cJSON *object, const char *name, char *const *texts,
                      size_t count);

/* A column of rows that are C structs: the double at AT becomes NAME. */
struct json_column {
    const char *name;
    size_t at;
};

/* ROWS, COUNT of them, SIZE bytes each, that begin with a char * text. */
struct json_rows {
    const void *rows;
    size_t count, size;
};

/* An array of objects, one a row: the row's text as WHAT, then the COLUMNS,
 * which end with a NULL name. */
void json_add_rows(cJSON *object, const char *name, const char *what,
                   const struct json_rows *rows,
                   const struct json_column *columns);

/* Prints ROOT and a line's end to OUT, and deletes it. */
void json_print(cJSON *root, FILE *out);

#endif
