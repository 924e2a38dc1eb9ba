/* SPDX-License-Identifier: Apache-2.0
 * Attribution for people: what was in memory at the peak by category, and by
 * module as a tree, in 80 columns. */
#ifndef MEMSIM_MEMSIM_REPORT_TEXT_TREE_H
#define MEMSIM_MEMSIM_REPORT_TEXT_TREE_H

#include <stdbool.h>
#include <stdio.h>

#include "memsim/attribution/attribute.h"

#define TREE_DEPTH         2 /* where not said otherwise */
#define TREE_DEPTH_VERBOSE 3
#define TREE_TOP   5

struct tree_style {
    const char *bold, *plain; /* what switches them on; "" without colours */
    int columns;             /* of a line; 0: TEXT_COLUMNS */
    bool verbose;            /* rows of less than 0.5%, too; categories as
                                rows, not in one line */
    unsigned depth; /* levels, of which a list is none; 0: TREE_DEPTH */
    unsigned top;            /* the largest of each module's; 0: TREE_TOP */
};

/* Writes nothing where nothing was allocated. */
void tree_write(const struct attribution *attribution,
                const struct tree_style *style, FILE *out);

#endif
