/* SPDX-License-Identifier: Apache-2.0
 * Reading a trace, record by record, one chunk in memory at a time. Nothing in
 * the file is trusted: what does not decode is an error that names the file,
 * the chunk and the offset. A file that is still being written, or whose writer
 * was killed, ends where its last whole record does. */
#ifndef MEMSIM_COMMON_TRACE_READ_H
#define MEMSIM_COMMON_TRACE_READ_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/map.h"
#include "common/trace/trace.h"

struct trace_record {
    uint16_t kind;   /* enum trace_kind */
    uint16_t fields; /* up to the last that is not 0 */
    uint32_t text_bytes;
    uint32_t thread;  /* 0, 1, 2 in the order of first appearance */
    uint64_t time_ns; /* CLOCK_MONOTONIC; never decreases */
};

/* A record; its fields and its text are the reader's. */
struct trace_item {
    struct trace_record head;
    const uint64_t *fields; /* head.fields of them */
    const char *text;       /* head.text_bytes of it, not terminated */
};

struct trace_reader {
    /* To be set after opening, where wanted: called at each new chunk. */
    void (*progress)(const struct trace_reader *r, void *context);
    void *context;

    const char *name; /* of the file, in messages; borrowed */
    int fd;           /* -1: it reads from memory */
    const unsigned char *memory;
    size_t memory_bytes;
    struct trace_header header;
    uint64_t *chunk; /* a copy of the current one */
    uint32_t chunk_index;
    size_t chunk_used; /* 0 before the first */
    size_t chunk_at;   /* of the next record */
    uint64_t time_ns;  /* of the last record */
    uint32_t thread;   /* likewise */
    uint64_t fields[TRACE_FIELDS_MAX];
    uint64_t file_bytes, read_bytes;
    uint64_t records; /* read so far */
    uint64_t unknown; /* of kinds this version does not know: skipped */
};

/* Opens the file PATH (borrowed), or BYTES at DATA (borrowed, called NAME),
 * and checks its header. Returns 0, or -1 with nothing to close. */
int trace_reader_open(struct trace_reader *r, const char *path,
                      struct err *err);
int trace_reader_open_memory(struct trace_reader *r, const void *data,
                             size_t bytes, const char *name, struct err *err);

/* Sets *ITEM to the next record of a known kind; it is valid until the next
 * call. Returns 1, 0 at the end (nothing more yet, where the file is still
 * being written), -1 with ERR set. */
int trace_reader_next(struct trace_reader *r, struct trace_item *item,
                      struct err *err);

void trace_reader_close(struct trace_reader *r);

/* Field INDEX, 0 where the record is without it. */
static inline uint64_t trace_field(const struct trace_item *item,
                                   unsigned index)
{
    return index < item->head.fields ? item->fields[index] : 0;
}

/* A kind as trace.h lists it. */
struct trace_kind_info {
    enum trace_kind kind;
    const char *name;
    const char *fields; /* names, separated by spaces */
    const char *text;   /* NULL where it has none */
};

/* The kind with this number or name, and the one with the next number after
 * KIND; NULL where there is none. */
const struct trace_kind_info *trace_kind_find(unsigned kind);
const struct trace_kind_info *trace_kind_find_name(const char *name);
const struct trace_kind_info *trace_kind_next(unsigned kind);

/* The index of field NAME of KIND, -1 where it has none. */
int trace_field_index(enum trace_kind kind, const char *name);

/* What NAME records said: texts by id. */
struct trace_names {
    struct map texts; /* zeroed, it is empty */
};

/* Takes note of ITEM where it is a NAME record; an id given again has the new
 * text from then on. */
void trace_names_add(struct trace_names *names, const struct trace_item *item);

/* The text of ID, "" for 0, "?" where no NAME record gave it. Borrowed until
 * the id is given again or trace_names_fini. */
const char *trace_names_get(const struct trace_names *names, uint64_t id);
void trace_names_fini(struct trace_names *names);

#endif
