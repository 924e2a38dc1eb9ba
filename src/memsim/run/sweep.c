/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/run/sweep.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"

#define COMBINATIONS_MAX 10000

/* --- reading -------------------------------------------------------------- */

static bool is_name(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)text[i]) && !strchr("_-.", text[i]))
            return false;
    return length > 0;
}

/* The next value of *LIST, up to a comma that no backslash precedes. */
static char *value_take(const char **list)
{
    char *value = xmalloc(strlen(*list) + 1), *out = value;

    for (; **list && **list != ','; ++*list) {
        if ((*list)[0] == '\\' && ((*list)[1] == ',' || (*list)[1] == '\\'))
            ++*list;
        *out++ = **list;
    }
    *out = '\0';
    return value;
}

static int axis_parse(struct sweep_axis *axis, const char *word,
                      struct err *err)
{
    const char *equals = strchr(word, '=');

    if (!equals || !is_name(word, (size_t)(equals - word)))
        return err_set(err, "%s: not NAME=VALUE,VALUE..., as in batch=1,2,4",
                       word);
    axis->name = xasprintf("%.*s", (int)(equals - word), word);
    for (const char *at = equals + 1;; at++) {
        axis->values =
            xreallocarray(axis->values, axis->count + 1, sizeof *axis->values);
        axis->values[axis->count++] = value_take(&at);
        if (!*at)
            return 0;
    }
}

static bool is_twice(const struct sweep *s)
{
    const char *name = s->axes[s->axis_count - 1].name;

    for (size_t i = 0; i + 1 < s->axis_count; i++)
        if (!strcmp(s->axes[i].name, name))
            return true;
    return false;
}

int sweep_parse(struct sweep *s, char *const *words, size_t count,
                struct err *err)
{
    int rc = 0;

    *s = (struct sweep){.combinations = 1};
    s->axes = xcalloc(count + 1, sizeof *s->axes);
    for (size_t i = 0; !rc && i < count; i++) {
        struct sweep_axis *axis = &s->axes[s->axis_count++];
        rc = axis_parse(axis, words[i], err);
        if (!rc && is_twice(s))
            rc = err_set(err, "%s: given twice", axis->name);
    }
    rc = rc ? rc : sweep_count(s, err);
    if (rc)
        sweep_fini(s);
    return rc;
}

int sweep_count(struct sweep *s, struct err *err)
{
    s->combinations = 1;
    for (size_t i = 0; i < s->axis_count; i++)
        if ((s->combinations *= s->axes[i].count) > COMBINATIONS_MAX)
            return err_set(err, "more than %d combinations", COMBINATIONS_MAX);
    return 0;
}

void sweep_fini(struct sweep *s)
{
    for (size_t i = 0; i < s->axis_count; i++) {
        for (size_t k = 0; k < s->axes[i].count; k++)
            free(s->axes[i].values[k]);
        free(s->axes[i].values);
        free(s->axes[i].name);
    }
    free(s->axes);
}

/* --- filling in ----------------------------------------------------------- */

const char *sweep_value(const struct sweep *s, size_t at, size_t axis)
{
    for (size_t i = s->axis_count; --i > axis;)
        at /= s->axes[i].count;
    return s->axes[axis].values[at % s->axes[axis].count];
}

/* The axis whose place, "{name}", is at TEXT; axis_count: none is. */
static size_t axis_at(const struct sweep *s, const char *text)
{
    for (size_t i = 0; i < s->axis_count; i++) {
        size_t length = strlen(s->axes[i].name);
        if (text[0] == '{' && !strncmp(text + 1, s->axes[i].name, length) &&
            text[length + 1] == '}')
            return i;
    }
    return s->axis_count;
}

static char *word_fill(const struct sweep *s, size_t at, const char *word)
{
    char *made = xstrdup("");

    while (*word) {
        size_t axis = axis_at(s, word), length = 1 + strcspn(word + 1, "{");
        bool place = axis < s->axis_count;
        char *longer = place ? xasprintf("%s%s", made, sweep_value(s, at, axis))
                             : xasprintf("%s%.*s", made, (int)length, word);
        free(made);
        made = longer;
        word += place ? strlen(s->axes[axis].name) + 2 : length;
    }
    return made;
}

char **sweep_command(const struct sweep *s, size_t at, char *const *command)
{
    size_t count = 0;

    while (command[count])
        count++;
    char **made = xcalloc(count + 1, sizeof *made);
    for (size_t i = 0; i < count; i++)
        made[i] = word_fill(s, at, command[i]);
    return made;
}

int sweep_check(const struct sweep *s, char *const *command,
                const char *free_name, struct err *err)
{
    for (size_t i = 0; i < s->axis_count; i++) {
        const char *name = s->axes[i].name;
        char *place = xasprintf("{%s}", name);
        bool found = !strcmp(name, SWEEP_GPU) || !strcmp(name, SWEEP_NODES) ||
                     (free_name && !strcmp(name, free_name));
        for (char *const *word = command; *word; word++)
            found = found || strstr(*word, place);
        free(place);
        if (!found)
            return err_set(err,
                           "%s: no {%s} in the command; write it where the "
                           "value goes, as in `--%s {%s}'",
                           name, name, name, name);
    }
    return 0;
}
