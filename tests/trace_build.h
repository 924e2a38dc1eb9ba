/* SPDX-License-Identifier: Apache-2.0
 * Traces made in memory, with small chunks, for tests of what reads them. */
#ifndef MEMSIM_TESTS_TRACE_BUILD_H
#define MEMSIM_TESTS_TRACE_BUILD_H

#include <stdlib.h>
#include <string.h>

#include "common/base/crc32c.h"
#include "common/trace/trace_write.h"

#define BUILD_CHUNK 4096

struct build {
    unsigned char *data; /* free() it */
    size_t bytes;
    uint64_t time_ns, last_ns; /* of the next record, of the last */
    uint32_t thread, last_thread;
};

static inline struct trace_chunk *build_chunk(const struct build *b)
{
    return (struct trace_chunk *)(b->data + b->bytes - BUILD_CHUNK);
}

static inline void build_chunk_add(struct build *b)
{
    b->bytes += BUILD_CHUNK;
    b->data = realloc(b->data, b->bytes);
    memset(b->data + b->bytes - BUILD_CHUNK, 0, BUILD_CHUNK);
    *build_chunk(b) = (struct trace_chunk){
        .magic = TRACE_CHUNK_MAGIC,
        .index = (uint32_t)((b->bytes - TRACE_HEADER_BYTES) / BUILD_CHUNK - 1),
        .used_bytes = sizeof(struct trace_chunk),
        .time_ns = b->last_ns,
        .thread = b->last_thread};
}

static inline void build_header(struct build *b, uint32_t version)
{
    struct trace_header *h = (struct trace_header *)b->data;

    *h = (struct trace_header){.version = version, .chunk_bytes = BUILD_CHUNK};
    memcpy(h->magic, TRACE_MAGIC, sizeof h->magic);
    h->crc = crc32c(0, h, sizeof *h);
}

static inline struct build build_start(void)
{
    struct build b = {.bytes = TRACE_HEADER_BYTES};

    b.data = calloc(1, b.bytes);
    build_header(&b, TRACE_VERSION);
    build_chunk_add(&b);
    return b;
}

static inline void build_seal(const struct build *b)
{
    struct trace_chunk *c = build_chunk(b);

    c->crc = crc32c(0, c + 1, c->used_bytes - sizeof *c);
    c->sealed = 1;
}

static inline void build_put_bytes(struct build *b, unsigned kind,
                                   const void *text, size_t text_bytes,
                                   const uint64_t *fields, size_t count)
{
    size_t need =
        TRACE_CLOCK_BYTES + (2 + count) * 8 + ((text_bytes + 7) & ~(size_t)7);

    if (build_chunk(b)->used_bytes + need > BUILD_CHUNK) {
        build_seal(b);
        build_chunk_add(b);
    }
    struct trace_chunk *c = build_chunk(b);
    struct trace_writer w = {
        .chunk = c, .time_ns = b->last_ns, .thread = b->last_thread};
    trace_writer_add(&w, &(struct trace_put){.kind = (enum trace_kind)kind,
                                             .thread = b->thread,
                                             .time_ns = b->time_ns++,
                                             .fields = fields,
                                             .count = count,
                                             .text = text,
                                             .text_bytes = text_bytes});
    b->last_ns = w.time_ns;
    b->last_thread = w.thread;
}

static inline void build_put_text(struct build *b, unsigned kind,
                                  const char *text, const uint64_t *fields,
                                  size_t count)
{
    build_put_bytes(b, kind, text, text ? strlen(text) : 0, fields, count);
}

/* BUILD(&b, COPY, .device = 1, ...), and the same with a text. */
#define BUILD_TEXT(b, kind, text, ...)                                         \
    build_put_text(b, TRACE_##kind, text, TRACE_WORDS(kind, __VA_ARGS__),      \
                   TRACE_WORD_COUNT(kind))
#define BUILD(b, kind, ...) BUILD_TEXT(b, kind, NULL, __VA_ARGS__)

#endif
