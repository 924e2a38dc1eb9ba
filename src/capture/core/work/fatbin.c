/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/work/fatbin.h"

#include <string.h>

#define WRAPPER_MAGIC 0x466243b1u /* as fatbinary_section.h has it */
#define FATBIN_MAGIC  0xba55ed50u

struct wrapper {
    uint32_t magic, version;
    const void *fatbin;
};

struct fatbin {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes; /* behind the header */
};

/* Each in front of its code, as cuobjdump lists them; the kind of code that the
 * compiler's own linker reads is another. */
enum kind { KIND_PTX = 1, KIND_CUBIN = 2 };

struct entry {
    uint16_t kind, version;
    uint32_t header_bytes;
    uint64_t bytes; /* behind the header */
    uint32_t compressed, options;
    uint16_t isa_minor, isa_major;
    uint32_t capability; /* 75 for 7.5 */
};

static bool entry_runs(const struct entry *e, uint32_t major, uint32_t minor)
{
    switch (e->kind) {
    case KIND_PTX:
        return e->capability <= 10 * major + minor;
    case KIND_CUBIN:
        return e->capability / 10 == major && e->capability % 10 <= minor;
    default:
        return true; /* not known: better than to refuse what runs */
    }
}

/* As the compiler wrote it, so that it can be trusted; but no entry can be
 * shorter than what is read of it. */
bool fatbin_runs(const void *wrapper, uint32_t major, uint32_t minor)
{
    const struct wrapper *w = wrapper;
    struct fatbin f;

    if (!w || w->magic != WRAPPER_MAGIC || !w->fatbin)
        return true;
    memcpy(&f, w->fatbin, sizeof f);
    if (f.magic != FATBIN_MAGIC || f.header_bytes < sizeof f)
        return true;
    const char *at = (const char *)w->fatbin + f.header_bytes;
    const char *end = at + f.bytes;
    bool any = false;
    while (at < end && (uint64_t)(end - at) >= sizeof(struct entry)) {
        struct entry e;

        memcpy(&e, at, sizeof e);
        if (e.header_bytes < sizeof e || entry_runs(&e, major, minor))
            return true;
        any = true;
        if (e.bytes >= (uint64_t)(end - at))
            break;
        at += e.header_bytes + e.bytes;
    }
    return !any;
}
