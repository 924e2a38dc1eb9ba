/* SPDX-License-Identifier: Apache-2.0
 * Recording: writes every event of this process to its trace. */
#ifndef MEMSIM_CAPTURE_CORE_RUN_RECORD_H
#define MEMSIM_CAPTURE_CORE_RUN_RECORD_H

#include <stdbool.h>

#include "capture/core/base/core.h"
#include "common/trace/trace.h"

/* Appends a record with COUNT fields. Cheap if nothing is recorded. */
CORE_API void memsim_record(enum trace_kind kind, const uint64_t *fields,
                            size_t count);
CORE_API void memsim_record_text(enum trace_kind kind, const uint64_t *fields,
                                 size_t count, const char *text,
                                 size_t text_bytes);

/* RECORD(COPY, .device = d, .stream = s, ...): the fields of struct trace_copy;
 * those that are not named are 0. RECORD_TEXT has a text of so many bytes, too.
 */
#define RECORD(kind, ...)                                                      \
    memsim_record(TRACE_##kind, TRACE_WORDS(kind, __VA_ARGS__),                \
                  TRACE_WORD_COUNT(kind))
#define RECORD_TEXT(kind, text, text_bytes, ...)                               \
    memsim_record_text(TRACE_##kind, TRACE_WORDS(kind, __VA_ARGS__),           \
                       TRACE_WORD_COUNT(kind), text, text_bytes)

/* What a program was answered that asks whether an event or a stream is ready.
 * Zeroed: it has not asked. */
struct record_answer {
    uint64_t round; /* of queries, with nothing else recorded between them */
    bool ready;
};

/* memsim_record of a query that is answered READY; the one of the same event or
 * stream before it was answered *LAST. A query is left out that was answered
 * alike, where nothing but queries was recorded since: a thread may ask for
 * hours, as NCCL's watchdog in PyTorch does where another rank never comes. */
void record_query(enum trace_kind kind, const uint64_t *fields, size_t count,
                  bool ready, struct record_answer *last);

/* RECORD_QUERY(STREAM_QUERY, ready, &last, .device = d, .stream = s) */
#define RECORD_QUERY(kind, is_ready, last, ...)                                \
    record_query(TRACE_##kind,                                                 \
                 TRACE_WORDS(kind, __VA_ARGS__, .ready = is_ready),            \
                 TRACE_WORD_COUNT(kind), is_ready, last)

/* The id by which records name TEXT; the same text has the same id. */
CORE_API uint32_t memsim_name(const char *text);

/* The text that ID, which is not 0, stands for. */
const char *record_name(uint32_t id);

/* A literal's id, looked up once. */
#define NAME_OF(literal)                                                       \
    ({                                                                         \
        static uint32_t name_;                                                 \
        if (!name_)                                                            \
            name_ = memsim_name(literal);                                      \
        name_;                                                                 \
    })

/* The thread number in this thread's records. */
uint32_t record_thread(void);

/* The calling thread, which holds no lock, has done work of memsim's since the
 * host's monotonic clock was START_NS. That is taken out of the record clock if
 * it is 1 us or more, but for what another thread has recorded meanwhile. */
void record_skip(uint64_t start_ns);

/* For process.c: opens the trace PATH of a process of SESSION; ends the trace;
 * and forgets the parent's one. */
struct session;
void record_open(struct session *session, const char *path);
/* Ends the trace of a process that exits with STATUS; returns trace_end + 1. */
uint32_t record_close(uint32_t status);
void record_after_fork(void);

#endif
