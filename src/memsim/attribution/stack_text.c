/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/attribution/stack_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"

/* Whether TEXT is within the first LENGTH bytes of LINE. */
static bool line_has(const char *line, size_t length, const char *text)
{
    const char *found = strstr(line, text);

    return found && found < line + length;
}

static bool is_package(const char *line, size_t length)
{
    return *line == '<' || line_has(line, length, "/site-packages/") ||
           line_has(line, length, "/dist-packages/") ||
           line_has(line, length, "/lib/python3");
}

bool stack_is_package(const char *file)
{
    return is_package(file, strlen(file));
}

/* "/a/b.py:3 forward" as "b.py:3": a path may have spaces, a function's name
 * has none. */
static void line_write(const char *line, size_t length, char *out, size_t size)
{
    size_t end = length, start;

    while (end && line[end - 1] != ' ')
        end--;
    end = end ? end - 1 : length;
    for (start = end; start && line[start - 1] != '/';)
        start--;
    snprintf(out, size, "%.*s", (int)(end - start), line + start);
}

void stack_line(const char *stack, char *out, size_t size)
{
    out[0] = '\0';
    if (!stack)
        return;
    line_write(stack, strcspn(stack, "\n"), out, size);
    for (const char *line = stack; *line;) {
        size_t length = strcspn(line, "\n");
        if (!is_package(line, length)) {
            line_write(line, length, out, size);
            return;
        }
        line += length + (line[length] == '\n');
    }
}

size_t stack_frames(const char *stack, char ***frames)
{
    size_t count = 0;

    *frames = NULL;
    for (const char *line = stack; line && *line;) {
        size_t length = strcspn(line, "\n");
        *frames = xreallocarray(*frames, count + 1, sizeof **frames);
        memmove(*frames + 1, *frames, count * sizeof **frames);
        **frames = xasprintf("%.*s", (int)length, line);
        count++;
        line += length + (line[length] == '\n');
    }
    return count;
}

void stack_frames_free(char **frames, size_t count)
{
    while (count)
        free(frames[--count]);
    free(frames);
}
