/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/cupti/buffer.h"

#include <string.h>

#define ALIGNED 8 /* ACTIVITY_RECORD_ALIGNMENT */

static CUpti_BuffersCallbackRequestFunc on_request;
static CUpti_BuffersCallbackCompleteFunc on_complete;
static struct {
    uint8_t *bytes; /* NULL: none is in use */
    size_t size, used;
    size_t most, count; /* records; most 0: as many as there is room for */
} buffer;
static size_t lost;

void buffers_register(CUpti_BuffersCallbackRequestFunc request,
                      CUpti_BuffersCallbackCompleteFunc complete)
{
    on_request = request;
    on_complete = complete;
}

bool buffers_registered(void)
{
    return on_request && on_complete;
}

void buffer_ready(void)
{
    uint8_t *bytes = NULL;
    size_t size = 0, most = 0;

    if (buffer.bytes || !buffers_registered())
        return;
    on_request(&bytes, &size, &most);
    if (!bytes)
        return;
    buffer.bytes = bytes;
    buffer.size = (uintptr_t)bytes % ALIGNED ? 0 : size;
    buffer.used = buffer.count = 0;
    buffer.most = most;
}

static bool has_room(size_t bytes)
{
    return buffer.bytes && bytes <= buffer.size - buffer.used &&
           (!buffer.most || buffer.count < buffer.most);
}

void buffer_put(const union record *r, CUpti_ActivityKind kind)
{
    size_t bytes = record_bytes(kind);

    if (buffer.bytes && !has_room(bytes))
        buffer_complete(true);
    buffer_ready();
    if (!has_room(bytes)) {
        lost++;
        return;
    }
    memcpy(buffer.bytes + buffer.used, r, bytes);
    buffer.used += bytes;
    buffer.count++;
}

void buffer_complete(bool always)
{
    uint8_t *bytes = buffer.bytes;

    if (!bytes || (!buffer.count && !always) || !on_complete)
        return;
    buffer.bytes = NULL;
    on_complete(NULL, 0, bytes, buffer.size, buffer.used);
}

void buffer_lost(size_t n)
{
    lost += n;
}

size_t buffer_lost_take(void)
{
    size_t n = lost;

    lost = 0;
    return n;
}
