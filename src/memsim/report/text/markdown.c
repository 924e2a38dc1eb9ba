/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/text/markdown.h"

#include <string.h>

#include "common/base/text_clean.h"

const char *markdown_escape(char *out, size_t size, const char *text)
{
    size_t at = 0;

    while (*text) {
        size_t length = text_character(text);
        bool bad = !length || text_is_control(text);
        bool markup = !bad && strchr("\\`*_{}[]<>|#~&$@", *text);

        if (!length)
            length = 1;
        if (at + length + 2 > size)
            break;
        if (markup)
            out[at++] = '\\';
        if (bad)
            out[at++] = *text == '\n' ? ' ' : '?';
        else
            memcpy(out + at, text, length), at += length;
        text += length;
    }
    out[at] = '\0';
    return out;
}
