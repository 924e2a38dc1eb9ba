/* SPDX-License-Identifier: Apache-2.0
 * Attribution for people: what was in memory at the peak by category, and by
 * module as a tree, in 80 columns. */
#ifndef MEMSIM_MEMSIM_TREE_H
#define MEMSIM_MEMSIM_TREE_H

#include <stdio.h>

#include "memsim/attribution/attribute.h"

#define TREE_DEPTH 3 /* where not said otherwise */
#define TREE_TOP   5

struct tree_style {
    const char *dim, *plain; /* what switches them on; "" without colours */
    unsigned depth;          /* levels; 0: TREE_DEPTH */
    unsigned top;            /* the largest of each module's; 0: TREE_TOP */
};

/* Writes nothing where nothing was allocated. */
void tree_write(const struct attribution *attribution,
                const struct tree_style *style, FILE *out);

/* A child's NAME without that of its parent, ABOVE. */
const char *tree_short_name(const char *name, const char *above);

#endif
