/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/options_words.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"

#define AT(type, values, row)                                                  \
    (*(const type *)(const void *)((const char *)(values) + (row)->offset))

/* The Ith of "auto|always|never". */
static char *choice_text(const char *choices, int i)
{
    for (; i > 0; i--)
        choices += strcspn(choices, "|") + 1;
    return xasprintf("%.*s", (int)strcspn(choices, "|"), choices);
}

/* The value of ROW as a text, NULL: there is none (a flag that is not set, a
 * string that was not given). */
static char *value_text(const struct option_row *row, const void *values)
{
    const char *text;

    switch (row->type) {
    case OPTION_FLAG:
        return AT(bool, values, row) ? xstrdup("") : NULL;
    case OPTION_STRING:
    case OPTION_LIST:
        text = AT(char *, values, row);
        return text ? xstrdup(text) : NULL;
    case OPTION_BYTES:
        return xasprintf("%" PRIu64, AT(uint64_t, values, row));
    case OPTION_COUNT:
        return xasprintf("%" PRIu32, AT(uint32_t, values, row));
    case OPTION_PERCENT:
    case OPTION_FRACTION:
    case OPTION_NUMBER:
        return xasprintf("%.17g", AT(double, values, row));
    case OPTION_CHOICE:
        return choice_text(row->argument, AT(int, values, row));
    }
    return NULL;
}

static void word_add(char ***words, size_t *count, char *word)
{
    *words = xreallocarray(*words, *count + 2, sizeof **words);
    (*words)[(*count)++] = word;
    (*words)[*count] = NULL;
}

void options_word_add(char ***words, size_t *count, const char *word)
{
    word_add(words, count, xstrdup(word));
}

void options_words_add(char ***words, size_t *count,
                       const struct option_row *rows, const void *values,
                       const void *defaults)
{
    for (const struct option_row *row = rows; row->name; row++) {
        char *value = value_text(row, values);
        char *usual = value_text(row, defaults);
        if (value && (!usual || strcmp(value, usual)))
            word_add(words, count,
                     row->type == OPTION_FLAG
                         ? xasprintf("--%s", row->name)
                         : xasprintf("--%s=%s", row->name, value));
        free(value);
        free(usual);
    }
}

char *options_words_names(const struct option_row *rows)
{
    char *text = xstrdup("");

    for (; rows->name; rows++) {
        char *longer =
            xasprintf("%s%s%s", text, *text ? "," : "", rows->name);
        free(text);
        text = longer;
    }
    return text;
}
