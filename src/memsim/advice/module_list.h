/* SPDX-License-Identifier: Apache-2.0
 * Rows of like modules: the blocks of a transformer, the stages' of a ResNet.
 * They are what people put under activation checkpointing. */
#ifndef MEMSIM_MEMSIM_ADVICE_MODULE_LIST_H
#define MEMSIM_MEMSIM_ADVICE_MODULE_LIST_H

#include "memsim/attribution/module_table.h"

/* Modules PARENT.0, PARENT.1, ... which have parts of their own, and most of
 * them equally many. A list inside a member of a list is none. */
struct module_list {
    uint32_t parent;
    size_t members;
    char *name; /* as reports show it */
};

struct module_lists {
    struct module_list *rows;
    size_t count;
    uint32_t *member_of; /* by module: the member it belongs to, or 0 */
    uint32_t *list_of;   /* by module: one more than the row, or 0 */
    size_t modules;      /* how long they are */
};

/* MODULES must have been counted. */
void module_lists_find(struct module_lists *lists,
                       const struct module_table *modules);
void module_lists_fini(struct module_lists *lists);

#endif
