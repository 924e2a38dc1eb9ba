/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/err.h"

#include <stdarg.h>
#include <stdio.h>

int err_set(struct err *e, const char *format, ...)
{
    va_list args;

    if (!e || e->text[0])
        return -1;
    va_start(args, format);
    vsnprintf(e->text, sizeof e->text, format, args);
    va_end(args);
    return -1;
}

void err_clear(struct err *e)
{
    if (e)
        e->text[0] = '\0';
}
