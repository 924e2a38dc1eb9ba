/* SPDX-License-Identifier: Apache-2.0
 * A device that answers as recorded. It holds the allocator's recorded device
 * calls since its last request; the engine's calls must match them in order. */
#ifndef MEMSIM_MEMSIM_REPLAY_REPLAY_EXPECTED_H
#define MEMSIM_MEMSIM_REPLAY_REPLAY_EXPECTED_H

#include "memsim/replay/replay.h"

struct expected {          /* zeroed but for the plan: empty */
    struct replay_op *ops; /* REPLAY_SEGMENT and REPLAY_FREE_DONE */
    size_t first, count, capacity;
    uint64_t progress;        /* matched bytes of the first map or unmap */
    uint64_t index;           /* of the current step, for messages */
    struct replay_plan *plan; /* receives the first difference */
};

/* A device that answers as E recorded; any other call of the engine is a
 * difference. */
struct alloc_driver expected_driver(struct expected *e);

void expected_add(struct expected *e, const struct replay_op *op);

/* The next segment operation; NULL if none is left. */
struct replay_op *expected_head(struct expected *e);

/* Whether one is left for which IS is true. */
bool expected_any(const struct expected *e,
                  bool (*is)(const struct replay_op *));

/* Drops those that are left: not matched, or not needed any more. */
void expected_reset(struct expected *e);
void expected_fini(struct expected *e);

/* Writes to the plan where the replay first differs from the recording. */
void expected_differ(struct expected *e, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
