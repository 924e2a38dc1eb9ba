/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/xmalloc.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *check_memory(void *p)
{
    if (p)
        return p;
    fprintf(stderr, "%s: the host has no memory left\n",
            program_invocation_short_name);
    _exit(125);
}

void *xmalloc(size_t bytes)
{
    return check_memory(malloc(bytes ? bytes : 1));
}

void *xcalloc(size_t count, size_t bytes)
{
    return check_memory(calloc(count ? count : 1, bytes ? bytes : 1));
}

void *xreallocarray(void *p, size_t count, size_t bytes)
{
    size_t total;

    /* Not reallocarray: an allocator that is preloaded (jemalloc, tcmalloc) may
     * lack it, and another one's would get the block. */
    if (__builtin_mul_overflow(count ? count : 1, bytes ? bytes : 1, &total))
        return check_memory(NULL);
    return check_memory(realloc(p, total));
}

void xfree(void *p)
{
    free(p);
}

char *xstrdup(const char *text)
{
    return check_memory(strdup(text));
}

char *xasprintf(const char *format, ...)
{
    char *text = NULL;
    va_list args;

    va_start(args, format);
    int length = vasprintf(&text, format, args);
    va_end(args);
    return check_memory(length < 0 ? NULL : text);
}

void xgrow(void *p, size_t count, size_t *capacity, size_t bytes)
{
    void **array = p;

    if (count < *capacity)
        return;
    *capacity = *capacity ? *capacity * 2 : 16;
    *array = xreallocarray(*array, *capacity, bytes);
}
