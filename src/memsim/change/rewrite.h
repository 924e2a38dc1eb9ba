/* SPDX-License-Identifier: Apache-2.0
 * Edits of a trace's records, and the trace that they make. */
#ifndef MEMSIM_MEMSIM_CHANGE_REWRITE_H
#define MEMSIM_MEMSIM_CHANGE_REWRITE_H

#include "memsim/change/records.h"

/* Records [from, until) are ... */
enum edit_kind {
    EDIT_REPEAT,  /* written COPIES times more */
    EDIT_DROP,    /* not written */
    EDIT_REPLACE, /* written as the records [first, first + copies) */
};

struct edit {
    enum edit_kind kind;
    size_t from, until;
    size_t copies;
    size_t first;
    size_t shift; /* REPEAT and DROP: operations between equal ones of two
                     layers: of one period, or of all that is dropped */
    uint64_t lasts_ns; /* REPLACE: what comes behind is so much later */
};

/* Of a trace whose operations, those with marks, are known. */
struct rewrite {
    struct records *records;
    size_t record_count; /* before records were added */
    const size_t *ops;   /* records of operations, in order; borrowed */
    size_t op_count;
    struct edit *edits;
    size_t count, capacity;
};

void rewrite_add(struct rewrite *w, const struct edit *edit);

/* Writes the trace to the new file PATH. Edits must not overlap. Returns 0, or
 * -1 with ERR set and no file. */
int rewrite_write(struct rewrite *w, const char *path, struct err *err);

/* Records [from, until), in place of where they are in the trace. */
struct rewrite_piece {
    size_t from, until;
    bool once; /* with what is written once: names, modules, device memory */
};

/* The same with COUNT PIECES, one after the other, and nothing else. Edits that
 * drop or replace records are made in each piece. The host goes on at a piece's
 * begin where the piece before ended. */
int rewrite_write_pieces(struct rewrite *w, const struct rewrite_piece *pieces,
                         size_t count, const char *path, struct err *err);

#endif
