/* SPDX-License-Identifier: Apache-2.0
 * qsort() for an array that may have no memory while it is empty: qsort(NULL)
 * is undefined. */
#ifndef MEMSIM_COMMON_BASE_ARRAY_SORT_H
#define MEMSIM_COMMON_BASE_ARRAY_SORT_H

#include <stdlib.h>

static inline void array_sort(void *all, size_t count, size_t bytes,
                              int (*compare)(const void *a, const void *b))
{
    if (count)
        qsort(all, count, bytes, compare);
}

#endif
