/* SPDX-License-Identifier: Apache-2.0
 * A GPU's allocated bytes over time, in a limited number of points, however
 * long the run was. */
#ifndef MEMSIM_MEMSIM_ATTRIBUTION_MEMORY_CURVE_H
#define MEMSIM_MEMSIM_ATTRIBUTION_MEMORY_CURVE_H

#include "memsim/attribution/attribute.h"

#define MEMORY_CURVE_POINTS 2000

/* The turning points of a GPU's allocated bytes. Between two of them no rise or
 * fall is as large as `least_bytes`, which doubles if there are too many. Each
 * has the changes of the categories since the previous one, so a block's
 * category can be changed from its allocation on. Zeroed, it is empty. */
struct memory_curve {
    struct turn {
        uint64_t ordinal, time_ns, events, allocated_bytes, reserved_bytes;
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
    uint64_t events; /* of the allocator on this GPU before it */
    uint64_t allocated_bytes, reserved_bytes;
};

void memory_curve_add(struct memory_curve *t, const struct moment *now,
                      enum trace_category category, int64_t bytes);
/* Moves BYTES, allocated at the record BORN, to another category. */
void memory_curve_refile(struct memory_curve *t, uint64_t born,
                         enum trace_category from, enum trace_category to,
                         uint64_t bytes);
/* Keeps a point at NOW, where nothing need turn. */
void memory_curve_mark(struct memory_curve *t, const struct moment *now);
/* Removes the points from the record ORDINAL on, where RISING was as given.
 * What they changed counts as changed since the last point that remains. */
void memory_curve_rewind(struct memory_curve *t, uint64_t ordinal, bool rising);
/* Removes more points from *T if needed. Returns the points, which the caller
 * frees, and their number in *COUNT. */
struct attribution_point *memory_curve_conclude(struct memory_curve *t,
                                                size_t *count);
void memory_curve_fini(struct memory_curve *t);

#endif
