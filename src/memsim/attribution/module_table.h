/* SPDX-License-Identifier: Apache-2.0
 * The modules of a process by number, with the names from its trace. */
#ifndef MEMSIM_MEMSIM_ATTRIBUTION_MODULE_TABLE_H
#define MEMSIM_MEMSIM_ATTRIBUTION_MODULE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/map.h"

#define MODULES_MAX (1u << 24) /* the same limit as in core/torch/tag.c */

struct module_row {
    bool named;
    uint32_t root, parent; /* numbers; 0: none */
    bool has_children;
    unsigned nth; /* among models of the same name, from 1; else 0 */
    uint64_t calls;
    char *path; /* below its root; the class of a root */
};

/* The modules of a process, by their numbers. Zeroed, it is empty. */
struct module_table {
    struct module_row *rows;
    size_t count;     /* one more than the highest number */
    struct map paths; /* numbers by root and path */
    unsigned models;  /* roots that have submodules */
};

/* Takes a MODULE record, whose name is NAME. Returns the parent that the
 * module had before in *OLD_PARENT. */
void module_table_name(struct module_table *t, uint32_t id, uint32_t root,
                       const char *name, uint32_t *old_parent);
void module_table_call(struct module_table *t, uint32_t id);
void module_table_fini(struct module_table *t);
/* Counts the models. Call it before module_table_title. */
void module_table_count(struct module_table *t);
/* The name for reports; with several models it includes the model's name.
 * The caller frees it. */
char *module_table_title(const struct module_table *t, uint32_t id);

#endif
