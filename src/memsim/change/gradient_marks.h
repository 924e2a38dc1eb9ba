/* SPDX-License-Identifier: Apache-2.0
 * Where a profile says that a gradient is ready (common/trace/gradient.h). */
#ifndef MEMSIM_MEMSIM_CHANGE_GRADIENT_MARKS_H
#define MEMSIM_MEMSIM_CHANGE_GRADIENT_MARKS_H

#include "memsim/change/records.h"

struct gradient_mark {
    size_t mark; /* its record */
    uint64_t elements, each; /* bytes */
};

/* Is record INDEX of R such a mark? Then it is *G. */
bool gradient_mark_read(const struct records *r, size_t index,
                        struct gradient_mark *g);

#endif
