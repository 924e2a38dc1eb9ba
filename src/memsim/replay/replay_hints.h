/* SPDX-License-Identifier: Apache-2.0
 * What later records of a trace show about a block: whether it was a workspace,
 * whose size depends on the GPU. Found in a first pass. */
#ifndef MEMSIM_MEMSIM_REPLAY_REPLAY_HINTS_H
#define MEMSIM_MEMSIM_REPLAY_REPLAY_HINTS_H

#include "common/base/map.h"
#include "common/trace/size_range.h"
#include "common/trace/trace_read.h"

enum { REPLAY_HINT_THREADS = 16 };

struct replay_hints {  /* zeroed: empty */
    struct map lent;   /* given to cuBLAS, by index + 1 of the BLOCK_ALLOC */
    struct map plans;  /* of convolutions, likewise: which one, not NULL */
    struct map least;  /* likewise, of all libraries' workspaces whose sizes on
                          the GPU are not known */
    struct map most;
    uint64_t index;    /* of the next record */
    struct map blocks; /* index + 1 by address: possible workspaces */
    struct {
        uint64_t bytes, index;
    } latest[REPLAY_HINT_THREADS]; /* block of a thread */
    struct size_ranges sizes;
};

/* Takes the trace's next record; NAMES are the names so far. */
void replay_hints_take(struct replay_hints *h, const struct trace_item *item,
                       const struct trace_names *names);

/* Frees the data that only the pass needs; the maps by index stay. */
void replay_hints_finish(struct replay_hints *h);
void replay_hints_fini(struct replay_hints *h);

#endif
