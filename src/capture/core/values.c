/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/values.h"

#include <string.h>
#include <sys/mman.h>

#include "capture/core/pages.h"
#include "common/session.h"

#define GRANULE      (UINT64_C(2) << 20)
#define PAGE         UINT64_C(4096)
#define SHADOW_SHIFT (UINT64_C(1) << 44) /* below the windows, where free */

/* A granule's mark says that some byte of it may not be zero. */
static struct shadow {
    uint64_t base, bytes; /* of the window */
    char *memory;         /* NULL where there was no room */
    unsigned char *marks;
} shadows[SESSION_DEVICES + 1]; /* the last is vmm.c's window */
static int shadow_count; /* one more than the highest one placed */

void values_place(int device, uint64_t base, uint64_t bytes)
{
    struct shadow *s = &shadows[device];

    s->memory = memsim_pages_reserve(base - SHADOW_SHIFT, bytes);
    s->marks = memsim_pages_reserve(0, bytes / GRANULE);
    s->base = base;
    s->bytes = bytes;
    if (shadow_count <= device)
        shadow_count = device + 1;
}

static struct shadow *shadow_of(uint64_t address)
{
    for (int i = 0; i < shadow_count; i++)
        if (address - shadows[i].base < shadows[i].bytes)
            return &shadows[i];
    return NULL;
}

bool memsim_values_is_device(uint64_t address)
{
    return shadow_of(address);
}

static char *shadow_place(struct shadow *s, uint64_t address, uint64_t bytes)
{
    if (!s->memory || !s->marks || address + bytes > s->base + s->bytes)
        return NULL;
    return s->memory + (address - s->base);
}

static bool is_marked(const struct shadow *s, uint64_t address, uint64_t bytes)
{
    uint64_t first = (address - s->base) / GRANULE;
    uint64_t last = (address + bytes - 1 - s->base) / GRANULE;

    for (uint64_t i = first; i <= last; i++)
        if (s->marks[i])
            return true;
    return false;
}

static void mark(struct shadow *s, uint64_t address, uint64_t bytes)
{
    uint64_t first = (address - s->base) / GRANULE;
    uint64_t last = (address + bytes - 1 - s->base) / GRANULE;

    memset(s->marks + first, 1, last - first + 1);
}

static void zero(char *p, uint64_t bytes)
{
    uint64_t head = -(uint64_t)p % PAGE;

    if (bytes < 16 * PAGE) {
        memset(p, 0, bytes);
        return;
    }
    uint64_t whole = (bytes - head) / PAGE * PAGE;
    memset(p, 0, head);
    madvise(p + head, whole, MADV_DONTNEED);
    memset(p + head + whole, 0, bytes - head - whole);
}

void memsim_values_forget(uint64_t address, uint64_t bytes)
{
    struct shadow *s = shadow_of(address);
    char *p = s && bytes ? shadow_place(s, address, bytes) : NULL;

    if (!p)
        return;
    /* Granule by granule: most of a large block was never written. */
    while (bytes) {
        uint64_t part = GRANULE - (address - s->base) % GRANULE;

        if (part > bytes)
            part = bytes;
        if (is_marked(s, address, part))
            zero(p, part);
        if (part == GRANULE)
            s->marks[(address - s->base) / GRANULE] = 0;
        p += part;
        address += part;
        bytes -= part;
    }
}

/* The bytes of device memory at ADDRESS, or NULL where they are all zero. */
static const char *readable(uint64_t address, uint64_t bytes)
{
    struct shadow *s = shadow_of(address);

    if (!s)
        return (const char *)address; /* the host's */
    return is_marked(s, address, bytes) ? shadow_place(s, address, bytes)
                                        : NULL;
}

static char *writable(uint64_t address, uint64_t bytes)
{
    struct shadow *s = shadow_of(address);
    char *p = s ? shadow_place(s, address, bytes) : (char *)address;

    if (s && p)
        mark(s, address, bytes);
    return p;
}

void memsim_values_copy(uint64_t destination, uint64_t source, uint64_t bytes)
{
    if (!shadow_of(source) && !shadow_of(destination)) {
        memmove((void *)destination, (const void *)source, bytes);
        return;
    }
    if (!bytes || bytes > VALUES_COPY_BYTES)
        return;
    const char *from = readable(source, bytes);
    if (!from && shadow_of(destination)) {
        memsim_values_forget(destination, bytes);
        return;
    }
    char *to = writable(destination, bytes);
    if (!to)
        return;
    if (from)
        memmove(to, from, bytes);
    else
        memset(to, 0, bytes);
}

static bool is_zero(const unsigned char *value, uint64_t unit)
{
    while (unit)
        if (value[--unit])
            return false;
    return true;
}

void memsim_values_fill(uint64_t address, const void *value, uint64_t unit,
                        uint64_t count)
{
    if (is_zero(value, unit)) {
        memsim_values_forget(address, unit * count);
        return;
    }
    if (!count || unit * count > VALUES_COPY_BYTES || !shadow_of(address))
        return;
    char *to = writable(address, unit * count);
    if (!to)
        return;
    for (uint64_t i = 0; i < count; i++)
        memcpy(to + i * unit, value, unit);
}
