/* SPDX-License-Identifier: Apache-2.0
 * The table of names as a JSON Schema. */
#include <string.h>

#include "common/base/json_add.h"
#include "memsim/report/json/schema.h"

#define DRAFT "https://json-schema.org/draft/2020-12/schema"

static void add_text(cJSON *to, const char *name, const char *text)
{
    cJSON_AddStringToObject(to, name, text);
}

static void add_reference(cJSON *to, const char *object)
{
    char path[80];

    snprintf(path, sizeof path, "#/$defs/%s", object);
    add_text(to, "$ref", path);
}

static void add_words(cJSON *to, const char *words)
{
    cJSON *array = cJSON_AddArrayToObject(to, "enum");
    char word[48];

    for (const char *at = words; *at;) {
        size_t width = strcspn(at, "|");
        snprintf(word, sizeof word, "%.*s", (int)width, at);
        cJSON_AddItemToArray(array, cJSON_CreateString(word));
        at += width + (at[width] == '|');
    }
}

static void add_base(cJSON *to, const char *base)
{
    static const struct {
        const char *base, *type;
    } plain[] = {
        {"uint", "integer"}, {"int", "integer"}, {"number", "number"},
        {"bool", "boolean"}, {"text", "string"}, {"hex", "string"},
    };

    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (!strcmp(base, plain[i].base)) {
            add_text(to, "type", plain[i].type);
            if (!strcmp(base, "uint"))
                cJSON_AddNumberToObject(to, "minimum", 0);
            return;
        }
    if (strchr(base, '|'))
        add_words(to, base);
    else
        add_reference(to, base);
}

/* What the value is, null aside. */
static void add_shape(cJSON *to, const struct schema_type *t)
{
    if (t->shape == SCHEMA_ONE) {
        add_base(to, t->base);
        return;
    }
    add_text(to, "type", t->shape == SCHEMA_LIST ? "array" : "object");
    add_base(cJSON_AddObjectToObject(to, t->shape == SCHEMA_LIST
                                             ? "items"
                                             : "additionalProperties"),
             t->base);
}

static cJSON *field_to_json(const struct schema_field *f)
{
    struct schema_type t = schema_type_parse(f->type);
    cJSON *to = cJSON_CreateObject();

    add_text(to, "description", f->meaning);
    if (!t.nullable) {
        add_shape(to, &t);
        return to;
    }
    cJSON *either = cJSON_AddArrayToObject(to, "anyOf");
    add_text(json_add_object(either), "type", "null");
    add_shape(json_add_object(either), &t);
    return to;
}

static cJSON *object_to_json(const struct schema_object *o)
{
    cJSON *to = cJSON_CreateObject();

    add_text(to, "description", o->meaning);
    add_text(to, "type", "object");
    cJSON *properties = cJSON_AddObjectToObject(to, "properties");
    cJSON *required = cJSON_AddArrayToObject(to, "required");
    for (; o; o = o->of ? schema_object_find(o->of) : NULL)
        for (const struct schema_field *f = o->fields; f->name; f++) {
            cJSON_AddItemToObject(properties, f->name, field_to_json(f));
            if (!schema_type_parse(f->type).optional)
                cJSON_AddItemToArray(required, cJSON_CreateString(f->name));
        }
    return to;
}

cJSON *schema_to_json(void)
{
    cJSON *root = cJSON_CreateObject();

    add_text(root, "$schema", DRAFT);
    add_text(root, "title", "What memsim writes as JSON");
    add_text(root, "description",
             "Later versions may add members. A member that changes its "
             "meaning raises the version in \"schema\".");
    cJSON_AddNumberToObject(root, "version", SCHEMA_VERSION);
    cJSON *any = cJSON_AddArrayToObject(root, "anyOf");
    for (const char *const *name = schema_documents; *name; name++)
        add_reference(json_add_object(any), *name);
    cJSON *defs = cJSON_AddObjectToObject(root, "$defs");
    for (const struct schema_object *o = schema_objects; o->name; o++)
        cJSON_AddItemToObject(defs, o->name, object_to_json(o));
    return root;
}
