/* SPDX-License-Identifier: Apache-2.0
 * Writing a trace. Made for life inside another program: no heap, no stdio,
 * no locks (the caller holds one), and a full disk only ends the recording. */
#ifndef MEMSIM_COMMON_TRACE_WRITE_H
#define MEMSIM_COMMON_TRACE_WRITE_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/trace.h"

struct trace_writer {
    struct trace_chunk *chunk; /* the mapped one; NULL when not recording */
    uint64_t limit_bytes;      /* of the file */
    int fd;                    /* -1 when not recording */
    uint32_t end_reason;       /* enum trace_end + 1 once recording ended */
};

#define TRACE_WRITER_INIT {.fd = -1}

/* Creates the trace PATH (mode 0600; an existing file is an error) and maps
 * its first chunk. LIMIT_BYTES bounds the file. Returns 0, or -1 with E set
 * and W not recording. */
int trace_writer_open(struct trace_writer *w, const char *path,
                      uint64_t limit_bytes, struct err *e);

/* Appends a record. COUNT is at most TRACE_FIELDS_MAX; text over
 * TRACE_TEXT_MAX is cut. Does nothing when W is not recording. When the file
 * can grow no more, an END record is written and the recording ends. */
void trace_writer_put(struct trace_writer *w, enum trace_kind kind,
                      uint32_t thread, uint64_t time_ns, const uint64_t *fields,
                      size_t count, const char *text, size_t text_bytes);

/* Writes END with REASON, seals the chunk and closes the file, cut to what
 * was written. */
void trace_writer_close(struct trace_writer *w, enum trace_end reason,
                        uint32_t thread, uint64_t time_ns);

/* Lets go of the file without touching it: what a forked child does with its
 * parent's writer. */
void trace_writer_abandon(struct trace_writer *w);

#endif
