/* SPDX-License-Identifier: Apache-2.0
 * The tree of modules as people read it. A module whose only part holds all of
 * it is one with that part: `model.layers`. Numbered parts of about one size
 * are one: `0-15, each 544 MiB`. */
#ifndef MEMSIM_MEMSIM_RESULT_TREE_NODE_H
#define MEMSIM_MEMSIM_RESULT_TREE_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memsim/attribution/attribute.h"

/* The attribution with what finds the children and the blocks of a module. */
struct tree_nodes {
    const struct attribution *a;
    size_t *order;  /* of modules, by parent */
    size_t *blocks; /* of the allocated blocks, by module */
    size_t block_count;
};

/* Modules told as one; COUNT 0: the root, above all modules. */
struct tree_node {
    size_t *members; /* indices of modules */
    size_t count;
    size_t parts; /* how many parts of its parent it is */
    bool is_list; /* of like parts, written as one */
    char *name;
    uint64_t bytes;     /* at the peak, with all below */
    uint64_t own_bytes; /* of them, what is in no part of it */
};

/* Of a module's own memory: what it is. */
struct tree_own {
    char *name; /* "parameters", "mul", "mul, temporary" */
    uint64_t bytes;
};

void tree_nodes_init(struct tree_nodes *t, const struct attribution *a);
void tree_nodes_fini(struct tree_nodes *t);

/* The parts of ABOVE that hold something, the largest first; equal ones in
 * natural order (2 before 10). Returns how many; *NODES is to be given to
 * tree_node_free. */
size_t tree_node_children(const struct tree_nodes *t,
                          const struct tree_node *above,
                          struct tree_node **nodes);
void tree_node_free(struct tree_node *nodes, size_t count);

/* What NODE's modules hold themselves, or what no module holds where it has
 * none: the largest first. Returns how many; *OWN is to be given to
 * tree_own_free. */
size_t tree_own_list(const struct tree_nodes *t, const struct tree_node *node,
                     struct tree_own **own);
void tree_own_free(struct tree_own *own, size_t count);

/* A category as a word for many: "parameters". */
const char *tree_category_words(enum trace_category category);

/* A child's NAME without that of its parent, ABOVE. */
const char *tree_short_name(const char *name, const char *above);

#endif
