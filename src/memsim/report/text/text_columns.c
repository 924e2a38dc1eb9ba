/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/text/text_columns.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/text_clean.h"
#include "common/base/xmalloc.h"

#define MARGIN_MAX 7 /* "  note:" */

/* The next character of TEXT as a terminal may have it, in OUT, and the columns
 * it takes; *TEXT moves on. Control characters are written as numbers; Chinese,
 * Japanese and Korean ones, and symbols, are taken to be two columns wide. */
static int character_take(const char **text, char out[8])
{
    const unsigned char *s = (const unsigned char *)*text;
    size_t length = text_character(*text);

    if (!length || text_is_control(*text)) {
        length += !length;
        *text += length;
        return snprintf(out, 8, "\\x%02x", s[length - 1]);
    }
    memcpy(out, s, length);
    out[length] = '\0';
    *text += length;
    return *s >= 0xe1 ? 2 : 1;
}

static int text_columns(const char *text)
{
    char out[8];
    int columns = 0;

    while (*text)
        columns += character_take(&text, out);
    return columns;
}

static void text_write(FILE *out, const char *text)
{
    char next[8];

    while (*text) {
        character_take(&text, next);
        fputs(next, out);
    }
}

/* TEXT from its next dot on, or else the next end of a word, if it has one: a
 * name is cut there. */
static const char *next_part(const char *text)
{
    const char *dot = strchr(text, '.');

    if (!dot || !dot[1] || dot[1] == ' ')
        dot = strpbrk(text, " _");
    return dot && dot[1] ? dot : text;
}

void text_write_end(FILE *out, const char *text, int columns)
{
    char next[8];
    int width = text_columns(text);

    if (width > columns) {
        fputs("...", out);
        while (width > columns - 3)
            width -= character_take(&text, next);
        text = next_part(text);
        text += *text == '.' || *text == '_' || *text == ' ';
    }
    text_write(out, text);
}

void text_write_wrapped(FILE *out, const char *first, const char *text)
{
    int column = fprintf(out, "%s", first);
    int margin = column < MARGIN_MAX ? column : MARGIN_MAX;
    char *words = xstrdup(text), *rest = words;

    for (char *word; (word = strsep(&rest, " \n"));) {
        int columns = text_columns(word);
        if (column + 1 + columns > TEXT_COLUMNS)
            column = fprintf(out, "\n%*s", margin, "") - 1;
        fputc(' ', out);
        text_write(out, word);
        column += 1 + columns;
    }
    free(words);
    fputc('\n', out);
}
