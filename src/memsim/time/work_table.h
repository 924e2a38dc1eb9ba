/* SPDX-License-Identifier: Apache-2.0
 * memsim trace --work: the work that a trace's operations are described as. */
#ifndef MEMSIM_MEMSIM_TIME_WORK_TABLE_H
#define MEMSIM_MEMSIM_TIME_WORK_TABLE_H

#include <stdio.h>

#include "common/base/err.h"

struct work_table;

/* Prices are those of GPU (a name or a file), or where that is NULL, of the
 * GPU that the first trace names. Returns NULL with ERR set. */
struct work_table *work_table_create(const char *gpu, struct err *err);

/* Prints each operation as it is added, and the program's NVTX marks, to OUT.
 */
void work_table_each(struct work_table *t, FILE *out);

/* Adds the operations of the trace PATH. Returns 0 or -1. */
int work_table_add(struct work_table *t, const char *path, struct err *err);

/* Prints a line for each kernel and family, the longest in all first, then the
 * share of the time by how it was described. Returns 0 or -1. */
int work_table_print(struct work_table *t, FILE *out, struct err *err);
void work_table_destroy(struct work_table *t);

#endif
