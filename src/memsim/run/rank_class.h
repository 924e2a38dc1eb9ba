/* SPDX-License-Identifier: Apache-2.0
 * Classes of ranks: data that is equal for several ranks is kept, simulated and
 * printed once, for one representative of these ranks. */
#ifndef MEMSIM_MEMSIM_RUN_RANK_CLASS_H
#define MEMSIM_MEMSIM_RUN_RANK_CLASS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/rank_set.h"

struct rank_class {
    size_t first; /* index of the representative among the items */
    struct rank_set members; /* the representative's ranks included */
};

struct rank_classes {
    struct rank_class *all; /* ordered by their first item */
    size_t count;
};

/* How to classify the items of a list, each of which has one or more ranks. */
struct rank_class_ops {
    bool (*is_alike)(const void *list, size_t a, size_t b);
    void (*add_members)(const void *list, size_t item, struct rank_set *to);
};

/* Makes classes of the COUNT items of LIST: an item joins the first class whose
 * representative is alike. Free them with rank_classes_fini. */
void rank_classes_make(struct rank_classes *classes, size_t count,
                       const struct rank_class_ops *ops, const void *list);
void rank_classes_fini(struct rank_classes *classes);

#endif
