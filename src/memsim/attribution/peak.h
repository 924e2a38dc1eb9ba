/* SPDX-License-Identifier: Apache-2.0
 * The contents of a GPU's memory when its allocated bytes were highest, read
 * from a trace in one pass. Uses memory in proportion to the blocks that are
 * live at once, not to the length of the trace. */
#ifndef MEMSIM_MEMSIM_ATTRIBUTION_PEAK_H
#define MEMSIM_MEMSIM_ATTRIBUTION_PEAK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/trace/play.h"
#include "common/trace/session.h"
#include "memsim/attribution/attribute.h"
#include "memsim/attribution/tracker.h"
#include "memsim/attribution/workspace_range.h"

/* One GPU as one process saw it. */
struct peak_card {
    bool torch;               /* the blocks are PyTorch's, else cudaMalloc's */
    uint64_t allocated_bytes; /* at the peak */
    uint64_t reserved_bytes;  /* at that moment, as PyTorch counts */
    uint64_t outside_bytes;   /* from cudaMalloc, not PyTorch's */
    struct peak_thing *things; /* blocks by what first used them and by
                                    size, largest first */
    size_t thing_count;
    struct workspace_range range; /* of allocated_bytes, if torch */
    uint64_t retries; /* cudaMallocs that succeeded with an emptied cache */
    struct attribution *attribution; /* NULL: the trace has no PHASE records */
};

struct peak {
    struct peak_card cards[SESSION_DEVICES];
};

/* The result of a pass over a trace: the listener's context. */
struct peak_reading {
    struct peak peak; /* empty until the pass has ended */
    struct analysis *analysis;
};

/* Returns a listener for trace_play. *R must not move. Call peak_reading_fini
 * after the pass. */
struct trace_listener peak_reading_init(struct peak_reading *r);
void peak_reading_fini(struct peak_reading *r);

/* The same for all of READER. Returns 0 (call peak_fini on *PEAK after use), or
 * -1 with ERR set and nothing to free. */
int peak_read(struct peak *peak, struct trace_reader *reader, struct err *err);
void peak_fini(struct peak *peak);

#endif
