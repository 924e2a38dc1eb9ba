/* SPDX-License-Identifier: Apache-2.0
 * libFuzzer on memsim replay's traces: records that are whole, of any content
 * in any order, replay or are refused with a reason. The input: for each
 * record a kind, then five bytes that make its fields. */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/units.h"
#include "memsim/replay/recording.h"
#include "trace_build.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct {
    enum trace_kind kind;
    unsigned address, bytes; /* fields; 0: it has none */
    unsigned fields;
} kinds[] = {
    {TRACE_BLOCK_ALLOC, 1, 2, 9},   {TRACE_BLOCK_ALLOC, 1, 2, 9},
    {TRACE_BLOCK_FREE, 1, 2, 7},    {TRACE_BLOCK_FREE, 1, 2, 7},
    {TRACE_FREE_DONE, 1, 2, 4},     {TRACE_SEGMENT_ALLOC, 1, 2, 6},
    {TRACE_SEGMENT_FREE, 1, 2, 4},  {TRACE_SEGMENT_MAP, 1, 2, 6},
    {TRACE_SEGMENT_UNMAP, 1, 2, 4}, {TRACE_OOM, 0, 1, 6},
    {TRACE_DEVICE_MALLOC, 1, 2, 6}, {TRACE_DEVICE_FREE, 1, 2, 5},
    {TRACE_DEVICE_REFUSE, 0, 1, 5}, {TRACE_LIBRARY_MEMORY, 0, 1, 3},
    {TRACE_DEVICE, 0, 1, 4},
};

static void add_record(struct build *b, const uint8_t *d)
{
    size_t row = d[0] % (sizeof kinds / sizeof *kinds);
    uint64_t fields[9] = {0};

    fields[0] = d[1] == 255 ? UINT64_MAX : d[1] / 250; /* mostly device 0 */
    if (kinds[row].address)
        fields[kinds[row].address] =
            (UINT64_C(0x7000) << 32) + (uint64_t)d[2] * 2 * MIB;
    fields[kinds[row].bytes] = ((uint64_t)d[3] + 1) << (d[4] % 48);
    for (unsigned i = kinds[row].bytes + 1; i < kinds[row].fields; i++)
        fields[i] = d[5] >> (i % 4) & 1;
    b->thread = d[5] >> 6;
    build_put_text(b, kinds[row].kind, NULL, fields, kinds[row].fields);
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

    BUILD_TEXT(&b, TRACE_DEVICE, "card", 0, 1 * GIB, 2 * MIB, 0);
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
