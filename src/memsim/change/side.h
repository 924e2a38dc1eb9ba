/* SPDX-License-Identifier: Apache-2.0
 * A recording with what is known of its operations: one side of a change. */
#ifndef MEMSIM_MEMSIM_CHANGE_SIDE_H
#define MEMSIM_MEMSIM_CHANGE_SIDE_H

#include "memsim/change/layer_marks.h"
#include "memsim/change/rewrite.h"

struct side {
    struct records records;
    struct layer_marks marks;
};

/* Reads the trace PATH. Returns 0 with *SIDE to be given to side_fini, or -1
 * with ERR set and nothing to free. */
int side_read(struct side *side, const char *path, struct err *err);
void side_fini(struct side *side);

/* Edits of R, none yet, whose operations are those of MARKS; both borrowed. The
 * caller frees the edits. */
struct rewrite rewrite_of(struct records *r, const struct layer_marks *marks);

#endif
