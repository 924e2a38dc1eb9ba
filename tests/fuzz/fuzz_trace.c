/* SPDX-License-Identifier: Apache-2.0
 * libFuzzer on the trace reader and on what follows its records. The first
 * byte of an input says how the rest is to be taken, since no fuzzer guesses
 * checksums:
 *
 *   bit 0: it is a whole file; else a sound header is put before it
 *   bit 1: checksums of sealed chunks are made right
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/crc32c.h"
#include "common/trace/trace_read.h"
#include "kernels/kernel_words.h"
#include "memsim/attribution/label.h"
#include "memsim/attribution/peak.h"
#include "memsim/result/result.h"

#define CHUNK_BYTES 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(int condition)
{
    if (!condition)
        abort();
}

static void header_make(unsigned char *file)
{
    struct trace_header h = {.version = TRACE_VERSION,
                             .chunk_bytes = CHUNK_BYTES};

    memcpy(h.magic, TRACE_MAGIC, sizeof h.magic);
    h.crc = crc32c(0, &h, sizeof h);
    memset(file, 0, TRACE_HEADER_BYTES);
    memcpy(file, &h, sizeof h);
}

static void checksums_repair(unsigned char *file, size_t size)
{
    for (size_t at = TRACE_HEADER_BYTES;
         at < size && size - at >= sizeof(struct trace_chunk);
         at += CHUNK_BYTES) {
        struct trace_chunk c;

        memcpy(&c, file + at, sizeof c);
        if (c.used_bytes < sizeof c || c.used_bytes > size - at)
            continue;
        c.crc = crc32c(0, file + at + sizeof c, c.used_bytes - sizeof c);
        memcpy(file + at, &c, sizeof c);
    }
}

/* Touches all that ITEM says is there; ASan watches. */
static uint64_t item_sum(const struct trace_item *item)
{
    const struct trace_kind_info *kind = trace_kind_find(item->head.kind);
    uint64_t sum = 0;

    demand(kind && kind->kind == item->head.kind);
    for (unsigned i = 0; i < item->head.fields; i++)
        sum += item->fields[i];
    for (size_t i = 0; i < item->head.text_bytes; i++)
        sum += (unsigned char)item->text[i];
    for (unsigned i = item->head.fields; i < TRACE_FIELDS_MAX; i++)
        demand(item->fields[i] == 0);
    return sum;
}

static void read_records(const unsigned char *file, size_t size)
{
    struct trace_reader r;
    struct trace_item item;
    struct trace_names names = {{0}};
    struct err err = {""};
    volatile uint64_t sum = 0;
    int rc = trace_reader_open_memory(&r, file, size, "fuzz", &err);

    demand((rc != 0) == (err.text[0] != '\0'));
    if (rc)
        return;
    while ((rc = trace_reader_next(&r, &item, &err)) > 0) {
        char words[64];

        sum += item_sum(&item);
        trace_names_add(&names, &item);
        kernel_words(trace_names_get(&names, item.fields[0]), words,
                     sizeof words);
        demand(memchr(words, 0, sizeof words) != NULL);
    }
    demand((rc < 0) == (err.text[0] != '\0'));
    trace_names_fini(&names);
    trace_reader_close(&r);
}

static void read_peak(const unsigned char *file, size_t size)
{
    struct trace_reader r;
    struct peak peak;
    struct err err = {""};

    if (trace_reader_open_memory(&r, file, size, "fuzz", &err))
        return;
    if (!peak_read(&peak, &r, &err)) {
        struct result_device d = {.context_bytes = 1};
        for (size_t i = 0; i < SESSION_DEVICES; i++)
            result_device_take(&d, &peak.cards[i]);
        free(d.things);
        peak_fini(&peak);
    }
    trace_reader_close(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    size_t before = data[0] & 1 ? 0 : TRACE_HEADER_BYTES;
    size_t bytes = before + size - 1;
    unsigned char *file = malloc(bytes + !bytes);
    if (before)
        header_make(file);
    memcpy(file + before, data + 1, size - 1);
    if (data[0] & 2)
        checksums_repair(file, bytes);
    read_records(file, bytes);
    read_peak(file, bytes);
    free(file);
    return 0;
}
