/* SPDX-License-Identifier: Apache-2.0 */
#include "common/trace/trace_write.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "common/base/crc32c.h"
#include "common/base/file_limit.h"

static_assert(sizeof(struct trace_chunk) == 64, "chunks start aligned");
static_assert(TRACE_WORD_FIELD_0 + TRACE_FIELDS_MAX == TRACE_WORD_TIME,
              "every field has a bit");

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t slot_offset(uint32_t slot)
{
    return TRACE_HEADER_BYTES + (uint64_t)slot * TRACE_CHUNK_BYTES;
}

/* Maps slot 0, where every chunk is written, its disk space taken first: a
 * store into a mapped hole of a full disk would be a SIGBUS in the user's
 * process. */
static int chunk_map(struct trace_writer *w)
{
    struct file_limit limit;

    file_limit_enter(&limit);
    int rc =
        slot_offset(1) > w->limit_bytes
            ? EFBIG
            : posix_fallocate(w->fd, (off_t)slot_offset(0), TRACE_CHUNK_BYTES);
    file_limit_leave(&limit);

    if (rc) {
        errno = rc;
        return -1;
    }
    struct trace_chunk *chunk =
        mmap(NULL, TRACE_CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, w->fd,
             (off_t)slot_offset(0));
    if (chunk == MAP_FAILED)
        return -1;
    chunk->magic = TRACE_CHUNK_MAGIC;
    chunk->used_bytes = sizeof *chunk;
    chunk->time_ns = w->time_ns;
    w->chunk = chunk;
    return 0;
}

static uint32_t chunk_crc(const struct trace_chunk *chunk)
{
    return crc32c(0, chunk + 1, (size_t)chunk->used_bytes - sizeof *chunk);
}

static int write_all(int fd, const void *from, size_t bytes, uint64_t offset)
{
    const char *at = from;
    struct file_limit limit;

    file_limit_enter(&limit);
    while (bytes) {
        ssize_t n = pwrite(fd, at, bytes, (off_t)offset);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        at += n;
        bytes -= (size_t)n;
        offset += (size_t)n;
    }
    file_limit_leave(&limit);
    return bytes ? -1 : 0;
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
    return write_all(fd, &h, sizeof h, 0);
}

/* Copies the chunk, sealed, to the slot where it stays: its records first, so
 * that none is there before its header is. Returns 0, or -1 with the reason
 * that recording must end. */
static int chunk_keep(const struct trace_writer *w, enum trace_end_reason *why)
{
    struct trace_chunk head = *w->chunk;
    uint64_t offset = slot_offset(head.index + 1);

    *why = TRACE_END_LIMIT;
    if (offset + TRACE_CHUNK_BYTES > w->limit_bytes)
        return -1;
    *why = TRACE_END_FULL;
    head.crc = chunk_crc(w->chunk);
    head.sealed = 1;
    if (write_all(w->fd, w->chunk + 1, head.used_bytes - sizeof head,
                  offset + sizeof head) ||
        write_all(w->fd, &head, sizeof head, offset))
        return ftruncate(w->fd, (off_t)offset), -1;
    return 0;
}

int trace_writer_open(struct trace_writer *w, const char *path,
                      uint64_t limit_bytes, struct err *e)
{
    *w = (struct trace_writer)TRACE_WRITER_INIT;
    w->limit_bytes = limit_bytes;
    w->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (w->fd < 0)
        return err_set(e, "%s: cannot create the trace: %s", path,
                       strerror(errno));
    if (header_write(w->fd) || chunk_map(w)) {
        err_set(e, "%s: cannot write the trace: %s", path, strerror(errno));
        close(w->fd);
        unlink(path);
        w->fd = -1;
        return -1;
    }
    return 0;
}

static void writer_end(struct trace_writer *w, enum trace_end_reason reason,
                       uint32_t status, uint32_t thread, uint64_t time_ns)
{
    trace_writer_add(
        w, &(struct trace_put){
               .kind = TRACE_END,
               .thread = thread,
               .time_ns = time_ns,
               .fields = TRACE_WORDS(END, .reason = reason, .status = status),
               .count = TRACE_WORD_COUNT(END)});
    w->chunk->crc = chunk_crc(w->chunk);
    __atomic_store_n(&w->chunk->sealed, 1, __ATOMIC_RELEASE);
    uint64_t bytes = slot_offset(0) + w->chunk->used_bytes;
    bool alone = !w->chunk->index;
    munmap(w->chunk, TRACE_CHUNK_BYTES);
    w->chunk = NULL;
    if (alone && ftruncate(w->fd, (off_t)bytes)) {
        /* The file is longer than it need be, and as readable. */
    }
    close(w->fd);
    w->fd = -1;
    w->end_reason = reason + 1;
}

/* Emptied before it is numbered anew: who is killed in between leaves a chunk
 * that is already kept. */
int trace_writer_advance(struct trace_writer *w, uint32_t thread,
                         uint64_t time_ns)
{
    enum trace_end_reason why;

    if (chunk_keep(w, &why)) {
        writer_end(w, why, 0, thread, time_ns);
        return -1;
    }
    __atomic_store_n(&w->chunk->used_bytes, sizeof *w->chunk, __ATOMIC_RELEASE);
    w->chunk->time_ns = w->time_ns = time_ns;
    w->chunk->thread = w->thread = thread;
    __atomic_store_n(&w->chunk->index, w->chunk->index + 1, __ATOMIC_RELEASE);
    return 0;
}

void trace_writer_clock(struct trace_writer *w, uint32_t thread,
                        uint64_t time_ns)
{
    w->thread = thread;
    w->time_ns = time_ns;
    trace_writer_add(
        w, &(struct trace_put){.kind = TRACE_CLOCK,
                               .thread = thread,
                               .time_ns = time_ns,
                               .fields = TRACE_WORDS(CLOCK, .time_ns = time_ns,
                                                     .thread = thread),
                               .count = TRACE_WORD_COUNT(CLOCK)});
}

void trace_writer_close(struct trace_writer *w, enum trace_end_reason reason,
                        uint32_t thread, uint64_t time_ns)
{
    if (w->chunk)
        writer_end(w, reason, 0, thread, time_ns);
}

void trace_writer_exit(struct trace_writer *w, uint32_t status, uint32_t thread,
                       uint64_t time_ns)
{
    if (w->chunk)
        writer_end(w, TRACE_END_EXIT, status, thread, time_ns);
}

void trace_writer_abandon(struct trace_writer *w)
{
    if (w->chunk)
        munmap(w->chunk, TRACE_CHUNK_BYTES);
    if (w->fd >= 0)
        close(w->fd);
    *w = (struct trace_writer)TRACE_WRITER_INIT;
}
