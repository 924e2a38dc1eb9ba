/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/text_clean.h"

#include <stdio.h>
#include <string.h>

#define GAP "..."

/* The bytes after the first that begin with 10. */
static bool continues(const unsigned char *s, size_t count)
{
    for (size_t i = 1; i <= count; i++)
        if ((s[i] & 0xc0) != 0x80)
            return false;
    return true;
}

size_t text_character(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;

    if (s[0] < 0x80)
        return s[0] ? 1 : 0;
    if (s[0] < 0xc2 || s[0] > 0xf4)
        return 0;
    if (s[0] < 0xe0)
        return continues(s, 1) ? 2 : 0;
    if (s[0] < 0xf0) {
        if (!continues(s, 2) || (s[0] == 0xe0 && s[1] < 0xa0) ||
            (s[0] == 0xed && s[1] >= 0xa0))
            return 0;
        return 3;
    }
    if (!continues(s, 3) || (s[0] == 0xf0 && s[1] < 0x90) ||
        (s[0] == 0xf4 && s[1] >= 0x90))
        return 0;
    return 4;
}

bool text_is_control(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;

    return s[0] < ' ' || s[0] == 0x7f || (s[0] == 0xc2 && s[1] < 0xa0);
}

static void replace(char *text, bool controls)
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
    replace(text, false);
}

void text_make_printable(char *text)
{
    replace(text, true);
}

/* The next character of *TEXT as it is shown, in OUT; *TEXT moves on. Returns
 * its length there. */
static size_t take(const char **text, char out[12])
{
    size_t length = text_character(*text), width = 0;

    if (length && !text_is_control(*text)) {
        memcpy(out, *text, length);
        *text += length;
        return length;
    }
    for (length += !length; length; length--)
        width += (size_t)snprintf(out + width, 12 - width, "\\x%02x",
                                  (unsigned char)*(*text)++);
    return width;
}

void text_quote(char *out, size_t size, const char *text)
{
    size_t total = 0, at = 0, skipped = 0;
    char shown[12];

    for (const char *p = text; *p;)
        total += take(&p, shown);
    /* Too long: the first quarter stays, and as much of the end as fits. */
    bool cut = total >= size;
    size_t head = size / 4, excess = cut ? total - (size - sizeof GAP) : 0;
    while (*text) {
        size_t width = take(&text, shown);
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
