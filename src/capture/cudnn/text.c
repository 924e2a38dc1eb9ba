/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/cudnn/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

void text_add(struct text *text, const char *format, ...)
{
    size_t left = sizeof text->bytes - text->used;
    va_list arguments;

    va_start(arguments, format);
    int n = vsnprintf(text->bytes + text->used, left, format, arguments);
    va_end(arguments);
    if (n > 0)
        text->used += (size_t)n < left ? (size_t)n : left - 1;
}

void text_add_numbers(struct text *text, const char *key,
                      const int64_t *numbers, int count)
{
    text_add(text, "%s=", key);
    for (int i = 0; i < count; i++)
        text_add(text, "%s%" PRId64, i ? "," : "", numbers[i]);
    text_add(text, " ");
}
