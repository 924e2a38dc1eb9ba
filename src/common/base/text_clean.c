/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/text_clean.h"

#include <stdio.h>
#include <string.h>

#include "common/base/text_begins.h"

#define GAP   "..."
#define SHOWN 17 /* four bytes, as \xHH each */

/* The bytes after the first that begin with 10. */
static bool continues_character(const unsigned char *s, size_t count)
{
    for (size_t i = 1; i <= count; i++)
        if ((s[i] & 0xc0) != 0x80)
            return false;
    return true;
}

/* What begins a character of more than one byte, and what its second byte must
 * be: no longer form than is needed, no surrogates, nothing past U+10FFFF. */
static const struct first_byte {
    unsigned char low, high, second_low, second_high, length;
} first_bytes[] = {
    {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
    {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3},
    {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
    {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
};

size_t text_character(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;

    if (s[0] < 0x80)
        return s[0] ? 1 : 0;
    for (size_t i = 0; i < sizeof first_bytes / sizeof *first_bytes; i++) {
        const struct first_byte *f = &first_bytes[i];

        if (s[0] >= f->low && s[0] <= f->high)
            return s[1] >= f->second_low && s[1] <= f->second_high &&
                           continues_character(s, f->length - 1u)
                       ? f->length
                       : 0;
    }
    return 0;
}

/* Characters that turn the direction of text or end its line. */
static bool is_direction(const unsigned char *s)
{
    static const char marks[][4] = {
        "\u061c", "\u200e", "\u200f", "\u2028", "\u2029", "\u202a", "\u202b",
        "\u202c", "\u202d", "\u202e", "\u2066", "\u2067", "\u2068", "\u2069",
    };

    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (text_begins((const char *)s, marks[i]))
            return true;
    return false;
}

bool text_is_control(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;

    return s[0] < ' ' || s[0] == 0x7f || (s[0] == 0xc2 && s[1] < 0xa0) ||
           ((s[0] == 0xe2 || s[0] == 0xd8) && is_direction(s));
}

static void replace_bytes(char *text, bool controls)
{
    while (*text) {
        size_t length = text_character(text);

        if (!length)
            *text++ = '?';
        else if (controls && text_is_control(text))
            for (; length; length--)
                *text++ = '?';
        else
            text += length;
    }
}

void text_make_utf8(char *text)
{
    replace_bytes(text, false);
}

void text_make_printable(char *text)
{
    replace_bytes(text, true);
}

/* The next character of *TEXT as it is shown, in OUT; *TEXT moves on. Returns
 * its length there. */
static size_t character_take(const char **text, char out[SHOWN])
{
    size_t length = text_character(*text), width = 0;

    if (length && !text_is_control(*text)) {
        memcpy(out, *text, length);
        *text += length;
        return length;
    }
    for (length += !length; length; length--)
        width += (size_t)snprintf(out + width, SHOWN - width, "\\x%02x",
                                  (unsigned char)*(*text)++);
    return width;
}

void text_quote(char *out, size_t size, const char *text)
{
    size_t total = 0, at = 0, skipped = 0;
    char shown[SHOWN];

    for (const char *p = text; *p;)
        total += character_take(&p, shown);
    /* Too long: the first quarter stays, and as much of the end as fits. */
    bool cut = total >= size;
    size_t head = size / 4, excess = cut ? total - (size - sizeof GAP) : 0;
    while (*text) {
        size_t width = character_take(&text, shown);
        if (cut && at >= head && skipped < excess) {
            if (!skipped) {
                memcpy(out + at, GAP, sizeof GAP - 1);
                at += sizeof GAP - 1;
            }
            skipped += width;
            continue;
        }
        memcpy(out + at, shown, width);
        at += width;
    }
    out[at] = '\0';
}

void text_cut_at_word(char *text, size_t size)
{
    size_t end = size - sizeof "...";

    while (end > 0 && text[end] != ' ')
        end--;
    while (end > 0 && strchr(" ,;:(", text[end]))
        end--;
    strcpy(text + end + (end > 0), "...");
}
