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

/* Adds the GPUs that run E. */
static void entry_add(const struct entry *e, struct capability_set *set)
{
    switch (e->kind) {
    case KIND_PTX:
        capability_add(set, e->capability, CAPABILITIES - 1);
        break;
    case KIND_CUBIN:
        capability_add(set, e->capability, e->capability / 10 * 10 + 9);
        break;
    default: /* not known: better than to refuse what runs */
        capability_add(set, 0, CAPABILITIES - 1);
    }
}

/* As the compiler wrote it, so that it can be trusted; but no entry can be
 * shorter than what is read of it. */
static struct capability_set entries_read(const char *at, const char *end)
{
    struct capability_set set = {{0}};

    while (at < end && (uint64_t)(end - at) >= sizeof(struct entry)) {
        struct entry e;

        memcpy(&e, at, sizeof e);
        if (e.header_bytes < sizeof e)
            break;
        entry_add(&e, &set);
        if (e.bytes >= (uint64_t)(end - at))
            break;
        at += e.header_bytes + e.bytes;
    }
    return set;
}

struct capability_set fatbin_capabilities(const void *wrapper)
{
    const struct wrapper *w = wrapper;
    struct capability_set set = {{0}};
    struct fatbin f;

    if (w && w->magic == WRAPPER_MAGIC && w->fatbin) {
        memcpy(&f, w->fatbin, sizeof f);
        const char *at = (const char *)w->fatbin + f.header_bytes;
        if (f.magic == FATBIN_MAGIC && f.header_bytes >= sizeof f)
            set = entries_read(at, at + f.bytes);
    }
    if (capability_is_empty(&set))
        capability_add(&set, 0, CAPABILITIES - 1);
    return set;
}
