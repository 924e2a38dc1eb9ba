/* SPDX-License-Identifier: Apache-2.0
 * Writing a trace. Made for life inside another program: no heap, no stdio,
 * no locks (the caller holds one), and a full disk only ends the recording. */
#ifndef MEMSIM_COMMON_TRACE_WRITE_H
#define MEMSIM_COMMON_TRACE_WRITE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/err.h"
#include "common/trace.h"

struct trace_writer {
    struct trace_chunk *chunk; /* slot 0, mapped; NULL when not recording */
    uint64_t limit_bytes;      /* of the file */
    int fd;                    /* -1 when not recording */
    uint32_t end_reason;       /* enum trace_end + 1 once recording ended */
};

#define TRACE_WRITER_INIT                                                      \
    {                                                                          \
        .fd = -1                                                               \
    }

/* Creates the trace PATH (mode 0600; an existing file is an error) and maps
 * its first slot. LIMIT_BYTES bounds the file. Returns 0, or -1 with E set
 * and W not recording. */
int trace_writer_open(struct trace_writer *w, const char *path,
                      uint64_t limit_bytes, struct err *e);

/* Room that every chunk keeps for the END record. */
#define TRACE_END_BYTES (sizeof(struct trace_record) + sizeof(uint64_t))

/* Puts the full chunk in its place and begins the next. Returns 0, or -1 when
 * the file can grow no more: then an END record was written and the recording
 * has ended. */
int trace_writer_advance(struct trace_writer *w, uint32_t thread,
                         uint64_t time_ns);

/* Appends a record. COUNT is at most TRACE_FIELDS_MAX; text over
 * TRACE_TEXT_MAX is cut. Does nothing when W is not recording. Inline, so that
 * a caller whose COUNT is a constant pays for stores and not for memcpy: this
 * is most of what recording a launch costs. */
static inline void trace_writer_put(struct trace_writer *w,
                                    enum trace_kind kind, uint32_t thread,
                                    uint64_t time_ns, const uint64_t *fields,
                                    size_t count, const char *text,
                                    size_t text_bytes)
{
    if (!w->chunk)
        return;
    if (text_bytes > TRACE_TEXT_MAX)
        text_bytes = TRACE_TEXT_MAX;
    const struct trace_record r = {.kind = (uint16_t)kind,
                                   .fields = (uint16_t)count,
                                   .text_bytes = (uint32_t)text_bytes,
                                   .thread = thread,
                                   .time_ns = time_ns};
    size_t bytes =
        sizeof r + count * sizeof *fields + ((text_bytes + 7) & ~(size_t)7);

    if (w->chunk->used_bytes + bytes + TRACE_END_BYTES > TRACE_CHUNK_BYTES &&
        trace_writer_advance(w, thread, time_ns))
        return;
    char *at = (char *)w->chunk + w->chunk->used_bytes;
    memcpy(at, &r, sizeof r);
    if (count)
        memcpy(at + sizeof r, fields, count * sizeof *fields);
    if (text_bytes) {
        memset(at + bytes - sizeof(uint64_t), 0, sizeof(uint64_t));
        memcpy(at + sizeof r + count * sizeof *fields, text, text_bytes);
    }
    __atomic_store_n(&w->chunk->used_bytes, w->chunk->used_bytes + bytes,
                     __ATOMIC_RELEASE);
}

/* Writes END with REASON, seals the chunk and closes the file, cut to what
 * was written. */
void trace_writer_close(struct trace_writer *w, enum trace_end reason,
                        uint32_t thread, uint64_t time_ns);

/* Lets go of the file without touching it: what a forked child does with its
 * parent's writer. */
void trace_writer_abandon(struct trace_writer *w);

#endif
