/* SPDX-License-Identifier: Apache-2.0
 * One operation at another size, from the same one at two. */
#ifndef MEMSIM_MEMSIM_CHANGE_SIZE_OP_H
#define MEMSIM_MEMSIM_CHANGE_SIZE_OP_H

#include "memsim/change/records.h"
#include "memsim/change/size_law.h"

#define SIZE_TEXT_MAX 4096

/* A record's fields and text at the wanted size. */
struct size_op {
    uint64_t fields[TRACE_FIELDS_MAX];
    char text[SIZE_TEXT_MAX];
    size_t text_bytes;
    enum size_law law; /* the weakest of its numbers' */
    bool other;        /* another kernel in the second recording */
    bool rounded;      /* blocks or threads are an estimate */
    uint64_t bad[2];   /* the first number of SIZE_UNEVEN or SIZE_NONE */
};

/* FIRST of A, an operation or a BATCH, and SECOND of B, of the same kind. */
void size_op_make(struct size_op *op, const struct size_points *p,
                  const struct records *a, const struct record *first,
                  const struct records *b, const struct record *second);

#endif
