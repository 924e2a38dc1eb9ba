/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/advice/advice_edit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json_add.h"
#include "common/base/xmalloc.h"
#include "memsim/advice/advice_how.h"

/* A part of a file, as places.py writes it: lines from 1, bytes of a line from
 * 0. */
struct span {
    int line, column, end_line, end_column;
};

struct editing {
    cJSON *edits;
    const struct changeable *c;
    const cJSON *places;
};

static const cJSON *member_get(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static const char *get_text(const cJSON *object, const char *name)
{
    const char *text = cJSON_GetStringValue(member_get(object, name));

    return text ? text : "";
}

static int number_at(const cJSON *array, int index)
{
    const cJSON *item = cJSON_GetArrayItem(array, index);

    return cJSON_IsNumber(item) ? item->valueint : 0;
}

static struct span get_span(const cJSON *part)
{
    const cJSON *at = member_get(part, "at");

    return (struct span){number_at(at, 0), number_at(at, 1), number_at(at, 2),
                         number_at(at, 3)};
}

static bool is_known(const cJSON *edits, const cJSON *edit)
{
    const cJSON *other;

    cJSON_ArrayForEach(other, edits)
        if (cJSON_Compare(other, edit, true))
            return true;
    return false;
}

/* NEW takes the place of OLD, at AT in the file of PLACE. */
static void edit_add(struct editing *e, const char *kind, const cJSON *place,
                     struct span at, const char *old, const char *new)
{
    cJSON *edit = cJSON_CreateObject();

    cJSON_AddStringToObject(edit, "kind", kind);
    cJSON_AddStringToObject(edit, "file", get_text(place, "file"));
    cJSON_AddNumberToObject(edit, "line", at.line);
    cJSON_AddNumberToObject(edit, "column", at.column);
    cJSON_AddNumberToObject(edit, "end_line", at.end_line);
    cJSON_AddNumberToObject(edit, "end_column", at.end_column);
    cJSON_AddStringToObject(edit, "old", old);
    cJSON_AddStringToObject(edit, "new", new);
    if (is_known(e->edits, edit))
        cJSON_Delete(edit);
    else
        cJSON_AddItemToArray(e->edits, edit);
}

static void write_arguments(const cJSON *place, FILE *out)
{
    const cJSON *argument;
    const char *glue = "";

    cJSON_ArrayForEach(argument, member_get(place, "arguments"))
    {
        fprintf(out, "%s%s", glue, get_text(argument, "text"));
        glue = ", ";
    }
}

/* TEXT, as in struct edit_rule, with what PLACE has. The caller frees it. */
static char *expand_text(const char *text, const cJSON *place, const char *list)
{
    char *expanded = NULL;
    size_t size;
    FILE *out = open_memstream(&expanded, &size);

    while (*text) {
        const char *end = *text == '{' ? strchr(text, '}') : NULL;

        if (!end) {
            fputc(*text++, out);
            continue;
        }
        char *name = xasprintf("%.*s", (int)(end - text - 1), text + 1);
        if (!strcmp(name, "arguments"))
            write_arguments(place, out);
        else if (!strcmp(name, "function"))
            fputs(get_text(member_get(place, name), "text"), out);
        else if (!strcmp(name, "list"))
            fputs(list, out);
        else
            fputs(get_text(place, name), out);
        free(name);
        text = end + 1;
    }
    fclose(out);
    return expanded;
}

static bool argument_names(const char *argument, const char *name)
{
    size_t length = strlen(name);

    return length && !strncmp(argument, name, length) &&
           argument[length] == '=';
}

/* ARGUMENT takes the place of the one of its name, or comes last. */
static void add_argument(struct editing *e, const cJSON *place,
                         const char *argument)
{
    const cJSON *found, *last = NULL;
    struct span at = get_span(place);

    cJSON_ArrayForEach(found, member_get(place, "arguments"))
    {
        last = found;
        if (!argument_names(argument, get_text(found, "name")))
            continue;
        edit_add(e, "argument", place, get_span(found),
                 get_text(found, "text"), argument);
        return;
    }
    at.line = at.end_line;
    at.column = at.end_column - 1;
    if (last) {
        at.line = get_span(last).end_line;
        at.column = get_span(last).end_column;
    }
    at.end_line = at.line;
    at.end_column = at.column;
    char *new = xasprintf("%s%s", last ? ", " : "", argument);
    edit_add(e, "argument", place, at, "", new);
    free(new);
}

/* TEXT is a line of its own before LINE, COLUMN bytes in. */
static void add_line(struct editing *e, const cJSON *place, int line,
                     int column, const char *text)
{
    const struct span at = {line, 0, line, 0};
    char *new = xasprintf("%*s%s\n", column, "", text);

    edit_add(e, "statement", place, at, "", new);
    free(new);
}

/* Returns 0, or -1: PLACE is not such that it can be made. */
static int add_edit(struct editing *e, const struct edit_rule *rule,
                    const cJSON *place, const char *list)
{
    const cJSON *statement = member_get(place, "statement");
    int rc = 0;

    if (!place ||
        (strstr(rule->text, "{model}") && !member_get(place, "model")))
        return -1;
    char *text = expand_text(rule->text, place, list);
    switch (rule->kind) {
    case EDIT_CALL:
        edit_add(e, "call", place, get_span(place), get_text(place, "text"),
                 text);
        break;
    case EDIT_FUNCTION:
        edit_add(e, "call", place, get_span(member_get(place, "function")),
                 get_text(member_get(place, "function"), "text"), text);
        break;
    case EDIT_ARGUMENT:
        add_argument(e, place, text);
        break;
    case EDIT_STATEMENT:
        rc = statement ? 0 : -1;
        if (statement)
            add_line(e, place, number_at(statement, 0),
                     number_at(statement, 1), text);
        break;
    case EDIT_NONE:
        break;
    }
    free(text);
    return rc;
}

/* The path of LIST below a model that a wrapper has as "module". */
static const char *unwrap_list(const char *list)
{
    static const char wrapper[] = "module.";
    size_t length = sizeof wrapper - 1;

    return strncmp(list, wrapper, length) ? list : list + length;
}

/* RULE, for each list that CHANGE names where its call is one of a list's, and
 * for all lists where its text has one. */
static int apply_rule(struct editing *e, const struct edit_rule *rule,
                      const struct change *change)
{
    const struct module_lists *lists = &e->c->lists;
    const cJSON *place = advice_place(e->places, rule->role, NULL);
    bool by_list = place && member_get(place, "list") && change->checkpoint;
    int rc = 0;

    if (!by_list && !strstr(rule->text, "{list}"))
        return add_edit(e, rule, place, "");
    for (size_t i = 0; !rc && i < lists->count; i++) {
        if (by_list && !change->checkpoint[i])
            continue;
        if (by_list)
            place = advice_place(e->places, rule->role, lists->rows[i].name);
        rc = add_edit(e, rule, place, unwrap_list(lists->rows[i].name));
    }
    return rc;
}

/* Has PLACE an argument that is in NAMES, with blanks around each? */
static bool has_any(const cJSON *place, const char *names)
{
    const cJSON *argument;

    cJSON_ArrayForEach(argument, member_get(place, "arguments"))
    {
        char *name = xasprintf(" %s ", get_text(argument, "name"));
        bool found = names && name[2] && strstr(names, name);

        free(name);
        if (found)
            return true;
    }
    return false;
}

/* CHANGE is one alone. */
static int apply_change(struct editing *e, const struct change *change,
                        const char *framework)
{
    const struct advice_way way = advice_way(change, framework, e->places);
    const cJSON *place =
        way.rules[0].role ? advice_place(e->places, way.rules[0].role, NULL)
                          : NULL;
    int rc = place && !has_any(place, way.unless) ? 0 : -1;

    for (size_t i = 0; !rc && i < ADVICE_RULES && way.rules[i].role; i++)
        rc = apply_rule(e, &way.rules[i], change);
    if (rc || !way.import)
        return rc;
    char *text = xasprintf("import %s", way.import);
    add_line(e, place, member_get(place, "top")->valueint, 0, text);
    free(text);
    return 0;
}

cJSON *advice_edits(const struct change *change, const struct changeable *c,
                    const char *framework, const cJSON *places)
{
    struct editing e = {
        .edits = cJSON_CreateArray(), .c = c, .places = places};
    struct change parts[CHANGE_PARTS];
    size_t count = change_parts(change, parts);
    int rc = 0;

    for (size_t i = 0; !rc && i < count; i++)
        rc = apply_change(&e, &parts[i], framework);
    if (!rc)
        return e.edits;
    cJSON_Delete(e.edits);
    return NULL;
}

void advice_edit_environment(cJSON *edits, const char *name, const char *value)
{
    cJSON *edit = json_add_object(edits);

    cJSON_AddStringToObject(edit, "kind", "environment");
    cJSON_AddStringToObject(edit, "name", name);
    cJSON_AddStringToObject(edit, "value", value);
}

void advice_edit_option(cJSON *edits, const char *name, const char *value)
{
    cJSON *edit = json_add_object(edits);

    cJSON_AddStringToObject(edit, "kind", "option");
    cJSON_AddStringToObject(edit, "name", name);
    cJSON_AddStringToObject(edit, "value", value);
}
