/* SPDX-License-Identifier: Apache-2.0
 * The launches of a recording that work on one list of tensors. */
#ifndef MEMSIM_MEMSIM_CHANGE_LIST_LAUNCHES_H
#define MEMSIM_MEMSIM_CHANGE_LIST_LAUNCHES_H

#include "memsim/change/layer_lists.h"
#include "memsim/change/rewrite.h"

/* Operations up to END. */
struct list_place {
    const struct records *records;
    const size_t *ops; /* their records */
    size_t end;
};

/* The launch that is operation OP; NULL: it is something else. Borrowed. */
struct trace_launch *list_launch_at(const struct list_place *place, size_t op);

/* Is L, which may be NULL, one on a list? */
bool list_launch_is(const struct trace_launch *l);

/* How many launches from OP on work on the COUNT tensors of SIZES, cut as
 * VARIANT does; 0: they do not. */
size_t list_launches_find(const struct list_place *place, size_t op,
                          const uint64_t *sizes, size_t count,
                          unsigned variant);

/* Replaces the COUNT launches from OP on by those that the WANTED tensors of
 * SIZES need: the last has all that are more. */
void list_launches_replace(struct rewrite *w, size_t op, size_t count,
                           const uint64_t *sizes, size_t wanted,
                           unsigned variant);

#endif
