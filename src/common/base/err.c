/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/err.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

#include "common/base/text_clean.h"

int err_set(struct err *e, const char *format, ...)
{
    char whole[PATH_MAX + 1024]; /* a path and the reason */
    va_list args;

    if (!e || e->text[0])
        return -1;
    va_start(args, format);
    vsnprintf(whole, sizeof whole, format, args);
    va_end(args);
    text_quote(e->text, sizeof e->text, whole);
    return -1;
}

void err_clear(struct err *e)
{
    if (e)
        e->text[0] = '\0';
}
