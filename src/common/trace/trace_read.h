/* SPDX-License-Identifier: Apache-2.0
 * Reads a trace record by record, with one chunk in memory at a time. The file
 * is not trusted: if a record does not decode, the error names the file, the
 * chunk and the offset. A file that is still being written, or whose writer
 * was killed, ends at its last complete record. */
#ifndef MEMSIM_COMMON_TRACE_TRACE_READ_H
#define MEMSIM_COMMON_TRACE_TRACE_READ_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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

/* A record. Its fields and its text belong to the reader. */
struct trace_item {
    struct trace_record head;
    const uint64_t *fields; /* TRACE_FIELDS_MAX of them; 0 if not written */
    const char *text;       /* head.text_bytes of it, not terminated */
    uint64_t ordinal; /* among the trace's records of known kinds, from 0 */
};

struct trace_reader {
    /* May be set after opening; called at each new chunk. */
    void (*progress)(const struct trace_reader *r, void *context);
    void *context;

    bool follows; /* may be set after opening: the end is not final, and each
                     call looks again for what the writer has added */
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

/* Opens the file PATH (borrowed), or BYTES at DATA (borrowed; NAME is for
 * messages), and checks its header. Returns 0, or -1 with nothing to close. */
int trace_reader_open(struct trace_reader *r, const char *path,
                      struct err *err);
int trace_reader_open_memory(struct trace_reader *r, const void *data,
                             size_t bytes, const char *name, struct err *err);

/* Sets *ITEM to the next record of a known kind; it is valid until the next
 * call. Returns 1; 0 at the end (in a file that is still being written: no
 * more records yet); -1 with ERR set. */
int trace_reader_next(struct trace_reader *r, struct trace_item *item,
                      struct err *err);

void trace_reader_close(struct trace_reader *r);

/* The fields of a record of that kind: trace_as_copy(item)->bytes, and so on
 * for every kind. Borrowed: valid as long as ITEM is. A field that an older
 * version did not write is 0. */
#define X(number, kind_, name, use_, fields_, text_)                           \
    static inline const struct trace_##name *trace_as_##name(                  \
        const struct trace_item *item)                                         \
    {                                                                          \
        assert(item->head.kind == TRACE_##kind_);                              \
        return (const struct trace_##name *)item->fields;                      \
    }
TRACE_KINDS(X)
#undef X

/* The same for a SEGMENT_ALLOC, _FREE, _MAP or _UNMAP, whose fields are the
 * same. */
static inline const struct trace_segment_alloc *
trace_as_segment(const struct trace_item *item)
{
    assert(item->head.kind >= TRACE_SEGMENT_ALLOC &&
           item->head.kind <= TRACE_SEGMENT_UNMAP);
    return (const struct trace_segment_alloc *)item->fields;
}

/* Whether ITEM is a SETTING that begins with TEXT. */
static inline bool trace_is_setting(const struct trace_item *item,
                                    const char *text)
{
    size_t length = strlen(text);

    return item->head.kind == TRACE_SETTING &&
           item->head.text_bytes >= length && !memcmp(item->text, text, length);
}

/* Whether ITEM marks the trace as an imported profile; as that of a job on a
 * real GPU, with its times. */
static inline bool trace_says_imported(const struct trace_item *item)
{
    return trace_is_setting(item, TRACE_IMPORTED);
}

static inline bool trace_says_real(const struct trace_item *item)
{
    return trace_is_setting(item, TRACE_REAL);
}

/* The first fields of ITEM if its kind begins with TRACE_FIELDS_WORK (a launch
 * or a library's work). NULL for other kinds. */
static inline const struct trace_work *trace_work(const struct trace_item *item)
{
    switch (item->head.kind) {
    case TRACE_LAUNCH:
    case TRACE_GEMM:
    case TRACE_CONVOLUTION:
    case TRACE_ATTENTION:
    case TRACE_LIBRARY_CALL:
    case TRACE_COLLECTIVE:
    case TRACE_GUESS:
        return (const struct trace_work *)item->fields;
    default:
        return NULL;
    }
}

/* A kind as trace.h lists it. */
struct trace_kind_info {
    enum trace_kind kind;
    const char *name;
    const char *const *fields; /* names of the fields */
    unsigned field_count;
    const char *text; /* meaning of the text; NULL: it has none */
    enum trace_for use;
};

/* The kind with this number or name, and the one with the next number after
 * KIND; NULL if there is none. */
const struct trace_kind_info *trace_kind_find(unsigned kind);
const struct trace_kind_info *trace_kind_find_name(const char *name);
const struct trace_kind_info *trace_kind_next(unsigned kind);

/* What records of KIND are for; TRACE_FOR_TIME where there is no such kind. */
enum trace_for trace_kind_for(unsigned kind);

/* The texts of NAME records, by id. */
struct trace_names {
    struct map texts; /* zeroed, it is empty */
};

/* Adds ITEM if it is a NAME record. An id that is given again has the new text
 * from then on. */
void trace_names_add(struct trace_names *names, const struct trace_item *item);

/* The text of ID; "" for 0; "?" if no NAME record had the id. Borrowed until
 * the id is given again or trace_names_fini. */
const char *trace_names_get(const struct trace_names *names, uint64_t id);
void trace_names_fini(struct trace_names *names);

#endif
