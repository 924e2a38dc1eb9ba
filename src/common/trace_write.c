/* SPDX-License-Identifier: Apache-2.0 */
#include "common/trace_write.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "common/crc32c.h"

/* Room that every chunk keeps for the END record. */
#define END_BYTES (sizeof(struct trace_record) + sizeof(uint64_t))

static_assert(sizeof(struct trace_chunk) == 64, "chunks start aligned");
static_assert(sizeof(struct trace_record) == 24, "records are whole words");

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int header_write(int fd)
{
    struct trace_header h = {
        .version = TRACE_VERSION,
        .chunk_bytes = TRACE_CHUNK_BYTES,
        .start_unix_ns = clock_ns(CLOCK_REALTIME),
        .start_monotonic_ns = clock_ns(CLOCK_MONOTONIC),
        .pid = (uint32_t)getpid(),
    };

    memcpy(h.magic, TRACE_MAGIC, sizeof h.magic);
    h.crc = crc32c(0, &h, sizeof h);
    return pwrite(fd, &h, sizeof h, 0) == sizeof h ? 0 : -1;
}

static uint64_t chunk_offset(uint32_t index)
{
    return TRACE_HEADER_BYTES + (uint64_t)index * TRACE_CHUNK_BYTES;
}

/* Maps chunk INDEX, its disk space taken first: a store into a mapped hole of
 * a full disk would be a SIGBUS in the user's process. Returns 0, or -1 with
 * the reason that recording must end. */
static int chunk_open(struct trace_writer *w, uint32_t index,
                      enum trace_end *why)
{
    uint64_t offset = chunk_offset(index);

    *why = TRACE_END_LIMIT;
    if (offset + TRACE_CHUNK_BYTES > w->limit_bytes)
        return -1;
    *why = TRACE_END_FULL;
    int rc = posix_fallocate(w->fd, (off_t)offset, TRACE_CHUNK_BYTES);
    if (rc) {
        errno = rc;
        return -1;
    }
    struct trace_chunk *chunk =
        mmap(NULL, TRACE_CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
             w->fd, (off_t)offset);
    if (chunk == MAP_FAILED)
        return -1;
    chunk->magic = TRACE_CHUNK_MAGIC;
    chunk->index = index;
    chunk->used_bytes = sizeof *chunk;
    w->chunk = chunk;
    return 0;
}

static void chunk_seal(struct trace_chunk *chunk)
{
    chunk->crc =
        crc32c(0, chunk + 1, (size_t)chunk->used_bytes - sizeof *chunk);
    __atomic_store_n(&chunk->sealed, 1, __ATOMIC_RELEASE);
}

int trace_writer_open(struct trace_writer *w, const char *path,
                      uint64_t limit_bytes, struct err *e)
{
    enum trace_end why;

    *w = (struct trace_writer)TRACE_WRITER_INIT;
    w->limit_bytes = limit_bytes;
    w->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (w->fd < 0)
        return err_set(e, "%s: cannot create the trace: %s", path,
                       strerror(errno));
    if (header_write(w->fd) || chunk_open(w, 0, &why)) {
        err_set(e, "%s: cannot write the trace: %s", path, strerror(errno));
        close(w->fd);
        unlink(path);
        w->fd = -1;
        return -1;
    }
    return 0;
}

/* What R and its fields and text take in a chunk. */
static size_t record_bytes(const struct trace_record *r)
{
    return sizeof *r + r->fields * sizeof(uint64_t) +
           ((r->text_bytes + 7) & ~(size_t)7);
}

/* The padding behind the text is zero already: chunks are fresh. */
static inline void record_append(struct trace_chunk *chunk,
                                 const struct trace_record *r,
                                 const uint64_t *fields, const char *text)
{
    char *at = (char *)chunk + chunk->used_bytes;

    memcpy(at, r, sizeof *r);
    at += sizeof *r;
    if (r->fields)
        memcpy(at, fields, r->fields * sizeof *fields);
    if (r->text_bytes)
        memcpy(at + r->fields * sizeof *fields, text, r->text_bytes);
    __atomic_store_n(&chunk->used_bytes, chunk->used_bytes + record_bytes(r),
                     __ATOMIC_RELEASE);
}

static void writer_end(struct trace_writer *w, enum trace_end reason,
                       uint32_t thread, uint64_t time_ns)
{
    struct trace_record r = {
        .kind = TRACE_END, .fields = 1, .thread = thread, .time_ns = time_ns};
    uint64_t field = reason;

    record_append(w->chunk, &r, &field, "");
    chunk_seal(w->chunk);
    uint64_t bytes = chunk_offset(w->chunk->index) + w->chunk->used_bytes;
    munmap(w->chunk, TRACE_CHUNK_BYTES);
    w->chunk = NULL;
    if (ftruncate(w->fd, (off_t)bytes)) {
        /* The file is longer than it need be, and as readable. */
    }
    close(w->fd);
    w->fd = -1;
    w->end_reason = reason + 1;
}

/* Moves to the next chunk. Returns 0, or -1 when the recording has ended. */
static int writer_advance(struct trace_writer *w, uint32_t thread,
                          uint64_t time_ns)
{
    struct trace_chunk *full = w->chunk;
    enum trace_end why;

    if (chunk_open(w, full->index + 1, &why)) {
        writer_end(w, why, thread, time_ns);
        return -1;
    }
    chunk_seal(full);
    munmap(full, TRACE_CHUNK_BYTES);
    return 0;
}

void trace_writer_put(struct trace_writer *w, enum trace_kind kind,
                      uint32_t thread, uint64_t time_ns, const uint64_t *fields,
                      size_t count, const char *text, size_t text_bytes)
{
    if (!w->chunk)
        return;
    if (text_bytes > TRACE_TEXT_MAX)
        text_bytes = TRACE_TEXT_MAX;
    struct trace_record r = {.kind = (uint16_t)kind,
                             .fields = (uint16_t)count,
                             .text_bytes = (uint32_t)text_bytes,
                             .thread = thread,
                             .time_ns = time_ns};

    if (w->chunk->used_bytes + record_bytes(&r) + END_BYTES >
            TRACE_CHUNK_BYTES &&
        writer_advance(w, thread, time_ns))
        return;
    record_append(w->chunk, &r, fields, text);
}

void trace_writer_close(struct trace_writer *w, enum trace_end reason,
                        uint32_t thread, uint64_t time_ns)
{
    if (w->chunk)
        writer_end(w, reason, thread, time_ns);
}

void trace_writer_abandon(struct trace_writer *w)
{
    if (w->chunk)
        munmap(w->chunk, TRACE_CHUNK_BYTES);
    if (w->fd >= 0)
        close(w->fd);
    *w = (struct trace_writer)TRACE_WRITER_INIT;
}
