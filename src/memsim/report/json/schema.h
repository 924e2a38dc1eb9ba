/* SPDX-License-Identifier: Apache-2.0
 * The names in memsim's JSON: one row each in schema_table.c, with its type and
 * its meaning. The JSON Schema, man/memsim-json.5 and the checks are made of
 * that table. */
#ifndef MEMSIM_MEMSIM_REPORT_JSON_SCHEMA_H
#define MEMSIM_MEMSIM_REPORT_JSON_SCHEMA_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>

#include "common/base/err.h"

/* What the names below mean; raised when one changes its meaning or goes. */
#define SCHEMA_VERSION 1

/* TYPE is words: ["optional "] ["nullable "] ["list of " | "map of "] BASE. An
 * optional member may be missing; a map has any names. BASE is uint, int,
 * number, bool, text, hex (a text of 0x and digits), words with | between them,
 * one of which it is, or the name of an object of the table. */
struct schema_field {
    const char *name; /* NULL ends a list */
    const char *type;
    const char *meaning;
};

struct schema_object {
    const char *name; /* NULL ends the table */
    const char *meaning;
    const char *of; /* another object, whose fields it has too; or NULL */
    const struct schema_field *fields;
};

extern const struct schema_object schema_objects[];

/* What programs write whole: names of objects, ended by NULL. */
extern const char *const schema_documents[];

/* Returns the object NAME, or NULL. */
const struct schema_object *schema_object_find(const char *name);

/* Returns the field NAME of OBJECT or of what it has the fields of, or NULL. */
const struct schema_field *
schema_field_find(const struct schema_object *object, const char *name);

/* A type, taken apart. */
struct schema_type {
    bool optional, nullable;
    enum { SCHEMA_ONE, SCHEMA_LIST, SCHEMA_MAP } shape;
    const char *base;
};
struct schema_type schema_type_parse(const char *type);

/* Is JSON the object NAME, all of it: every member in the table and of its
 * type, and none missing? Returns 0, or -1 with the member's place in ERR. */
int schema_check(const char *name, const cJSON *json, struct err *err);

/* Ends the program where JSON is not the object NAME and MEMSIM_CHECK_JSON is
 * in the environment, as it is in the tests. */
void schema_assert(const char *name, const cJSON *json);

/* Begins the document ROOT: the version of the schema as MEMBER ("schema",
 * "diff_schema"), and memsim's as "version". */
void schema_add_version(cJSON *root, const char *member);

/* Prints ROOT, which it deletes, after schema_assert. */
void schema_print(const char *name, cJSON *root, FILE *out);

/* So, an object of the version and, under the document's NAME, of VALUE, which
 * it takes. */
void schema_print_as(const char *name, cJSON *value, FILE *out);

/* The table as a JSON Schema (draft 2020-12), to be given to cJSON_Delete. */
cJSON *schema_to_json(void);

#endif
