/* SPDX-License-Identifier: Apache-2.0 */
#include "common/trace/trace_read.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/crc32c.h"
#include "common/base/file_open.h"
#include "common/base/xmalloc.h"

#define CHUNK_BYTES_MIN 4096
#define CHUNK_BYTES_MAX (64u << 20)

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "traces are read as they lie in the file");

/* Up to BYTES from OFFSET; fewer at the file's end; -1 with ERR set. */
static ssize_t source_read(const struct trace_reader *r, void *out,
                           size_t bytes, uint64_t offset, struct err *err)
{
    size_t done = 0;

    if (r->fd < 0) {
        if (offset >= r->memory_bytes)
            return 0;
        done = r->memory_bytes - (size_t)offset;
        done = done < bytes ? done : bytes;
        memcpy(out, r->memory + offset, done);
        return (ssize_t)done;
    }
    while (done < bytes) {
        ssize_t got = pread(r->fd, (char *)out + done, bytes - done,
                            (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_set(err, "%s: %s", r->name, strerror(errno));
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

static int header_check(const struct trace_reader *r, struct err *err)
{
    struct trace_header h = r->header;
    uint32_t crc = h.crc;

    if (memcmp(h.magic, TRACE_MAGIC, sizeof h.magic))
        return err_set(err, "%s: is not a memsim trace", r->name);
    if (h.version != TRACE_VERSION)
        return err_set(err,
                       "%s: is a trace of version %u, this memsim reads "
                       "version %u; use the memsim that wrote it",
                       r->name, h.version, TRACE_VERSION);
    h.crc = 0;
    if (crc32c(0, &h, sizeof h) != crc)
        return err_set(err,
                       "%s: header: its checksum is wrong; the file is "
                       "damaged",
                       r->name);
    if (h.chunk_bytes < CHUNK_BYTES_MIN || h.chunk_bytes > CHUNK_BYTES_MAX ||
        h.chunk_bytes % 8)
        return err_set(err, "%s: header: chunks of %u bytes", r->name,
                       h.chunk_bytes);
    return 0;
}

static int reader_start(struct trace_reader *r, struct err *err)
{
    ssize_t got = source_read(r, &r->header, sizeof r->header, 0, err);

    if (got < 0)
        return -1;
    if (got < (ssize_t)sizeof r->header)
        return err_set(err, "%s: is no memsim trace: %zd bytes only", r->name,
                       got);
    if (header_check(r, err))
        return -1;
    r->chunk = xmalloc(r->header.chunk_bytes);
    return 0;
}

int trace_reader_open(struct trace_reader *r, const char *path, struct err *err)
{
    struct stat st;

    *r = (struct trace_reader){.name = path};
    r->fd = file_open(path, err);
    if (r->fd < 0)
        return -1;
    if (reader_start(r, err)) {
        close(r->fd);
        return -1;
    }
    if (!fstat(r->fd, &st))
        r->file_bytes = (uint64_t)st.st_size;
    return 0;
}

int trace_reader_open_memory(struct trace_reader *r, const void *data,
                             size_t bytes, const char *name, struct err *err)
{
    *r = (struct trace_reader){
        .name = name,
        .fd = -1,
        .memory = data,
        .memory_bytes = bytes,
        .file_bytes = bytes,
    };
    return reader_start(r, err);
}

void trace_reader_close(struct trace_reader *r)
{
    if (r->fd >= 0)
        close(r->fd);
    free(r->chunk);
    r->chunk = NULL;
    r->fd = -1;
}

static int chunk_error(const struct trace_reader *r, size_t at,
                       const char *cause, struct err *err)
{
    return err_set(err, "%s: chunk %u, offset %zu: %s; the file is damaged",
                   r->name, r->chunk_index, at, cause);
}

/* GOT bytes of a chunk: is it whole? *USED gets its extent, 0 where nothing
 * was ever written to it. */
static int chunk_check(const struct trace_reader *r, size_t got, size_t *used,
                       struct err *err)
{
    const struct trace_chunk *c = (const struct trace_chunk *)r->chunk;

    *used = 0;
    if (got < sizeof *c || !c->magic)
        return 0;
    if (c->magic != TRACE_CHUNK_MAGIC)
        return chunk_error(r, 0, "no chunk begins here", err);
    if (c->index != r->chunk_index)
        return chunk_error(r, 4, "a chunk is missing", err);
    if (!c->used_bytes && !c->sealed)
        return 0; /* its writer had come no further */
    if (c->used_bytes < sizeof *c || c->used_bytes > got || c->used_bytes % 8)
        return chunk_error(r, 8, "its length is impossible", err);
    if (c->sealed &&
        crc32c(0, c + 1, (size_t)c->used_bytes - sizeof *c) != c->crc)
        return chunk_error(r, 20, "its checksum is wrong", err);
    *used = (size_t)c->used_bytes;
    return 0;
}

static uint64_t slot_offset(const struct trace_reader *r, uint64_t slot)
{
    return TRACE_HEADER_BYTES + slot * r->header.chunk_bytes;
}

/* Reads chunk INDEX from SLOT. Returns 1, 0 where it is not there, -1. */
static int slot_load(struct trace_reader *r, uint32_t index, uint64_t slot,
                     struct err *err)
{
    uint64_t offset = slot_offset(r, slot);
    size_t used;
    ssize_t got = source_read(r, r->chunk, r->header.chunk_bytes, offset, err);

    if (got < 0)
        return -1;
    r->chunk_index = index;
    if (chunk_check(r, (size_t)got, &used, err))
        return -1;
    if (!used)
        return 0;
    r->chunk_used = used;
    r->chunk_at = sizeof(struct trace_chunk);
    r->time_ns = ((struct trace_chunk *)r->chunk)->time_ns;
    r->thread = ((struct trace_chunk *)r->chunk)->thread;
    r->read_bytes = slot_offset(r, index) + used;
    if (r->progress)
        r->progress(r, r->context);
    return 1;
}

/* The header of the chunk in SLOT; of no magic where there is none. */
static int slot_peek(const struct trace_reader *r, uint64_t slot,
                     struct trace_chunk *head, struct err *err)
{
    *head = (struct trace_chunk){0};
    return source_read(r, head, sizeof *head, slot_offset(r, slot), err) < 0
               ? -1
               : 0;
}

/* Loads chunk INDEX: each is in the slot of its number, or all but the last
 * are one further. Returns 1, 0 where the trace ends before it, -1. */
static int chunk_load(struct trace_reader *r, uint32_t index, struct err *err)
{
    struct trace_chunk head;

    if (slot_peek(r, 1, &head, err))
        return -1;
    if (head.magic != TRACE_CHUNK_MAGIC || head.index)
        return slot_load(r, index, index, err);
    if (slot_peek(r, index + UINT64_C(1), &head, err))
        return -1;
    if (head.magic)
        return slot_load(r, index, index + UINT64_C(1), err);
    if (slot_peek(r, 0, &head, err))
        return -1;
    /* In slot 0 is what was kept already, its writer killed before the next. */
    return index && head.index == index - 1 ? 0 : slot_load(r, index, 0, err);
}

/* The fields PRESENT, which follow AT, to where they belong. Returns how many
 * words they are, or -1 where more than LEFT. */
static int fields_decode(struct trace_reader *r, uint32_t present,
                         const uint64_t *at, size_t left)
{
    int words = __builtin_popcount(present);

    if ((size_t)words > left)
        return -1;
    memset(r->fields, 0, sizeof r->fields);
    for (; present; present &= present - 1)
        r->fields[__builtin_ctz(present)] = *at++;
    return words;
}

static int record_decode(struct trace_reader *r, struct trace_item *item,
                         struct err *err)
{
    const uint64_t *at = r->chunk + r->chunk_at / sizeof *at;
    size_t left = (r->chunk_used - r->chunk_at) / sizeof *at - 1;
    uint64_t head = *at++;
    uint32_t present = (uint32_t)head >> TRACE_WORD_FIELD_0;

    item->head = (struct trace_record){
        .kind = (uint8_t)head,
        .fields = (uint16_t)(present ? 32 - __builtin_clz(present) : 0)};
    if (!item->head.kind)
        return chunk_error(r, r->chunk_at, "a record of no kind", err);
    if (head & TRACE_WORD_TEXT) {
        if (!left--)
            return chunk_error(r, r->chunk_at, "a record is cut", err);
        if (*at > TRACE_TEXT_MAX)
            return chunk_error(r, r->chunk_at, "a text is too long", err);
        item->head.text_bytes = (uint32_t)*at++;
    }
    int fields = fields_decode(r, present, at, left);
    size_t text = (item->head.text_bytes + 7) / sizeof *at;
    if (fields < 0 || (size_t)fields + text > left)
        return chunk_error(r, r->chunk_at, "a record is longer than its chunk",
                           err);
    item->fields = r->fields;
    item->text = (const char *)(at + fields);
    r->chunk_at =
        (size_t)((const char *)(at + fields + text) - (const char *)r->chunk);
    r->time_ns += head >> TRACE_WORD_TIME;
    return 0;
}

/* Loads the current chunk once more, for what was added to it. Returns 1, 0
 * where nothing was, -1. */
static int chunk_reload(struct trace_reader *r, struct err *err)
{
    size_t at = r->chunk_at;
    uint64_t time_ns = r->time_ns;
    uint32_t thread = r->thread;
    int rc = chunk_load(r, r->chunk_index, err);

    if (rc <= 0)
        return rc;
    r->chunk_at = at;
    r->time_ns = time_ns;
    r->thread = thread;
    return at < r->chunk_used;
}

/* Goes on to the next chunk; of a file that is followed, once the current one
 * is complete. Returns 1, 0 where there is nothing yet, -1. */
static int chunk_next(struct trace_reader *r, struct err *err)
{
    uint32_t index = r->chunk_index;

    if (!r->chunk_used)
        return chunk_load(r, 0, err);
    if (r->follows) {
        int rc = chunk_reload(r, err);
        if (rc || !((struct trace_chunk *)r->chunk)->sealed)
            return rc;
    }
    int rc = chunk_load(r, index + 1, err);
    if (!rc)
        r->chunk_index = index;
    return rc;
}

/* Makes sure that a record follows. Returns 1, 0 at the end, -1. */
static int reader_fill(struct trace_reader *r, struct err *err)
{
    while (r->chunk_at == r->chunk_used) {
        int rc = chunk_next(r, err);
        if (rc <= 0)
            return rc;
    }
    return 1;
}

int trace_reader_next(struct trace_reader *r, struct trace_item *item,
                      struct err *err)
{
    int rc;

    while ((rc = reader_fill(r, err)) > 0) {
        if (record_decode(r, item, err))
            return -1;
        if (item->head.kind == TRACE_CLOCK) {
            r->time_ns = trace_as_clock(item)->time_ns;
            r->thread = (uint32_t)trace_as_clock(item)->thread;
            continue;
        }
        item->head.time_ns = r->time_ns;
        item->head.thread = r->thread;
        item->ordinal = r->records - r->unknown;
        r->records++;
        if (trace_kind_find(item->head.kind))
            return 1;
        r->unknown++;
    }
    return rc;
}
