/* SPDX-License-Identifier: Apache-2.0
 * Names a block after the first work that used it. Pure. */
#ifndef MEMSIM_MEMSIM_ATTRIBUTION_LABEL_H
#define MEMSIM_MEMSIM_ATTRIBUTION_LABEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/trace/trace_read.h"

/* The part of a record that its label needs; plain data, comparable. */
struct label {
    uint64_t kind; /* enum trace_kind; 0: nothing used it */
    uint64_t name; /* an id of the trace's names, or 0 */
    uint64_t numbers[4];
};

/* The label that ITEM, which uses memory, gives to a block of
 * REQUESTED_BYTES. */
struct label label_make(const struct trace_item *item,
                        uint64_t requested_bytes);

/* The label of a block that is a workspace for work of KIND. */
struct label label_workspace(enum trace_kind kind);
bool label_is_workspace(const struct label *label);

/* Writes LABEL to OUT, in words that a user of PyTorch knows. */
void label_format(const struct label *label, const struct trace_names *names,
                  char *out, size_t size);

#endif
