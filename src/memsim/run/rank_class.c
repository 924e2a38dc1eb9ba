/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/run/rank_class.h"

#include <stdlib.h>

#include "common/base/xmalloc.h"

static struct rank_class *class_of(struct rank_classes *classes, size_t item,
                                   const struct rank_class_ops *ops,
                                   const void *list)
{
    for (size_t i = 0; i < classes->count; i++)
        if (ops->is_alike(list, classes->all[i].first, item))
            return &classes->all[i];
    struct rank_class *made = &classes->all[classes->count++];
    made->first = item;
    return made;
}

void rank_classes_make(struct rank_classes *classes, size_t count,
                       const struct rank_class_ops *ops, const void *list)
{
    *classes = (struct rank_classes){
        .all = xcalloc(count + 1, sizeof *classes->all)};
    for (size_t i = 0; i < count; i++)
        ops->add_members(list, i, &class_of(classes, i, ops, list)->members);
}

void rank_classes_fini(struct rank_classes *classes)
{
    for (size_t i = 0; i < classes->count; i++)
        rank_set_fini(&classes->all[i].members);
    free(classes->all);
    *classes = (struct rank_classes){.count = 0};
}
