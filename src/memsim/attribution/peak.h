/* SPDX-License-Identifier: Apache-2.0
 * What was in a GPU's memory at the moment its allocated bytes were highest,
 * read from a trace in one pass. Takes memory in proportion to what is live
 * at once, not to the length of the trace. */
#ifndef MEMSIM_MEMSIM_PEAK_H
#define MEMSIM_MEMSIM_PEAK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/trace/play.h"
#include "common/trace/session.h"
#include "memsim/attribution/attribute.h"
#include "memsim/attribution/tracker.h"

/* One GPU as one process saw it. */
struct peak_card {
    bool torch;               /* the blocks are PyTorch's, else cudaMalloc's */
    uint64_t allocated_bytes; /* at the peak */
    uint64_t reserved_bytes;  /* at that moment, as PyTorch counts */
    uint64_t outside_bytes;   /* of cudaMalloc, not PyTorch's */
    struct peak_thing *things; /* blocks by what first used them and by
                                    size, largest first */
    size_t thing_count;
    struct attribution *attribution; /* NULL: nobody said whose blocks are */
};

struct peak {
    struct peak_card cards[SESSION_DEVICES];
};

/* What a pass over a trace comes to: the listener's context. */
struct peak_reading {
    struct peak peak; /* empty until the pass has ended */
    struct analysis *analysis;
};

/* A listener for trace_play; *R must not move, and is given to
 * peak_reading_fini after the pass. */
struct trace_listener peak_reading_init(struct peak_reading *r);
void peak_reading_fini(struct peak_reading *r);

/* The same, of all of READER. Returns 0 with *PEAK to be given to peak_fini, or
 * -1 with ERR set and nothing to free. */
int peak_read(struct peak *peak, struct trace_reader *reader, struct err *err);
void peak_fini(struct peak *peak);

#endif
