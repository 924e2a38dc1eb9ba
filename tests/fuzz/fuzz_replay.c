/* SPDX-License-Identifier: Apache-2.0
 * libFuzzer on memsim replay's traces: records that are whole, of any content
 * in any order, replay or are refused with a reason. The input: for each
 * record a kind, then five bytes that make its fields. */
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/units.h"
#include "common/trace/trace_read.h"
#include "memsim/replay/recording.h"
#include "trace_build.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define WORD(kind, field)                                                      \
    (offsetof(TRACE_STRUCT_##kind, field) / sizeof(uint64_t))
#define PLACED(kind, bytes)                                                    \
    {                                                                          \
        TRACE_##kind, WORD(kind, address), WORD(kind, bytes)                   \
    }
#define UNPLACED(kind, bytes)                                                  \
    {                                                                          \
        TRACE_##kind, 0, WORD(kind, bytes)                                     \
    }

static const struct {
    enum trace_kind kind;
    unsigned address, bytes; /* fields; 0: it has none */
} kinds[] = {
    PLACED(BLOCK_ALLOC, requested_bytes),
    PLACED(BLOCK_ALLOC, requested_bytes),
    PLACED(BLOCK_FREE, block_bytes),
    PLACED(BLOCK_FREE, block_bytes),
    PLACED(FREE_DONE, bytes),
    PLACED(SEGMENT_ALLOC, bytes),
    PLACED(SEGMENT_FREE, bytes),
    PLACED(SEGMENT_MAP, bytes),
    PLACED(SEGMENT_UNMAP, bytes),
    UNPLACED(OOM, requested_bytes),
    PLACED(DEVICE_MALLOC, bytes),
    PLACED(DEVICE_FREE, bytes),
    UNPLACED(DEVICE_REFUSE, bytes),
    UNPLACED(LIBRARY_MEMORY, bytes),
    UNPLACED(DEVICE, capacity_bytes),
};

static void add_record(struct build *b, const uint8_t *d)
{
    size_t row = d[0] % (sizeof kinds / sizeof *kinds);
    unsigned count = trace_kind_find(kinds[row].kind)->field_count;
    uint64_t fields[TRACE_FIELDS_MAX] = {0};

    fields[0] = d[1] == 255 ? UINT64_MAX : d[1] / 250; /* mostly device 0 */
    if (kinds[row].address)
        fields[kinds[row].address] =
            (UINT64_C(0x7000) << 32) + (uint64_t)d[2] * 2 * MIB;
    fields[kinds[row].bytes] = ((uint64_t)d[3] + 1) << (d[4] % 48);
    for (unsigned i = kinds[row].bytes + 1; i < count; i++)
        fields[i] = d[5] >> (i % 4) & 1;
    b->thread = d[5] >> 6;
    build_put_text(b, kinds[row].kind, NULL, fields, count);
}

static void replay(const char *path)
{
    struct recording r;
    struct recording_options options = {.torch = "2.11.0"};
    struct err err = {""};

    options.memory_bytes = 1 * GIB;
    if (recording_open(&r, path, &options, &err)) {
        if (!err.text[0])
            abort();
        return;
    }
    if (r.plan.blocks_checked &&
        !whatif_add(&r.whatif, "expandable_segments:True", false, &err))
        whatif_add(&r.whatif, "max_split_size_mb:30", false, &err);
    recording_close(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct build b = build_start();
    char path[64];
    int fd = memfd_create("trace", 0);

    BUILD_TEXT(&b, DEVICE, "card", .capacity_bytes = 1 * GIB,
               .context_bytes = 2 * MIB);
    for (size_t at = 0; at + 6 <= size; at += 6)
        add_record(&b, data + at);
    build_seal(&b);
    if (write(fd, b.data, b.bytes) == (ssize_t)b.bytes) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        replay(path);
    }
    close(fd);
    free(b.data);
    return 0;
}
