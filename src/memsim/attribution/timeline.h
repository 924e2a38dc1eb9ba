/* SPDX-License-Identifier: Apache-2.0
 * How much of a GPU was allocated over time, in a bounded number of points
 * however long it took. */
#ifndef MEMSIM_MEMSIM_TIMELINE_H
#define MEMSIM_MEMSIM_TIMELINE_H

#include "memsim/attribution/attribute.h"

#define TIMELINE_POINTS 2000

/* The turning points of a GPU's allocated bytes: between two of them nothing
 * rose or fell by as much as `least_bytes`, which doubles when there are too
 * many. Each holds how the categories changed since the one before, so that a
 * block may be filed anew as of its birth. Zeroed, it is empty. */
struct timeline {
    struct turn {
        uint64_t ordinal, time_ns, allocated_bytes, reserved_bytes;
        int64_t changes[TRACE_CATEGORY_COUNT];
    } * turns; /* the last one may still move; after it comes: */
    size_t count, capacity;
    int64_t tail[TRACE_CATEGORY_COUNT];
    uint64_t least_bytes;
    bool rising;
};

struct moment {
    uint64_t ordinal; /* of the record */
    uint64_t time_ns;
    uint64_t allocated_bytes, reserved_bytes;
};

void timeline_add(struct timeline *t, const struct moment *now,
                  enum trace_category category, int64_t bytes);
/* BYTES that were there from the record BORN on are of another category. */
void timeline_refile(struct timeline *t, uint64_t born,
                     enum trace_category from, enum trace_category to,
                     uint64_t bytes);
/* Thins *T further where that is needed. */
void timeline_conclude(struct timeline *t, struct attribution *to);
void timeline_fini(struct timeline *t);

#endif
