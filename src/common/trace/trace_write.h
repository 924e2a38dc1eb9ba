/* SPDX-License-Identifier: Apache-2.0
 * Writes a trace. It runs inside the user's program: it uses no heap, no stdio
 * and no locks (the caller holds one). A full disk or a limit on the size of
 * files (RLIMIT_FSIZE) ends only the recording. */
#ifndef MEMSIM_COMMON_TRACE_TRACE_WRITE_H
#define MEMSIM_COMMON_TRACE_TRACE_WRITE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/base/err.h"
#include "common/trace/trace.h"

struct trace_writer {
    struct trace_chunk *chunk; /* slot 0, mapped; NULL when not recording */
    uint64_t limit_bytes;      /* of the file */
    uint64_t time_ns;          /* of the last record */
    uint32_t thread;           /* likewise */
    int fd;                    /* -1 when not recording */
    uint32_t end_reason; /* enum trace_end_reason + 1 once recording ended */
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

/* The size of a CLOCK. Every chunk keeps room for a CLOCK and an END. */
#define TRACE_CLOCK_BYTES (3 * sizeof(uint64_t))
#define TRACE_END_BYTES   (TRACE_CLOCK_BYTES + 3 * sizeof(uint64_t))

/* How far ahead of a record the chunk is prefetched into the cache: a store
 * that misses the cache delays the program's next lock. */
#define TRACE_AHEAD_BYTES 512

/* Appends the full chunk to the file and begins the next. Returns 0, or -1 if
 * the file cannot grow: then an END record was written and the recording has
 * ended. */
int trace_writer_advance(struct trace_writer *w, uint32_t thread,
                         uint64_t time_ns);

/* Writes a CLOCK: the next records are of THREAD, from TIME_NS on. */
void trace_writer_clock(struct trace_writer *w, uint32_t thread,
                        uint64_t time_ns);

/* A record to be written. */
struct trace_put {
    enum trace_kind kind;
    uint32_t thread;
    uint64_t time_ns;
    const uint64_t *fields;
    size_t count;     /* at most TRACE_FIELDS_MAX */
    uint32_t always;  /* bit i: field i is written even if it is 0 */
    const char *text; /* cut at TRACE_TEXT_MAX bytes */
    size_t text_bytes;
};

/* Writes a record that fits into the chunk. */
static inline __attribute__((always_inline)) void
trace_writer_add(struct trace_writer *w, const struct trace_put *r)
{
    if (r->thread != w->thread || r->time_ns - w->time_ns > UINT32_MAX)
        trace_writer_clock(w, r->thread, r->time_ns);
    uint64_t *word = (uint64_t *)((char *)w->chunk + w->chunk->used_bytes);
    uint64_t *at = word + 1;
    __builtin_prefetch((char *)word + TRACE_AHEAD_BYTES, 1);
    uint64_t head = (r->time_ns - w->time_ns) << TRACE_WORD_TIME | r->kind;

    w->time_ns = r->time_ns;
    if (r->text_bytes) {
        head |= TRACE_WORD_TEXT;
        *at++ = r->text_bytes;
    }
#pragma GCC unroll 23
    for (size_t i = 0; i < r->count; i++)
        if (r->always >> i & 1 || r->fields[i]) {
            head |= UINT64_C(1) << (TRACE_WORD_FIELD_0 + i);
            *at++ = r->fields[i];
        }
    if (r->text_bytes) {
        size_t words = (r->text_bytes + 7) / 8;

        at[words - 1] = 0;
        memcpy(at, r->text, r->text_bytes);
        at += words;
    }
    *word = head;
    __atomic_store_n(&w->chunk->used_bytes,
                     (uint64_t)((char *)at - (char *)w->chunk),
                     __ATOMIC_RELEASE);
}

/* Appends R. Does nothing if W is not recording. It is inline, so that a caller
 * with a constant count has no loop: this is most of the cost of recording a
 * launch. */
static inline __attribute__((always_inline)) void
trace_writer_put(struct trace_writer *w, struct trace_put *r)
{
    if (!w->chunk)
        return;
    if (r->text_bytes > TRACE_TEXT_MAX)
        r->text_bytes = TRACE_TEXT_MAX;
    size_t most = TRACE_CLOCK_BYTES + (2 + r->count) * sizeof *r->fields +
                  ((r->text_bytes + 7) & ~(size_t)7) + TRACE_END_BYTES;
    if (w->chunk->used_bytes + most > TRACE_CHUNK_BYTES &&
        trace_writer_advance(w, r->thread, r->time_ns))
        return;
    trace_writer_add(w, r);
}

/* TRACE_PUT(&w, COPY, thread, time_ns, .device = 1, ...), and the same with a
 * text, a string. */
#define TRACE_PUT(w, kind, thread, time_ns, ...)                               \
    TRACE_PUT_TEXT(w, kind, thread, time_ns, "", __VA_ARGS__)
#define TRACE_PUT_TEXT(w, kind, thread, time_ns, text, ...)                    \
    trace_writer_put(w, &(struct trace_put){TRACE_##kind, thread, time_ns,     \
                                            TRACE_WORDS(kind, __VA_ARGS__),    \
                                            TRACE_WORD_COUNT(kind), 0, text,   \
                                            strlen(text)})

/* Writes END with REASON, seals the chunk and closes the file, cut to what
 * was written. */
void trace_writer_close(struct trace_writer *w, enum trace_end_reason reason,
                        uint32_t thread, uint64_t time_ns);

/* The same for a process that exits with STATUS. */
void trace_writer_exit(struct trace_writer *w, uint32_t status, uint32_t thread,
                       uint64_t time_ns);

/* Closes the file without changing it. A forked child calls it for its
 * parent's writer. */
void trace_writer_abandon(struct trace_writer *w);

#endif
