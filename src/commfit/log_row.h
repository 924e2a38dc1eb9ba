/* SPDX-License-Identifier: Apache-2.0
 * One table row of nccl-tests' text output, in any of its layouts. */
#ifndef MEMSIM_COMMFIT_LOG_ROW_H
#define MEMSIM_COMMFIT_LOG_ROW_H

#include "commfit/bench_check.h"

struct log_row {
    uint64_t bytes;
    uint64_t count; /* of elements, as printed */
    char type[16];  /* as printed */
    char redop[16]; /* empty where there is no such column */
    bool has_root;
    long root;
    uint32_t placements; /* 1: out of place only; 2: both */
    struct printed_row place[2];
    bool wrong[2];     /* the program's own check failed */
    bool unchecked[2]; /* N/A in its place: alltoall in place, validation off */
};

/* Whether TOKENS holds a row: two whole numbers and an element type, after
 * whatever a launcher put before. Returns the index of the size, or -1. */
int log_row_find(char *const *tokens, size_t count);

/* Reads the row that begins at TOKENS[0]. Where the columns are not those of a
 * layout, returns -1. */
int log_row_parse(char *const *tokens, size_t count, struct log_row *row);

/* Bytes of an element type, 0 where TYPE is none. */
unsigned log_type_bytes(const char *type);

#endif
