/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/base/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define FIRST_BYTES 4096
#define PRINT_BYTES 4096 /* at a time, at most */

static bool buffer_grow(struct buffer *buffer, size_t bytes)
{
    size_t room = buffer->room ? buffer->room : FIRST_BYTES;

    while (room < bytes)
        room *= 2;
    if (room == buffer->room)
        return true;
    void *p = buffer->bytes
                  ? mremap(buffer->bytes, buffer->room, room, MREMAP_MAYMOVE)
                  : mmap(NULL, room, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return false;
    buffer->bytes = p;
    buffer->room = room;
    return true;
}

bool memsim_buffer_append(struct buffer *buffer, const void *bytes,
                          size_t count)
{
    if (!buffer_grow(buffer, buffer->used + count + 1))
        return false;
    memcpy(buffer->bytes + buffer->used, bytes, count);
    buffer->used += count;
    buffer->bytes[buffer->used] = '\0';
    return true;
}

bool memsim_buffer_print(struct buffer *buffer, const char *format, ...)
{
    char text[PRINT_BYTES];
    va_list arguments;

    va_start(arguments, format);
    int n = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return n >= 0 && n < (int)sizeof text &&
           memsim_buffer_append(buffer, text, (size_t)n);
}

void memsim_buffer_free(struct buffer *buffer)
{
    if (buffer->bytes)
        munmap(buffer->bytes, buffer->room);
    *buffer = (struct buffer){0};
}
