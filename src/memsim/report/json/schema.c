/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/json/schema.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json_add.h"
#include "common/base/text_begins.h"
#include "common/base/version.h"

const struct schema_object *schema_object_find(const char *name)
{
    for (const struct schema_object *o = schema_objects; o->name; o++)
        if (!strcmp(o->name, name))
            return o;
    return NULL;
}

const struct schema_field *schema_field_find(const struct schema_object *object,
                                             const char *name)
{
    for (; object; object = object->of ? schema_object_find(object->of) : NULL)
        for (const struct schema_field *f = object->fields; f->name; f++)
            if (!strcmp(f->name, name))
                return f;
    return NULL;
}

static bool type_take(const char **type, const char *word)
{
    size_t length = strlen(word);

    if (strncmp(*type, word, length))
        return false;
    *type += length;
    return true;
}

struct schema_type schema_type_parse(const char *type)
{
    struct schema_type t = {.shape = SCHEMA_ONE};

    t.optional = type_take(&type, "optional ");
    t.nullable = type_take(&type, "nullable ");
    if (type_take(&type, "list of "))
        t.shape = SCHEMA_LIST;
    else if (type_take(&type, "map of "))
        t.shape = SCHEMA_MAP;
    t.base = type;
    return t;
}

/* --- the check ------------------------------------------------------------ */

/* Where in the document a value is: "ranks[0].devices[2].index". */
struct place {
    const struct place *above;
    const char *name; /* NULL: an item of a list */
    int index;
};

static size_t place_write(const struct place *p, char *to, size_t size)
{
    size_t n = p->above ? place_write(p->above, to, size) : 0;

    if (n >= size)
        return n;
    if (!p->name)
        return n + (size_t)snprintf(to + n, size - n, "[%d]", p->index);
    return n + (size_t)snprintf(to + n, size - n, "%s%s", n ? "." : "",
                                p->name);
}

static int place_error(const struct place *p, const char *what,
                       const char *more, struct err *err)
{
    char text[160];

    place_write(p, text, sizeof text);
    return err_set(err, "%s %s%s", text, what, more);
}

static bool is_integer(const char *digits)
{
    digits += *digits == '-';
    return *digits && !digits[strspn(digits, "0123456789")];
}

/* Numbers come as cJSON's or, so that no digit is lost, as raw text. */
static bool is_number(const cJSON *v, bool integer, bool negative)
{
    char *end;

    if (cJSON_IsRaw(v)) {
        (void)strtod(v->valuestring, &end);
        return end != v->valuestring && !*end &&
               (!integer || is_integer(v->valuestring)) &&
               (negative || *v->valuestring != '-');
    }
    return cJSON_IsNumber(v) && isfinite(v->valuedouble) &&
           (!integer || v->valuedouble == floor(v->valuedouble)) &&
           (negative || v->valuedouble >= 0);
}

static bool is_word(const char *words, const char *word)
{
    size_t length = strlen(word);

    for (const char *at = words; *at;) {
        size_t width = strcspn(at, "|");
        if (width == length && !memcmp(at, word, width))
            return true;
        at += width + (at[width] == '|');
    }
    return false;
}

static bool is_hex(const char *text)
{
    return text_begins(text, "0x") && text[2] &&
           !text[2 + strspn(text + 2, "0123456789abcdef")];
}

static bool is_plain(const char *base, const cJSON *v)
{
    const char *text = cJSON_IsString(v) ? v->valuestring : NULL;

    if (!strcmp(base, "uint"))
        return is_number(v, true, false);
    if (!strcmp(base, "int"))
        return is_number(v, true, true);
    if (!strcmp(base, "number"))
        return is_number(v, false, true);
    if (!strcmp(base, "bool"))
        return cJSON_IsBool(v);
    if (!strcmp(base, "text"))
        return text;
    if (!strcmp(base, "hex"))
        return text && (is_hex(text) || !strcmp(text, "0"));
    return strchr(base, '|') && text && is_word(base, text);
}

static int check_object(const struct schema_object *object, const cJSON *json,
                        const struct place *at, struct err *err);

static int check_one(const char *base, const cJSON *v, const struct place *at,
                     struct err *err)
{
    const struct schema_object *object = schema_object_find(base);

    if (object)
        return check_object(object, v, at, err);
    return is_plain(base, v) ? 0 : place_error(at, "is not ", base, err);
}

static int check_field(const struct schema_field *f, const cJSON *v,
                       const struct place *at, struct err *err)
{
    struct schema_type t = schema_type_parse(f->type);
    int index = 0;

    if (t.nullable && cJSON_IsNull(v))
        return 0;
    if (t.shape == SCHEMA_ONE)
        return check_one(t.base, v, at, err);
    if (t.shape == SCHEMA_LIST ? !cJSON_IsArray(v) : !cJSON_IsObject(v))
        return place_error(at, "is not a ", f->type, err);
    for (const cJSON *item = v->child; item; item = item->next) {
        const struct place below = {
            at, t.shape == SCHEMA_LIST ? NULL : item->string, index++};
        if (check_one(t.base, item, &below, err))
            return -1;
    }
    return 0;
}

static int check_missing(const struct schema_object *object, const cJSON *json,
                         const struct place *at, struct err *err)
{
    for (; object; object = object->of ? schema_object_find(object->of) : NULL)
        for (const struct schema_field *f = object->fields; f->name; f++)
            if (!schema_type_parse(f->type).optional &&
                !cJSON_GetObjectItemCaseSensitive(json, f->name))
                return place_error(at, "lacks ", f->name, err);
    return 0;
}

static int check_object(const struct schema_object *object, const cJSON *json,
                        const struct place *at, struct err *err)
{
    if (!cJSON_IsObject(json))
        return place_error(at, "is not an object: ", object->name, err);
    for (const cJSON *item = json->child; item; item = item->next) {
        const struct schema_field *f = schema_field_find(object, item->string);
        const struct place below = {at, item->string, 0};
        if (!f)
            return place_error(&below, "has no row in schema_table.c, object ",
                               object->name, err);
        if (check_field(f, item, &below, err))
            return -1;
    }
    return check_missing(object, json, at, err);
}

int schema_check(const char *name, const cJSON *json, struct err *err)
{
    const struct schema_object *object = schema_object_find(name);
    const struct place root = {NULL, "", 0};

    if (!object)
        return err_set(err, "%s: no such object in schema_table.c", name);
    return check_object(object, json, &root, err);
}

void schema_assert(const char *name, const cJSON *json)
{
    struct err err = {""};

    if (!getenv("MEMSIM_CHECK_JSON") || !schema_check(name, json, &err))
        return;
    fprintf(stderr, "memsim: a fault of memsim's: JSON of %s: %s\n", name,
            err.text);
    abort();
}

void schema_add_version(cJSON *root, const char *member)
{
    cJSON_AddNumberToObject(root, member, SCHEMA_VERSION);
    cJSON_AddStringToObject(root, "version", version_text());
}

void schema_print(const char *name, cJSON *root, FILE *out)
{
    schema_assert(name, root);
    json_print(root, out);
}

void schema_print_as(const char *name, cJSON *value, FILE *out)
{
    cJSON *root = cJSON_CreateObject();

    schema_add_version(root, "schema");
    cJSON_AddItemToObject(root, name, value);
    schema_print(name, root, out);
}
